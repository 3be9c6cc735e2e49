// Memory that catches a kernel reading or writing past its arrays, and random values to put there.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "core/random.h"

namespace ctk::test {

// `count` elements that end exactly where a page without access begins: one step too far is a crash, on any build. The
// start is therefore aligned to the element only, as callers' arrays may be.
template <class T>
class FencedArray {
 public:
  explicit FencedArray(std::size_t count) : count_(count) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inside = (count * sizeof(T) + page - 1) / page * page;
    bytes_ = inside + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (inside != 0) mprotect(base_ + page, inside, PROT_READ | PROT_WRITE);
    data_ = reinterpret_cast<T*>(base_ + page + inside - count * sizeof(T));
  }
  explicit FencedArray(const std::vector<T>& values) : FencedArray(values.size()) {
    if (!values.empty()) std::memcpy(data_, values.data(), values.size() * sizeof(T));
  }
  FencedArray(const FencedArray&) = delete;
  FencedArray& operator=(const FencedArray&) = delete;
  ~FencedArray() { munmap(base_, bytes_); }

  T* data() { return data_; }
  std::vector<T> values() const { return {data_, data_ + count_}; }

 private:
  std::size_t count_, bytes_;
  char* base_;
  T* data_;
};

inline std::vector<float> random_floats(Random& random, std::size_t count, double low = -1.0, double high = 1.0) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(low + (high - low) * random.uniform());
  return values;
}

inline std::vector<std::uint8_t> random_codes(Random& random, std::size_t count) {
  std::vector<std::uint8_t> values(count);
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random.below(256));
  return values;
}

}  // namespace ctk::test

#include "core/shape.h"

#include <algorithm>
#include <cstdlib>

namespace ctk {

Result<std::size_t> element_count(const Shape& shape) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 48;  // 2^48 elements cannot be held anywhere we run
  std::uint64_t count = 1;
  bool is_empty = false;
  for (std::int64_t dim : shape) {
    if (dim < 0) return input_error("shape " + to_string(shape) + " has a negative dimension");
    if (dim == 0) is_empty = true;
  }
  if (is_empty) return std::size_t{0};
  for (std::int64_t dim : shape) {
    if (static_cast<std::uint64_t>(dim) > kLimit / count) {
      return input_error("shape " + to_string(shape) + " has more than 2^48 elements");
    }
    count *= static_cast<std::uint64_t>(dim);
  }
  return static_cast<std::size_t>(count);
}

std::size_t elements(const Shape& shape) {
  auto count = element_count(shape);
  if (!count) std::abort();
  return *count;
}

std::size_t byte_size(DType dtype, std::size_t count) {
  return (count * static_cast<std::size_t>(bits_of(dtype)) + 7) / 8;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ",";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) {
      return input_error("shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    }
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

}  // namespace ctk

// Saved states: tensors and numbers in a fixed order, as bytes.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace ctk::train {

class StateWriter {
 public:
  void add(double value);
  void add(std::int64_t value);
  void add(const std::vector<at::Tensor>& tensors);  // float32
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what the writer wrote, in the same order. Errors: input (bytes of another task: says so), once; later reads
// then do nothing.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : bytes_(bytes) {}
  void read(double& value);
  void read(std::int64_t& value);
  void read(std::vector<at::Tensor>& tensors);  // into tensors of the shapes that were written
  bool is_good() const { return is_good_; }
  Status status() const;

 private:
  bool take(void* to, std::size_t size);

  std::string_view bytes_;
  bool is_good_ = true;
};

}  // namespace ctk::train

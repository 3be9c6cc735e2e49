#include "train/torch/state.h"

#include <ATen/core/grad_mode.h>

#include <cstring>

namespace ctk::train {

void StateWriter::add(double value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void StateWriter::add(std::int64_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void StateWriter::add(const std::vector<at::Tensor>& tensors) {
  add(static_cast<std::int64_t>(tensors.size()));
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor dense = tensor.detach().contiguous();
    add(static_cast<std::int64_t>(dense.numel()));
    bytes_.append(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
  }
}

bool StateReader::take(void* to, std::size_t size) {
  is_good_ = is_good_ && bytes_.size() >= size;
  if (!is_good_) return false;
  std::memcpy(to, bytes_.data(), size);
  bytes_.remove_prefix(size);
  return true;
}

void StateReader::read(double& value) {
  take(&value, sizeof value);
}

void StateReader::read(std::int64_t& value) {
  take(&value, sizeof value);
}

void StateReader::read(std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_gradient;
  std::int64_t count = 0;
  read(count);
  is_good_ = is_good_ && count == static_cast<std::int64_t>(tensors.size());
  for (at::Tensor& tensor : tensors) {
    std::int64_t elements = 0;
    read(elements);
    is_good_ = is_good_ && elements == tensor.numel();
    if (!is_good_) return;
    at::Tensor dense = at::empty(tensor.sizes(), tensor.options());
    take(dense.mutable_data_ptr(), dense.nbytes());
    if (is_good_) tensor.copy_(dense);
  }
}

Status StateReader::status() const {
  if (is_good_ && bytes_.empty()) return {};
  return input_error(
      "saved state: expected one of this very task, found one of another network or other options. "
      "Delete it, or start without it");
}

}  // namespace ctk::train

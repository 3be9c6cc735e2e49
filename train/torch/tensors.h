// Between our tensors and ATen's. Both are dense and row-major here.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "core/tensor.h"

namespace ctk::train {

// Nothing for types ATen has not (narrower than a byte, strings).
std::optional<at::ScalarType> scalar_type_of(DType dtype);
// A copy. Throws c10::Error for types ATen has not.
at::Tensor to_torch(const Tensor& tensor);
// The same bytes, which must outlive the result and must not be written to.
at::Tensor as_torch(const Tensor& tensor);
// A copy, detached. Errors: input (too large).
Result<Tensor> from_torch(const at::Tensor& tensor);
// A window on a contiguous tensor.
TensorView view_of(const at::Tensor& tensor);
DType dtype_of(const at::Tensor& tensor);
// [rows] as [rows, 1, ...] of `dims` dimensions, so that it meets each index of dimension 0.
at::Tensor by_row(const at::Tensor& factor, std::int64_t dims);

}  // namespace ctk::train

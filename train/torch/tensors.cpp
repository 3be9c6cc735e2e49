#include "train/torch/tensors.h"

#include <cstring>

namespace ctk::train {

std::optional<at::ScalarType> scalar_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return at::kFloat;
    case DType::f64:
      return at::kDouble;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::i8:
      return at::kChar;
    case DType::u8:
      return at::kByte;
    case DType::i16:
      return at::kShort;
    case DType::i32:
      return at::kInt;
    case DType::i64:
      return at::kLong;
    case DType::boolean:
      return at::kBool;
    default:
      return std::nullopt;
  }
}

DType dtype_of(const at::Tensor& tensor) {
  for (const DType dtype : {DType::f32, DType::i64, DType::boolean, DType::i32, DType::f64, DType::f16, DType::bf16,
                            DType::i8, DType::u8, DType::i16}) {
    if (scalar_type_of(dtype) == tensor.scalar_type()) return dtype;
  }
  return DType::f32;
}

at::Tensor as_torch(const Tensor& tensor) {
  const auto type = scalar_type_of(tensor.dtype());
  TORCH_CHECK(type.has_value(), std::string(name_of(tensor.dtype())), " has no type in LibTorch");
  return at::from_blob(const_cast<void*>(tensor.data()), tensor.shape(), *type);
}

at::Tensor to_torch(const Tensor& tensor) {
  return as_torch(tensor).clone();
}

TensorView view_of(const at::Tensor& tensor) {
  return {dtype_of(tensor), Shape(tensor.sizes().begin(), tensor.sizes().end()), tensor.const_data_ptr()};
}

Result<Tensor> from_torch(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  const TensorView view = view_of(dense);
  CTK_TRY(Tensor copy, Tensor::zeros(view.dtype, view.shape));
  if (copy.bytes() != 0) std::memcpy(copy.mutable_data(), view.data, copy.bytes());
  return copy;
}

at::Tensor by_row(const at::Tensor& factor, std::int64_t dims) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dims), 1);
  sizes[0] = -1;
  return factor.reshape(sizes);
}

}  // namespace ctk::train

// Tensor: a dense row-major array that owns its memory or shares a mapped file. Copying a Tensor shares the bytes.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <span>

#include "core/dtype.h"
#include "core/result.h"
#include "core/shape.h"

namespace ctk {

// Read-only and writable windows on tensor memory; they own nothing.
struct TensorView {
  DType dtype = DType::f32;
  Shape shape;
  const void* data = nullptr;

  std::size_t size() const { return elements(shape); }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  template <class T>
  std::span<const T> values() const {
    return {as<T>(), size()};
  }
};

struct MutableTensorView {
  DType dtype = DType::f32;
  Shape shape;
  void* data = nullptr;

  std::size_t size() const { return elements(shape); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  template <class T>
  std::span<T> values() const {
    return {as<T>(), size()};
  }
  operator TensorView() const { return {dtype, shape, data}; }
};

class Tensor {
 public:
  Tensor() = default;

  // Zero-filled, 64-byte aligned. Errors: input (shape too large, memory refused).
  static Result<Tensor> zeros(DType dtype, Shape shape);
  // Shares `owner` (a mapped file, say) and reads from `data`, which must stay valid as long as `owner`.
  static Tensor borrowed(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner);
  // Copies values of a C++ array; shape must hold exactly values.size() elements.
  template <class T>
  static Tensor of(Shape shape, std::span<const T> values);
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }

  bool is_defined() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::size_t size() const { return size_; }  // elements
  std::size_t bytes() const { return byte_size(dtype_, size_); }
  const void* data() const { return data_; }
  // Writable memory; only for a tensor made by zeros()/of() and not yet shared.
  void* mutable_data() { return const_cast<void*>(data_); }

  template <class T>
  std::span<const T> values() const {
    assert(DTypeOf<T>::value == dtype_);
    return {static_cast<const T*>(data_), size_};
  }
  template <class T>
  std::span<T> mutable_values() {
    assert(DTypeOf<T>::value == dtype_);
    return {static_cast<T*>(mutable_data()), size_};
  }
  std::span<const std::byte> raw() const { return {static_cast<const std::byte*>(data_), bytes()}; }
  TensorView view() const { return {dtype_, shape_, data_}; }
  MutableTensorView mutable_view() { return {dtype_, shape_, mutable_data()}; }
  // The same bytes under another shape with the same element count.
  Tensor reshaped(Shape shape) const;
  Tensor clone() const;

 private:
  DType dtype_ = DType::f32;
  Shape shape_;
  std::size_t size_ = 0;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// Any real or boolean tensor as float32 / as int64. Errors: input (strings).
Result<Tensor> to_f32(const Tensor& tensor);
Result<std::vector<std::int64_t>> to_i64(const Tensor& tensor);
// Converts element by element to `dtype` (round toward zero to integers, as ONNX Cast; values past 64 bits saturate,
// then narrower integers keep the low bits; NaN gives 0). Types narrower than 8 bits only as source.
Result<Tensor> cast(const Tensor& tensor, DType dtype);

// 64-byte aligned memory that frees itself; null when the system refuses.
std::shared_ptr<void> allocate_aligned(std::size_t bytes);

template <class T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
  Tensor tensor = zeros(DTypeOf<T>::value, std::move(shape)).value();
  assert(tensor.size() == values.size());
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.mutable_data()));
  return tensor;
}

}  // namespace ctk

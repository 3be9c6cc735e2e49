#include "core/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

namespace ctk {
namespace {

// Reads element i of any numeric dtype as double (exact for all but 64-bit integers past 2^53).
double element_as_double(const Tensor& t, std::size_t i) {
  const void* p = t.data();
  switch (t.dtype()) {
    case DType::f32:
      return static_cast<const float*>(p)[i];
    case DType::f64:
      return static_cast<const double*>(p)[i];
    case DType::f16:
      return half_to_float(static_cast<const std::uint16_t*>(p)[i]);
    case DType::bf16:
      return bfloat_to_float(static_cast<const std::uint16_t*>(p)[i]);
    case DType::i8:
      return static_cast<const std::int8_t*>(p)[i];
    case DType::u8:
      return static_cast<const std::uint8_t*>(p)[i];
    case DType::i16:
      return static_cast<const std::int16_t*>(p)[i];
    case DType::u16:
      return static_cast<const std::uint16_t*>(p)[i];
    case DType::i32:
      return static_cast<const std::int32_t*>(p)[i];
    case DType::u32:
      return static_cast<const std::uint32_t*>(p)[i];
    case DType::i64:
      return static_cast<double>(static_cast<const std::int64_t*>(p)[i]);
    case DType::u64:
      return static_cast<double>(static_cast<const std::uint64_t*>(p)[i]);
    case DType::boolean:
      return static_cast<const std::uint8_t*>(p)[i] != 0 ? 1.0 : 0.0;
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::i3:
    case DType::i5:
    case DType::i6:
      return packed_element(p, t.dtype(), i);
    case DType::string:
      return 0.0;
  }
  return 0.0;
}

std::int64_t element_as_i64(const Tensor& t, std::size_t i) {
  if (t.dtype() == DType::i64) return static_cast<const std::int64_t*>(t.data())[i];
  if (t.dtype() == DType::u64) return static_cast<std::int64_t>(static_cast<const std::uint64_t*>(t.data())[i]);
  // Toward zero; what no 64-bit integer can hold saturates, NaN is 0 (the conversion itself would be undefined).
  const double value = element_as_double(t, i);
  if (value != value) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

template <class T>
void fill_integers(const Tensor& from, Tensor& to) {
  T* out = static_cast<T*>(to.mutable_data());
  for (std::size_t i = 0; i < from.size(); ++i) out[i] = static_cast<T>(element_as_i64(from, i));
}

}  // namespace

std::shared_ptr<void> allocate_aligned(std::size_t bytes) {
  constexpr std::size_t kLine = 64, kLargePage = std::size_t{2} << 20;
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kLine - 1) / kLine * kLine;
  if (rounded < kLargePage) return {std::aligned_alloc(kLine, rounded), std::free};
  void* memory = nullptr;
  if (::posix_memalign(&memory, kLargePage, rounded) != 0) return nullptr;
  // Fewer misses of the address cache are worth a quarter of the bandwidth of weights read once. A wish: where the
  // system grants none, and for the rest past the last whole page, small pages serve as well.
  ::madvise(memory, rounded / kLargePage * kLargePage, MADV_HUGEPAGE);
  return {memory, std::free};
}

Result<Tensor> Tensor::zeros(DType dtype, Shape shape) {
  CTK_TRY(const std::size_t count, element_count(shape));
  auto memory = allocate_aligned(byte_size(dtype, count));
  if (memory == nullptr) {
    return input_error("out of memory: a tensor of shape " + to_string(shape) + " needs " +
                       std::to_string(byte_size(dtype, count)) + " bytes");
  }
  std::memset(memory.get(), 0, byte_size(dtype, count));
  const void* data = memory.get();
  return borrowed(dtype, std::move(shape), data, std::move(memory));
}

Tensor Tensor::borrowed(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.size_ = elements(shape);
  tensor.shape_ = std::move(shape);
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::reshaped(Shape shape) const {
  assert(elements(shape) == size_);
  Tensor tensor = *this;
  tensor.shape_ = std::move(shape);
  return tensor;
}

Tensor Tensor::clone() const {
  Tensor copy = zeros(dtype_, shape_).value();
  if (bytes() != 0) std::memcpy(copy.mutable_data(), data_, bytes());
  return copy;
}

Result<Tensor> to_f32(const Tensor& tensor) {
  return cast(tensor, DType::f32);
}

Result<std::vector<std::int64_t>> to_i64(const Tensor& tensor) {
  if (tensor.dtype() == DType::string) return input_error("expected integers, found strings");
  std::vector<std::int64_t> out(tensor.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element_as_i64(tensor, i);
  return out;
}

Result<Tensor> cast(const Tensor& from, DType dtype) {
  if (from.dtype() == dtype) return from;
  if (from.dtype() == DType::string || bits_of(dtype) < 8) {
    return input_error("cannot convert " + std::string(name_of(from.dtype())) + " to " + std::string(name_of(dtype)));
  }
  CTK_TRY(Tensor to, Tensor::zeros(dtype, from.shape()));
  const std::size_t n = from.size();
  switch (dtype) {
    case DType::f32: {
      auto* out = static_cast<float*>(to.mutable_data());
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(element_as_double(from, i));
      break;
    }
    case DType::f64: {
      auto* out = static_cast<double*>(to.mutable_data());
      for (std::size_t i = 0; i < n; ++i) out[i] = element_as_double(from, i);
      break;
    }
    case DType::f16: {
      auto* out = static_cast<std::uint16_t*>(to.mutable_data());
      for (std::size_t i = 0; i < n; ++i) out[i] = float_to_half(static_cast<float>(element_as_double(from, i)));
      break;
    }
    case DType::bf16: {
      auto* out = static_cast<std::uint16_t*>(to.mutable_data());
      for (std::size_t i = 0; i < n; ++i) out[i] = float_to_bfloat(static_cast<float>(element_as_double(from, i)));
      break;
    }
    case DType::boolean: {
      auto* out = static_cast<std::uint8_t*>(to.mutable_data());
      for (std::size_t i = 0; i < n; ++i) out[i] = element_as_double(from, i) != 0.0 ? 1 : 0;
      break;
    }
    case DType::i8:
      fill_integers<std::int8_t>(from, to);
      break;
    case DType::u8:
      fill_integers<std::uint8_t>(from, to);
      break;
    case DType::i16:
      fill_integers<std::int16_t>(from, to);
      break;
    case DType::u16:
      fill_integers<std::uint16_t>(from, to);
      break;
    case DType::i32:
      fill_integers<std::int32_t>(from, to);
      break;
    case DType::u32:
      fill_integers<std::uint32_t>(from, to);
      break;
    case DType::i64:
      fill_integers<std::int64_t>(from, to);
      break;
    case DType::u64:
      fill_integers<std::uint64_t>(from, to);
      break;
    default:
      break;
  }
  return to;
}

}  // namespace ctk

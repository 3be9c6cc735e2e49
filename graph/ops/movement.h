// What the operators that move elements share: checked access to attributes and control inputs, and strided copies.
// Nothing here allocates but to word an error, so evaluate() may use all of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph/ops/check.h"

namespace ctk::graph {

using Dims = std::array<std::int64_t, kMaxRank>;

// Errors: input (more than kMaxRank dimensions).
Status check_rank(std::size_t rank);
// Errors: input (packed 4-bit and string elements have no address of their own).
Status check_movable(DType dtype);
inline std::size_t element_bytes(DType dtype) {
  return static_cast<std::size_t>(bits_of(dtype)) / 8;
}

// A list of integers read from a control input (i32 or i64, rank 0 or 1); absent when `data` is null.
struct Integers {
  const void* data = nullptr;
  bool is_wide = true;  // i64
  std::size_t count = 0;

  bool is_present() const { return data != nullptr; }
  std::int64_t operator[](std::size_t i) const {
    return is_wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
};
// Input `index` as integers; absent when omitted. Errors: input (not integers, not a list, contents not known: "shape
// depends on data"). `what` is the input's ONNX name.
Result<Integers> known_integers(std::span<const InferInput> inputs, std::size_t index, std::string_view what);
Result<Integers> integers_of(std::span<const TensorView> inputs, std::size_t index, std::string_view what);

inline bool is_present(std::span<const TensorView> inputs, std::size_t index) {
  return index < inputs.size() && inputs[index].data != nullptr;
}
// Row-major strides of `shape`, in elements. Rank must be at most kMaxRank.
Dims strides_of(const Shape& shape);

// to[i0,...,in] = from[i0*strides[0] + ... + in*strides[n]], `to` dense over `dims`. Strides in elements, any sign.
void copy_strided(const std::byte* from, std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                  std::size_t element_size, std::byte* to);
// The whole of `from`, under whatever shape `to` has. Errors: internal (sizes differ).
Status copy_all(const TensorView& from, const MutableTensorView& to);

// Walks the positions of `dims` in row-major order: false after the last.
bool advance(Dims& index, std::span<const std::int64_t> dims);

}  // namespace ctk::graph

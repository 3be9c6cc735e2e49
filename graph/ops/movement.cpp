#include "graph/ops/movement.h"

#include <cstring>

namespace ctk::graph {
namespace {

Result<Integers> integers(const TensorView& view, std::string_view what) {
  if (view.dtype != DType::i64 && view.dtype != DType::i32) {
    return input_error(std::string(what) + ": expected i64 or i32, found " + std::string(name_of(view.dtype)));
  }
  if (view.shape.size() > 1) {
    return input_error(std::string(what) + ": expected a list of integers, found shape " + to_string(view.shape));
  }
  return Integers{view.data, view.dtype == DType::i64, view.size()};
}

template <class T>
void copy_row(const std::byte* from, std::int64_t count, std::int64_t stride, std::byte* to) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) target[i] = source[i * stride];
}

}  // namespace

Status check_rank(std::size_t rank) {
  if (rank <= kMaxRank) return {};
  return input_error("expected at most " + std::to_string(kMaxRank) + " dimensions, found " + std::to_string(rank));
}

Status check_movable(DType dtype) {
  if (bits_of(dtype) >= 8) return {};
  return input_error("expected elements of whole bytes, found " + std::string(name_of(dtype)));
}

Result<Integers> known_integers(std::span<const InferInput> inputs, std::size_t index, std::string_view what) {
  if (!is_present(inputs, index)) return Integers{};
  const ValueInfo& info = inputs[index].info;
  if (!info.constant.has_value()) {
    return input_error("shape depends on data: input " + std::to_string(index) + " (" + std::string(what) +
                       ") must be known before the run. Make it a constant in the model");
  }
  return integers(info.constant->view(), what);
}

Result<Integers> integers_of(std::span<const TensorView> inputs, std::size_t index, std::string_view what) {
  if (!is_present(inputs, index)) return Integers{};
  return integers(inputs[index], what);
}

Dims strides_of(const Shape& shape) {
  Dims strides{};
  std::uint64_t stride = 1;  // unsigned: an empty tensor may claim dimensions whose product wraps; none is ever used
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(shape[i]);
  }
  return strides;
}

bool advance(Dims& index, std::span<const std::int64_t> dims) {
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

void copy_strided(const std::byte* from, std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                  std::size_t element_size, std::byte* to) {
  for (std::int64_t dim : dims) {
    if (dim == 0) return;
  }
  // Trailing dimensions that lie densely in the source move as one block.
  std::size_t rank = dims.size();
  std::int64_t block = 1;
  while (rank > 0 && (dims[rank - 1] == 1 || strides[rank - 1] == block)) block *= dims[--rank];
  const std::size_t block_bytes = static_cast<std::size_t>(block) * element_size;
  if (rank == 0) {
    std::memcpy(to, from, block_bytes);
    return;
  }
  const std::int64_t count = dims[rank - 1], stride = strides[rank - 1];
  const auto outer = dims.first(rank - 1);
  Dims index{};
  do {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < outer.size(); ++d) offset += index[d] * strides[d];
    const std::byte* source = from + offset * static_cast<std::int64_t>(element_size);
    if (block == 1 && element_size == 4) {
      copy_row<std::uint32_t>(source, count, stride, to);
    } else if (block == 1 && element_size == 1) {
      copy_row<std::uint8_t>(source, count, stride, to);
    } else if (block == 1 && element_size == 8) {
      copy_row<std::uint64_t>(source, count, stride, to);
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + static_cast<std::size_t>(i) * block_bytes,
                    source + i * stride * static_cast<std::int64_t>(element_size), block_bytes);
      }
    }
    to += static_cast<std::size_t>(count) * block_bytes;
  } while (advance(index, outer));
}

Status copy_all(const TensorView& from, const MutableTensorView& to) {
  if (from.dtype != to.dtype || from.size() != to.size()) {
    return internal_error("cannot move " + to_string(from.shape) + " into " + to_string(to.shape));
  }
  const std::size_t bytes = byte_size(from.dtype, from.size());
  if (bytes != 0 && from.data != to.data) std::memmove(to.data, from.data, bytes);
  return {};
}

}  // namespace ctk::graph

// Reductions over any set of axes, without allocation, up to rank kMaxRank.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>

#include "graph/ops/check.h"

namespace ctk::graph {

using AxisSet = std::bitset<kMaxRank>;

// The axes a Reduce node sums over: all of `axes` (i64, may be empty or absent: then all, or none with
// noop_with_empty_axes). Does not allocate unless it fails. Errors: input (axis out of range).
Result<AxisSet> reduced_axes(const Node& node, const TensorView& axes, std::size_t rank);

// Shape rule of ReduceSum and ReduceMean: data, axes (known before the run), keepdims.
InferResult infer_reduce(const Node& node, std::span<const InferInput> inputs, EvaluateFunction evaluate,
                         std::initializer_list<DType> allowed);

// out[o] = finish(sum of in over the reduced axes, in row-major order); Sum is the type it is summed in.
template <class Sum, class T, class Finish>
void reduce(const TensorView& in, const AxisSet& axes, T* out, Finish finish) {
  struct Loop {
    std::array<std::size_t, kMaxRank> sizes{}, strides{}, index{};
    std::size_t rank = 0, count = 1;
    void add(std::size_t size, std::size_t stride) {  // from the innermost dimension outwards
      count *= size;
      if (size == 1) return;
      if (rank > 0 && stride == strides[rank - 1] * sizes[rank - 1]) {
        sizes[rank - 1] *= size;
        return;
      }
      sizes[rank] = size;
      strides[rank++] = stride;
    }
    // Steps to the next position; returns the change of offset (modulo 2^64), zero again after the last one.
    std::size_t step(std::size_t from) {
      std::size_t change = 0;
      for (std::size_t d = from; d < rank; ++d) {
        change += strides[d];
        if (++index[d] < sizes[d]) break;
        change -= strides[d] * sizes[d];
        index[d] = 0;
      }
      return change;
    }
  } kept, reduced;
  std::size_t running = 1;
  for (std::size_t d = in.shape.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(in.shape[d]);
    (axes[d] ? reduced : kept).add(size, running);
    running *= size;
  }
  const T* data = in.as<T>();
  const std::size_t row = reduced.rank > 0 ? reduced.sizes[0] : 1;
  const std::size_t row_stride = reduced.strides[0];
  std::size_t base = 0;
  for (std::size_t o = 0; o < kept.count; ++o) {
    Sum sum = 0;
    std::size_t offset = base;
    for (std::size_t done = 0; done < reduced.count; done += row) {
      for (std::size_t i = 0; i < row; ++i) sum += static_cast<Sum>(data[offset + i * row_stride]);
      offset += reduced.step(1);
    }
    out[o] = finish(sum);
    base += kept.step(0);
  }
}

}  // namespace ctk::graph

// Elementwise loops with numpy broadcasting, without allocation, up to rank kMaxRank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "graph/ops/check.h"

namespace ctk::graph {

// Walks the output in rows and calls row(offsets, steps, out_offset, count): output element out_offset + i pairs with
// element offsets[k] + i * steps[k] of input k, for i < count; each step is 0 or 1. Neighbouring dimensions that behave
// alike are walked as one, so equal shapes and scalars are a single row. Every input must broadcast to `out`.
template <std::size_t N, class Row>
void for_each_broadcast_row(const Shape& out, const std::array<const Shape*, N>& inputs, Row&& row) {
  std::array<std::size_t, kMaxRank> sizes{};
  std::array<std::array<std::size_t, kMaxRank>, N> strides{};
  std::array<std::size_t, N> running;
  running.fill(1);
  std::size_t rank = 0;  // dimensions kept, innermost first
  for (std::size_t back = 0; back < out.size(); ++back) {
    const auto size = static_cast<std::size_t>(out[out.size() - 1 - back]);
    if (size == 0) return;
    std::array<std::size_t, N> stride{};
    for (std::size_t k = 0; k < N; ++k) {
      const Shape& shape = *inputs[k];
      const auto dim = back < shape.size() ? static_cast<std::size_t>(shape[shape.size() - 1 - back]) : 1;
      if (dim != 1) stride[k] = running[k];
      running[k] *= dim;
    }
    if (size == 1) continue;
    bool merges = rank > 0;
    for (std::size_t k = 0; k < N && merges; ++k) merges = stride[k] == strides[k][rank - 1] * sizes[rank - 1];
    if (merges) {
      sizes[rank - 1] *= size;
      continue;
    }
    sizes[rank] = size;
    for (std::size_t k = 0; k < N; ++k) strides[k][rank] = stride[k];
    ++rank;
  }

  std::array<std::size_t, N> offsets{};
  std::array<std::size_t, N> steps{};
  const std::size_t count = rank > 0 ? sizes[0] : 1;
  for (std::size_t k = 0; k < N; ++k) steps[k] = strides[k][0];
  std::array<std::size_t, kMaxRank> index{};
  for (std::size_t out_offset = 0;; out_offset += count) {
    row(offsets, steps, out_offset, count);
    std::size_t d = 1;
    for (; d < rank; ++d) {
      for (std::size_t k = 0; k < N; ++k) offsets[k] += strides[k][d];
      if (++index[d] < sizes[d]) break;
      for (std::size_t k = 0; k < N; ++k) offsets[k] -= strides[k][d] * sizes[d];
      index[d] = 0;
    }
    if (d >= rank) return;
  }
}

// out = f(in), element by element.
template <class In, class Out, class F>
void map_unary(const TensorView& in, const MutableTensorView& out, F f) {
  const In* x = in.as<In>();
  Out* y = out.as<Out>();
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) y[i] = f(x[i]);
}

// out = f(a, b) with broadcasting.
template <class In, class Out, class F>
void map_binary(const TensorView& a, const TensorView& b, const MutableTensorView& out, F f) {
  using Pair = std::array<std::size_t, 2>;
  for_each_broadcast_row<2>(out.shape, {&a.shape, &b.shape},
                            [&](const Pair& offsets, const Pair& steps, std::size_t out_offset, std::size_t count) {
                              const In* x = a.as<In>() + offsets[0];
                              const In* y = b.as<In>() + offsets[1];
                              Out* z = out.as<Out>() + out_offset;
                              if (steps[0] == 1 && steps[1] == 1) {
                                for (std::size_t i = 0; i < count; ++i) z[i] = f(x[i], y[i]);
                              } else if (steps[0] == 1) {
                                for (std::size_t i = 0; i < count; ++i) z[i] = f(x[i], y[0]);
                              } else {
                                for (std::size_t i = 0; i < count; ++i) z[i] = f(x[0], y[i * steps[1]]);
                              }
                            });
}

// out = f(out, in), where `in` broadcasts to `out`.
template <class T, class F>
void combine_in_place(const MutableTensorView& out, const TensorView& in, F f) {
  using One = std::array<std::size_t, 1>;
  for_each_broadcast_row<1>(out.shape, {&in.shape},
                            [&](const One& offsets, const One& steps, std::size_t out_offset, std::size_t count) {
                              const T* x = in.as<T>() + offsets[0];
                              T* y = out.as<T>() + out_offset;
                              if (steps[0] == 1) {
                                for (std::size_t i = 0; i < count; ++i) y[i] = f(y[i], x[i]);
                              } else {
                                for (std::size_t i = 0; i < count; ++i) y[i] = f(y[i], x[0]);
                              }
                            });
}

// Integer arithmetic wraps around, as in numpy and ONNX Runtime (signed overflow would be undefined).
struct AddValues {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  }
};
struct SubtractValues {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) - static_cast<std::make_unsigned_t<T>>(b));
  }
};
struct MultiplyValues {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
  }
};

// Types that shape arithmetic needs besides f32.
inline constexpr std::initializer_list<DType> kArithmeticTypes = {DType::f32, DType::i32, DType::i64};

// Calls f with a zero of `dtype`, an arithmetic type. Errors: internal (a type infer() has refused).
template <class F>
Status with_arithmetic(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      f(float{});
      return {};
    case DType::i32:
      f(std::int32_t{});
      return {};
    case DType::i64:
      f(std::int64_t{});
      return {};
    default:
      return internal_error("element type " + std::string(name_of(dtype)) + " passed inference");
  }
}

// out = f(in), f(a, b), or f of the result so far and the next input; in the arithmetic type of the output.
template <class F>
Status evaluate_unary(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs, F f) {
  return with_arithmetic(outputs[0].dtype, [&]<class T>(T) { map_unary<T, T>(inputs[0], outputs[0], f); });
}
template <class F>
Status evaluate_binary(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs, F f) {
  return with_arithmetic(outputs[0].dtype, [&]<class T>(T) { map_binary<T, T>(inputs[0], inputs[1], outputs[0], f); });
}
template <class F>
Status evaluate_variadic(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs, F f) {
  return with_arithmetic(outputs[0].dtype, [&]<class T>(T) {
    combine_in_place<T>(outputs[0], inputs[0], [](T, T x) { return x; });
    for (const TensorView& input : inputs.subspan(1)) combine_in_place<T>(outputs[0], input, f);
  });
}

// Shape rule of f(x): one input of one of `allowed`, output alike.
InferResult infer_unary(const Node& node, std::span<const InferInput> inputs, EvaluateFunction evaluate,
                        std::initializer_list<DType> allowed = {DType::f32});

// Shape rule of f(a, b): both of the same type out of `allowed`, output broadcast; of type `result` if given.
InferResult infer_binary(const Node& node, std::span<const InferInput> inputs, EvaluateFunction evaluate,
                         std::initializer_list<DType> allowed, std::optional<DType> result = std::nullopt);

// Shape rule of Min and Max: one or more inputs of the same arithmetic type, output broadcast over all.
InferResult infer_variadic(const Node& node, std::span<const InferInput> inputs, EvaluateFunction evaluate);

}  // namespace ctk::graph

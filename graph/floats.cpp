#include "graph/floats.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/mapped_pages.h"
#include "core/parallel.h"

namespace ctk::graph {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 16;
constexpr std::size_t kLeastReleased = std::size_t{1} << 20;  // bytes; below it a page more or less is no matter

void widen(DType dtype, const std::uint16_t* from, std::size_t count, float* to) {
  if (dtype == DType::bf16) {
    for (std::size_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = half_to_float(from[i]);
  }
}

}  // namespace

bool is_narrow(const Value& value) {
  return value.dtype == DType::f32 && value.constant &&
         (value.constant->dtype() == DType::f16 || value.constant->dtype() == DType::bf16);
}

Tensor floats_of(const Value& value) {
  const Tensor& held = *value.constant;
  if (!is_narrow(value)) return held.dtype() == DType::f32 ? held : to_f32(held).value();
  Tensor floats = Tensor::zeros(DType::f32, held.shape()).value();
  float* to = floats.mutable_values<float>().data();
  const auto* from = static_cast<const std::uint16_t*>(held.data());
  parallel_for(held.size(), kGrain,
               [&](std::size_t begin, std::size_t end) { widen(held.dtype(), from + begin, end - begin, to + begin); });
  if (held.bytes() >= kLeastReleased) release_pages(held.data(), held.bytes());
  return floats;
}

void visit_floats(const Value& value, const std::function<bool(std::span<const float>, std::size_t)>& visit) {
  const Tensor& held = *value.constant;
  const bool narrow = is_narrow(value);
  const Tensor floats = narrow ? Tensor() : floats_of(value);
  std::vector<float> piece(narrow ? std::min(kGrain, held.size()) : 0);
  for (std::size_t first = 0; first < held.size(); first += kGrain) {
    const std::size_t count = std::min(kGrain, held.size() - first);
    if (narrow) widen(held.dtype(), static_cast<const std::uint16_t*>(held.data()) + first, count, piece.data());
    if (!visit(narrow ? std::span<const float>(piece).first(count) : floats.values<float>().subspan(first, count),
               first))
      break;
  }
  if (narrow && held.bytes() >= kLeastReleased) release_pages(held.data(), held.bytes());
}

void widen_row(const Tensor& matrix, std::size_t row, float* out) {
  const auto columns = static_cast<std::size_t>(matrix.shape()[1]);
  widen(matrix.dtype(), static_cast<const std::uint16_t*>(matrix.data()) + row * columns, columns, out);
}

ValueId add_copy(Graph& graph, std::string name, ValueId of) {
  const DType dtype = graph.value(of).dtype;
  const ValueId copy = graph.add_constant(std::move(name), *graph.value(of).constant);
  graph.value(copy).dtype = dtype;
  return copy;
}

void widen_constants(Graph& graph) {
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    Value& value = graph.value(ValueId{static_cast<std::uint32_t>(i)});
    if (!value.is_removed && is_narrow(value)) value.constant = floats_of(value);
  }
}

}  // namespace ctk::graph

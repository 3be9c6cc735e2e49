// Low-rank correction: minimises tr((E - U V) H (E - U V)^T) over U [rows, r], V [r, columns], E = W - Q(W).
// In: E, H = sum x x^T. Out: U with orthonormal columns, V = U^T E: the leading eigenvectors of E H E^T, since the best
// approximation of E H^(1/2) projects it on its leading left singular vectors.
// Cost: subspace iteration, kSweeps times (r + 8) * (2 rows * columns + columns^2) multiply-adds.
// Source: Zhang et al., LQER, 2024. Differs: the whole second moment is the metric, not its diagonal; no SVD is taken.
#include "compress/quantize/low_rank.h"

#include <algorithm>
#include <cmath>

#include "calibrate/packed_matrix.h"
#include "compress/quantize/coordinate_descent.h"
#include "core/random.h"

namespace ctk::quantization {
namespace {

using calibrate::times_transposed;
using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr int kSweeps = 24;
constexpr std::size_t kMore = 8;  // directions beyond the rank, so that the last one wanted converges as well

// Rows made orthonormal; one that depends on those before it becomes 0.
void orthonormalize(std::vector<float>& rows, std::size_t count, std::size_t length) {
  for (std::size_t r = 0; r < count; ++r) {
    float* row = rows.data() + r * length;
    double before = 0, after = 0;
    for (std::size_t i = 0; i < length; ++i) before += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (std::size_t p = 0; p < r; ++p) {
        const float* other = rows.data() + p * length;
        double dot = 0;
        for (std::size_t i = 0; i < length; ++i) dot += static_cast<double>(row[i]) * static_cast<double>(other[i]);
        for (std::size_t i = 0; i < length; ++i) row[i] -= static_cast<float>(dot) * other[i];
      }
    }
    for (std::size_t i = 0; i < length; ++i) after += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    // 1e-10: what float rounding leaves of a row that was a sum of others.
    const double share = after > 1e-10 * before && after > 0 ? 1 / std::sqrt(after) : 0;
    for (std::size_t i = 0; i < length; ++i) row[i] = static_cast<float>(static_cast<double>(row[i]) * share);
  }
}

std::vector<float> transposed(std::span<const float> a, std::size_t rows, std::size_t columns) {
  std::vector<float> t(a.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) t[c * rows + r] = a[r * columns + c];
  }
  return t;
}

ValueId half_constant(Graph& graph, const std::string& name, const Shape& shape, int axis,
                      std::span<const float> values) {
  const ValueId id =
      graph.add_constant(graph.unique_name(name), Tensor::of<float>(shape, {values.begin(), values.end()}));
  QuantTensor halves;
  halves.scheme = {16, 32, Granularity::per_channel, 0};
  halves.channel_axis = axis;
  halves.method = "fp16";
  halves.codes = cast(*graph.value(id).constant, DType::f16).value();
  graph.value(id).quantized = std::make_shared<const QuantTensor>(std::move(halves));
  graph.value(id).constant.reset();
  return id;
}

}  // namespace

LowRank fit_low_rank(std::span<const float> error, std::size_t rows, std::size_t columns,
                     std::span<const float> hessian, std::size_t rank) {
  LowRank found;
  found.rank = std::min({rank, rows, columns});
  const std::size_t width = std::min(found.rank + kMore, rows);
  const std::vector<float> flipped = transposed(error, rows, columns);
  Random random(1, "subspace");
  std::vector<float> basis(width * rows);  // each row a direction of outputs
  for (float& value : basis) value = static_cast<float>(random.normal());
  orthonormalize(basis, width, rows);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    const std::vector<float> inputs = times_transposed(basis, width, flipped, columns, rows);        // u^T E
    const std::vector<float> weighted = times_transposed(inputs, width, hessian, columns, columns);  // .. H
    basis = times_transposed(weighted, width, error, rows, columns);                                 // .. E^T
    orthonormalize(basis, width, rows);
  }
  basis.resize(found.rank * rows);  // the directions stand in order of what they carry
  found.down = times_transposed(basis, found.rank, flipped, columns, rows);
  found.up = transposed(basis, found.rank, rows);
  found.error_before = output_error(error, rows, hessian, columns);
  std::vector<float> left(error.begin(), error.end());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < found.rank; ++k) {
      for (std::size_t c = 0; c < columns; ++c)
        left[r * columns + c] -= found.up[r * found.rank + k] * found.down[k * columns + c];
    }
  }
  found.error = output_error(left, rows, hessian, columns);
  return found;
}

void add_low_rank(Graph& graph, const graph::Layer& layer, const LowRank& correction) {
  const std::string address = graph.address(layer.node);
  const auto rank = static_cast<std::int64_t>(correction.rank);
  const ValueId result = graph.node(layer.node).outputs[0];
  const ValueId coded = graph.add_value(graph.unique_name(address + ".coded"), DType::f32);
  graph.move_producer(result, coded);
  if (graph.address(layer.node) != address) graph.node(layer.node).name = address;
  for (const graph::NodeId id : graph.order()) {  // what the layer computed in its last step comes after the sum now
    if (graph.node(id).absorbed_by == layer.node) graph.node(id).absorbed_by = {};
  }
  const auto add_sum = [&](ValueId wide) {
    Node sum;
    sum.name = graph.unique_name(address + ".corrected");
    sum.op_type = "Add";
    sum.inputs = {coded, wide};
    sum.outputs = {result};
    graph.add_node(std::move(sum));
  };
  const Node& own = graph.node(layer.node);
  const bool is_conv = own.op == graph::Op::Conv;
  const graph::Attributes windows = own.attributes;
  const auto product = [&](const std::string& part, ValueId x, const Shape& shape, std::span<const float> values,
                           bool has_window) {
    Node node;
    node.name = graph.unique_name(address + part);
    node.op_type = is_conv ? "Conv" : "MatMul";
    if (is_conv && has_window) node.attributes = windows;
    node.scheme = {16, 32, Granularity::per_channel, 0};
    node.inputs = {x, half_constant(graph, address + part + ".weight", shape, is_conv ? 0 : 1, values)};
    node.outputs = {graph.add_value(graph.unique_name(address + part + ".y"), DType::f32)};
    const ValueId y = node.outputs[0];
    graph.add_node(std::move(node));
    return y;
  };
  if (is_conv) {  // the window once for `rank` channels, then a mixture of them at each place
    const QuantTensor& weight = *graph.value(layer.weight).quantized;
    Shape window = weight.codes.shape(), place(window.size(), 1);
    window[0] = place[1] = rank;
    place[0] = layer.channels;
    const ValueId thin = product(".low_rank_down", layer.input, window, correction.down, true);
    add_sum(product(".low_rank_up", thin, place, correction.up, false));
    return;
  }
  const std::size_t rows = correction.up.size() / correction.rank;
  const std::vector<float> down =
      transposed(correction.down, correction.rank, correction.down.size() / correction.rank);
  const std::vector<float> up = transposed(correction.up, rows, correction.rank);
  const ValueId thin = product(".low_rank_down", layer.input, {layer.reduction, rank}, down, true);
  add_sum(product(".low_rank_up", thin, {rank, layer.channels}, up, true));
}

}  // namespace ctk::quantization

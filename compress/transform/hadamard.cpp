// Rotates what coding has trouble with: the residual stream by one orthogonal matrix Q, and each head of values by
// another, both folded into weights. Minimises nothing: outliers are spread over all features.
// In: an RMSNorm decoder of floats, a seed. Out: the same function: embeddings E Q, readers W diag(g) Q with norm
// scales g set to 1, writers Q^T W. Cost: rows * n log n for a weight of n inputs. Source: Ashkboos et al., QuaRot,
// 2024, and Liu et al., SpinQuant, 2024 (R1 and R2). Differs: no rotation is done as the network runs, so the inputs of
// down and the keys stay as they were; n = 2^p * m takes a random orthogonal m x m beside the Hadamard matrix.
#include <algorithm>
#include <set>

#include "compress/transform/methods.h"
#include "compress/transform/residual_stream.h"
#include "compress/transform/rotation.h"
#include "graph/passes/rewrite.h"

namespace ctk::transform {
namespace {

using graph::Graph;
using graph::Layer;
using graph::NodeId;
using graph::ValueId;

// The constant as one that only `node` reads; others keep the original.
Tensor& own_constant(Graph& graph, NodeId node, std::size_t input, std::string_view ending, std::string* copied) {
  const ValueId id = graph.node(node).inputs[input];
  Tensor copy = graph.value(id).constant->clone();
  if (graph.value(id).consumers.size() == 1 && !graph.is_output(id)) {
    graph.value(id).constant = std::move(copy);
    return *graph.value(id).constant;
  }
  const std::string name = graph.unique_name(graph.value(id).name + std::string(ending));
  if (copied != nullptr) *copied += (copied->empty() ? "" : ", ") + graph.address(node);
  const ValueId own = graph.add_constant(name, std::move(copy));
  graph.set_input(node, input, own);
  return *graph.value(own).constant;
}

std::size_t input_axis(const Layer& layer) {
  return layer.channel_axis == 0 ? 1 : 0;
}

void scale_inputs_of(Tensor& weight, std::size_t axis, std::span<const float> factors) {
  const auto columns = static_cast<std::size_t>(weight.shape()[1]);
  const auto values = weight.mutable_values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[axis == 0 ? i / columns : i % columns];
}

void turn_output(Graph& graph, const Layer& layer, const Rotation& rotation) {
  rotation.apply_along(own_constant(graph, layer.node, 1, "_turned", nullptr),
                       static_cast<std::size_t>(layer.channel_axis));
  if (!layer.bias.is_valid()) return;
  Tensor& bias = own_constant(graph, layer.node, 2, "_turned", nullptr);
  const auto channels = static_cast<std::size_t>(layer.channels);
  if (bias.size() == 1) {
    const std::vector<float> same(channels, bias.values<float>()[0]);
    bias = Tensor::of<float>({layer.channels}, same);
  }
  rotation.apply_along(bias, bias.shape().size() - 1);
}

// A weight that a head and an embedding share becomes two: only one of them takes the norm's scale.
std::string turn_stream(Graph& graph, const ResidualStream& stream, const Rotation& rotation) {
  std::string copied;
  std::set<NodeId> done;
  for (const Layer& reader : stream.readers) {
    if (!done.insert(reader.node).second) continue;
    const NodeId norm = graph.value(reader.input).producer;
    const auto scale = graph.value(graph.node(norm).inputs[1]).constant->values<float>();
    Tensor& weight = own_constant(graph, reader.node, 1, "_for_" + graph.address(reader.node), &copied);
    scale_inputs_of(weight, input_axis(reader), scale);
    rotation.apply_along(weight, input_axis(reader));
  }
  for (const NodeId norm : stream.norms)
    std::ranges::fill(own_constant(graph, norm, 1, "_of_ones", nullptr).mutable_values<float>(), 1.0f);
  for (const NodeId embedding : stream.embeddings)
    rotation.apply_along(own_constant(graph, embedding, 0, "_turned", nullptr), 1);
  for (const Layer& writer : stream.writers) turn_output(graph, writer, rotation);
  for (const NodeId bias : stream.biases) {
    const std::size_t at = graph::constant_of(graph, graph.node(bias), 0) != nullptr ? 0 : 1;
    Tensor& constant = own_constant(graph, bias, at, "_turned", nullptr);
    rotation.apply_along(constant, constant.shape().size() - 1);
  }
  return copied;
}

}  // namespace

std::string refuse_hadamard(const Graph& graph) {
  const auto stream = find_residual_stream(graph);
  return stream ? std::string() : stream.error().message;
}

Result<Transformed> run_hadamard(const Request& request) {
  CTK_TRY(const ResidualStream stream, find_residual_stream(request.graph));
  Transformed result{request.graph.clone(), {}};
  const Rotation rotation(stream.features, request.seed, "rotation of the residual stream");
  const std::string copied = turn_stream(result.graph, stream, rotation);
  exporter::TransformRow row;
  row.method = "hadamard";
  row.layers = "residual stream of " + std::to_string(stream.features) +
               " features: " + std::to_string(stream.readers.size()) + " layers that read it, " +
               std::to_string(stream.writers.size()) + " that add to it";
  row.where = std::to_string(stream.norms.size()) + " norms, now of scale 1, and the embedding";
  if (!copied.empty()) row.reason = copied + " shared a weight with others and has one of its own now";
  result.rows.push_back(std::move(row));
  std::size_t number = 0;
  for (const ValueHeads& heads : find_value_heads(result.graph)) {
    const Rotation turn(heads.size, request.seed, "rotation of values " + std::to_string(number++));
    turn_output(result.graph, heads.values, turn);
    turn.apply_along(own_constant(result.graph, heads.output.node, 1, "_turned", nullptr), input_axis(heads.output));
    result.rows.push_back({"hadamard",
                           result.graph.address(heads.output.node),
                           result.graph.address(heads.values.node),
                           {},
                           {},
                           {},
                           "each head of " + std::to_string(heads.size) + " values"});
  }
  CTK_CHECK(graph::verify(result.graph));
  return result;
}

}  // namespace ctk::transform

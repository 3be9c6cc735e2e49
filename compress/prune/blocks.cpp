#include "compress/prune/blocks.h"

#include <algorithm>
#include <cmath>

#include "compress/quantize/stream.h"
#include "core/printable.h"
#include "graph/layer.h"
#include "graph/shapes.h"

namespace ctk::pruning {
namespace {

using graph::Cut;
using graph::Graph;
using graph::NodeId;
using graph::ValueId;

bool has_attention(const Graph& graph, const WholeBlock& block) {
  for (std::size_t at = block.from.place; at < block.to.place; ++at) {
    const graph::Op op = graph.node(graph.order()[at]).op;
    if (op == graph::Op::Attention || op == graph::Op::Softmax) return true;
  }
  return false;
}

std::string first_layer(const Graph& graph, std::size_t first, std::size_t last) {
  for (std::size_t at = first; at < last; ++at) {
    if (graph::layer_of(graph, graph.order()[at])) return graph.address(graph.order()[at]);
  }
  return "";
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    ab += x * y, aa += x * x, bb += y * y;
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;  // a value of zeros is like nothing
}

}  // namespace

Result<std::vector<WholeBlock>> whole_blocks(const Graph& graph, const std::vector<Shape>& input_shapes) {
  CTK_TRY(const auto infos, graph::infer_shapes(graph, input_shapes));
  const std::vector<Cut> cuts = graph::cuts_of(graph);
  const auto branches = [&](const Cut& cut) { return graph.value(cut.value).consumers.size() > 1; };
  std::vector<WholeBlock> halves;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (!branches(cuts[i])) continue;
    std::size_t to = i + 1;
    while (to < cuts.size() && !branches(cuts[to])) ++to;
    if (to == cuts.size()) to = i + 1;  // behind the last block the network goes on without branches
    const auto &a = infos[cuts[i].value.index].info, &b = infos[cuts[to].value.index].info;
    if (a.shape != b.shape || a.dtype != DType::f32 || b.dtype != DType::f32 || graph.is_output(cuts[to].value))
      continue;
    WholeBlock block{first_layer(graph, cuts[i].place, cuts[to].place), cuts[i], cuts[to]};
    if (!block.name.empty()) halves.push_back(std::move(block));
  }
  std::vector<WholeBlock> blocks;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    WholeBlock block = halves[i];
    const bool has_mate = i + 1 < halves.size() && halves[i + 1].from.value == block.to.value;
    if (has_attention(graph, block) && has_mate && !has_attention(graph, halves[i + 1])) block.to = halves[++i].to;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Result<std::vector<double>> influence_of(const Graph& graph, const std::vector<WholeBlock>& blocks,
                                         const data::Split& split, std::size_t most_samples) {
  quantization::Stream stream(graph);
  const std::size_t count = std::min(split.count(), most_samples);
  for (std::size_t i = 0; i < count; ++i) {
    CTK_TRY(const data::Batch sample, split.read(i, i + 1));
    CTK_CHECK(stream.begin(sample.inputs));
  }
  std::vector<double> influence;
  for (const WholeBlock& block : blocks) {
    CTK_CHECK(stream.advance(block.from.place));
    std::vector<Tensor> before;
    for (std::size_t i = 0; i < count; ++i) before.push_back(stream.value(i, block.from.value));
    CTK_CHECK(stream.advance(block.to.place));
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
      sum += 1 - cosine(before[i].values<float>(), stream.value(i, block.to.value).values<float>());
    influence.push_back(count == 0 ? 0 : sum / static_cast<double>(count));
  }
  return influence;
}

void remove_block(Graph& graph, const WholeBlock& block) {
  const std::vector<NodeId> inside(graph.order().begin() + static_cast<std::ptrdiff_t>(block.from.place),
                                   graph.order().begin() + static_cast<std::ptrdiff_t>(block.to.place));
  graph.replace_uses(block.to.value, block.from.value);
  for (auto node = inside.rbegin(); node != inside.rend(); ++node) {
    const bool is_read = std::ranges::any_of(graph.node(*node).outputs, [&](ValueId output) {
      return output.is_valid() && (!graph.value(output).consumers.empty() || graph.is_output(output));
    });
    if (!is_read) graph.remove_node(*node);
  }
  graph.remove_dead_values();
}

Result<std::vector<RemovedBlock>> remove_least(Graph& graph, std::int64_t count, const std::vector<Shape>& input_shapes,
                                               const data::Split& split, std::size_t most_samples) {
  std::vector<RemovedBlock> removed;
  for (std::int64_t i = 0; i < count; ++i) {
    CTK_TRY(const std::vector<WholeBlock> blocks, whole_blocks(graph, input_shapes));
    if (blocks.empty()) {
      return config_error("blocks: expected at most " + std::to_string(i) +
                          ", the blocks whose input and output have one shape and add up, found \"" +
                          std::to_string(count) + "\". Lower it");
    }
    CTK_TRY(const std::vector<double> influence, influence_of(graph, blocks, split, most_samples));
    const auto least = static_cast<std::size_t>(std::ranges::min_element(influence) - influence.begin());
    removed.push_back({blocks[least].name, influence[least]});
    remove_block(graph, blocks[least]);
  }
  return removed;
}

}  // namespace ctk::pruning

// Importance from what the network computes on samples.
//   activation: mean |x| over the inputs of the layers that read the unit.
//   taylor:     mean over samples of (sum of x dL/dx over the unit's places)^2, L = -log p(label drawn from the
//   network):
//               the squared first-order change of the loss when the unit becomes 0. Molchanov et al., 2017 and 2019.
//               Differs: labels are drawn, so none are needed.
//   hessian:    sum over the readers of trace(W_u H_uu W_u^T), H = mean x x^T: the squared error of their outputs when
//               the unit becomes 0 and nothing is fitted.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calibrate/reverse/reverse.h"
#include "compress/prune/importance.h"
#include "compress/prune/read_layers.h"
#include "compress/prune/repair.h"
#include "compress/quantize/stream.h"
#include "compress/sensitivity/forward.h"
#include "compress/sensitivity/label_gradient.h"

namespace ctk::pruning {
namespace {

using graph::CoupledGroup;
using graph::Layer;
using graph::ValueId;

// Calls each(group number, unit number, layer, channels of its input) for every reading layer of every group.
template <class Each>
void for_each_unit(const graph::Coupling& coupling, const std::vector<Layer>& layers, Each&& each) {
  std::map<graph::NodeId, const Layer*> by_node;
  for (const Layer& layer : layers) by_node[layer.node] = &layer;
  for (std::size_t g = 0; g < coupling.groups().size(); ++g) {
    const CoupledGroup& group = coupling.groups()[g];
    if (!group.reason.empty()) continue;
    for (std::size_t a = 0; a < group.axes.size(); ++a) {
      for (const graph::AxisClaim& claim : group.axes[a].readers) {
        const auto layer = by_node.find(claim.node);
        if (claim.role != graph::AxisRole::consumes || layer == by_node.end()) continue;
        for (std::size_t u = 0; u < group.units.size(); ++u) each(g, u, *layer->second, group.units[u].indices[a]);
      }
    }
  }
}

Scores empty_scores(const graph::Coupling& coupling) {
  Scores scores;
  for (const CoupledGroup& group : coupling.groups()) {
    scores.emplace_back(group.reason.empty() ? group.units.size() : 0, 0.0);
  }
  return scores;
}

// f(value, channel) over a tensor in ONNX layout; channels are dimension 1 of an image, the last of a product.
template <class F>
void for_each_element(const Tensor& tensor, bool is_last, F&& f) {
  const Shape& shape = tensor.shape();
  const auto channels = static_cast<std::size_t>(is_last ? shape.back() : shape[1]);
  std::size_t inner = 1;
  for (std::size_t d = 2; d < shape.size() && !is_last; ++d) inner *= static_cast<std::size_t>(shape[d]);
  for (std::size_t i = 0; i < tensor.size(); ++i) f(i, i / inner % channels);
}

// Sums over samples of a figure of each channel, by the value that holds the channels.
using ChannelSums = std::map<ValueId, std::vector<double>>;

Scores gather(const graph::Coupling& coupling, const std::vector<Layer>& layers, const ChannelSums& sums) {
  Scores scores = empty_scores(coupling);
  for_each_unit(coupling, layers, [&](std::size_t g, std::size_t u, const Layer& layer, const auto& channels) {
    const auto found = sums.find(layer.input);
    if (found == sums.end()) return;
    for (std::int64_t channel : channels) scores[g][u] += found->second[static_cast<std::size_t>(channel)];
  });
  normalize(scores);
  return scores;
}

}  // namespace

Result<Scores> score_activation(const ImportanceTask& task) {
  const graph::Graph& graph = task.coupling.graph();
  const std::vector<Layer> layers = reading_layers(task.coupling);
  std::map<ValueId, bool> is_last;
  for (const Layer& layer : layers) is_last[layer.input] = quantization::is_product(graph, layer);
  ChannelSums sums;
  CTK_CHECK(pipeline::for_each_sample(
      graph, *task.split,
      [&](std::span<const Shape>) -> Result<std::vector<ValueId>> {
        std::vector<ValueId> keep;
        for (const auto& [id, last] : is_last) keep.push_back(id);
        return keep;
      },
      [&](const std::vector<Tensor>&, const calibrate::Values& values, const Tensor&) -> Status {
        for (const auto& [id, last] : is_last) {
          const Tensor& x = values.at(id);
          const auto channels = static_cast<std::size_t>(last ? x.shape().back() : x.shape()[1]);
          std::vector<double>& sum = sums[id];
          sum.resize(channels, 0.0);
          const auto data = x.values<float>();
          const double each = static_cast<double>(channels) / static_cast<double>(std::max<std::size_t>(x.size(), 1));
          for_each_element(
              x, last, [&](std::size_t i, std::size_t c) { sum[c] += each * std::abs(static_cast<double>(data[i])); });
        }
        return {};
      }));
  return gather(task.coupling, layers, sums);
}

Result<Scores> score_taylor(const ImportanceTask& task) {
  const graph::Graph& graph = task.coupling.graph();
  const std::vector<Layer> layers = reading_layers(task.coupling);
  std::map<ValueId, bool> is_last;
  for (const Layer& layer : layers) is_last[layer.input] = quantization::is_product(graph, layer);
  std::vector<ValueId> targets;
  for (const auto& [id, last] : is_last) targets.push_back(id);
  std::optional<calibrate::ReversePass> pass;
  Random random(task.seed, "taylor labels");
  // Of each unit: its changes at all its places add up before they are squared, sample by sample.
  Scores scores = empty_scores(task.coupling);
  CTK_CHECK(pipeline::for_each_sample(
      graph, *task.split,
      [&](std::span<const Shape> shapes) -> Result<std::vector<ValueId>> {
        CTK_TRY(pass, calibrate::ReversePass::create(graph, shapes, targets));
        std::set<ValueId> keep(pass->keep().begin(), pass->keep().end());
        keep.insert(targets.begin(), targets.end());
        return std::vector<ValueId>(keep.begin(), keep.end());
      },
      [&](const std::vector<Tensor>&, const calibrate::Values& values, const Tensor& output) -> Status {
        CTK_TRY(const auto labels, pipeline::draw_label_gradient(output, random));
        ChannelSums sums;
        calibrate::GradientVisitor visitor;
        visitor.target = [&](ValueId id, const Tensor& gradient) -> Status {
          const Tensor& x = values.at(id);
          std::vector<double>& sum = sums[id];
          sum.assign(static_cast<std::size_t>(is_last[id] ? x.shape().back() : x.shape()[1]), 0.0);
          const auto a = x.values<float>(), g = gradient.values<float>();
          for_each_element(x, is_last[id], [&](std::size_t i, std::size_t c) {
            sum[c] += static_cast<double>(a[i]) * static_cast<double>(g[i]);
          });
          return {};
        };
        CTK_CHECK(pass->run(values, labels.gradient, visitor));
        Scores change = empty_scores(task.coupling);
        std::map<std::pair<std::size_t, ValueId>, graph::NodeId> first;  // layers that read one value see one change
        for_each_unit(task.coupling, layers,
                      [&](std::size_t g, std::size_t u, const Layer& layer, const auto& channels) {
                        if (first.try_emplace({g, layer.input}, layer.node).first->second != layer.node) return;
                        const auto found = sums.find(layer.input);
                        if (found == sums.end()) return;
                        double sum = 0;
                        for (std::int64_t channel : channels) sum += found->second[static_cast<std::size_t>(channel)];
                        change[g][u] += sum;
                      });
        for (std::size_t g = 0; g < scores.size(); ++g) {
          for (std::size_t u = 0; u < scores[g].size(); ++u) scores[g][u] += change[g][u] * change[g][u];
        }
        return {};
      }));
  normalize(scores);
  return scores;
}

Result<Scores> score_hessian(const ImportanceTask& task) {
  const graph::Graph& graph = task.coupling.graph();
  CTK_TRY(const InputSums sums, input_sums(task.coupling, *task.split, {}));
  const std::vector<Layer> layers = reading_layers(task.coupling);
  Scores scores = empty_scores(task.coupling);
  std::map<graph::NodeId, LinearMap> maps;
  for (const Layer& layer : layers) maps[layer.node] = map_of(graph, layer);
  for_each_unit(task.coupling, layers, [&](std::size_t g, std::size_t u, const Layer& layer, const auto& channels) {
    const RowSums& x = sums.at(layer.node);
    const LinearMap& map = maps.at(layer.node);
    const std::vector<std::size_t> columns = columns_of(task.coupling, layer, channels);
    double sum = 0;
    for (std::size_t i : columns) {
      for (std::size_t j : columns) {
        double product = 0;
        for (std::size_t o = 0; o < map.intercept.size(); ++o) {
          product += static_cast<double>(map.weights[o * x.k() + i]) * static_cast<double>(map.weights[o * x.k() + j]);
        }
        sum += product * x.product(i, j) / x.rows();
      }
    }
    scores[g][u] += sum;
  });
  normalize(scores);
  return scores;
}

}  // namespace ctk::pruning

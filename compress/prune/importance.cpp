#include "compress/prune/importance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/random.h"

namespace ctk::pruning {
namespace {

using graph::CoupledAxis;
using graph::CoupledGroup;

// Sum of f(w) over the weights of each unit along one axis.
template <class F>
std::vector<double> sums_along(const graph::Graph& graph, const CoupledGroup& group, std::size_t a, F&& f) {
  const CoupledAxis& axis = group.axes[a];
  const Tensor& tensor = *graph.value(axis.value).constant;
  const auto size = static_cast<std::size_t>(tensor.shape()[axis.axis]);
  std::size_t inner = 1;
  for (std::size_t d = axis.axis + 1; d < tensor.shape().size(); ++d) {
    inner *= static_cast<std::size_t>(tensor.shape()[d]);
  }
  std::vector<double> of_index(size, 0.0);
  const auto values = tensor.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) of_index[i / inner % size] += f(static_cast<double>(values[i]));
  std::vector<double> sums(group.units.size(), 0.0);
  for (std::size_t u = 0; u < sums.size(); ++u) {
    for (std::int64_t index : group.units[u].indices[a]) sums[u] += of_index[static_cast<std::size_t>(index)];
  }
  return sums;
}

bool is_weight(const CoupledAxis& axis) {
  return std::ranges::any_of(axis.readers,
                             [](const graph::AxisClaim& claim) { return claim.role != graph::AxisRole::accompanies; });
}

// Weights of the layers that make the channels and of those that read them, each layer counting alike: a channel is
// worth as much when it is made small and read large, which is all the same behind a Relu.
template <class F>
Scores score_weights(const ImportanceTask& task, F&& f, bool takes_root) {
  Scores scores;
  for (const CoupledGroup& group : task.coupling.groups()) {
    std::vector<double>& score = scores.emplace_back();
    if (!group.reason.empty()) continue;
    score.assign(group.units.size(), 0.0);
    for (std::size_t a = 0; a < group.axes.size(); ++a) {
      const auto& constant = task.coupling.graph().value(group.axes[a].value).constant;
      if (!is_weight(group.axes[a]) || constant->dtype() != DType::f32) continue;
      std::vector<double> sums = sums_along(task.coupling.graph(), group, a, f);
      double mean = 0;
      for (double& sum : sums) mean += (sum = takes_root ? std::sqrt(sum) : sum) / static_cast<double>(sums.size());
      for (std::size_t u = 0; u < sums.size() && mean > 0; ++u) score[u] += sums[u] / mean;
    }
  }
  normalize(scores);
  return scores;
}

Result<Scores> score_l1(const ImportanceTask& task) {
  return score_weights(
      task, [](double w) { return std::abs(w); }, false);
}
Result<Scores> score_l2(const ImportanceTask& task) {
  return score_weights(
      task, [](double w) { return w * w; }, true);
}
// Whether the axis is the factor of a batch normalization.
bool is_norm_factor(const graph::Graph& graph, const CoupledAxis& axis) {
  return std::ranges::any_of(axis.readers, [&](const graph::AxisClaim& claim) {
    const graph::Node& node = graph.node(claim.node);
    return node.op == graph::Op::BatchNormalization && node.inputs[1] == axis.value;
  });
}

// |factor| of the normalizations the channel goes through. Liu et al., network slimming, 2017. Differs: a group without
// any is ranked by l1.
Result<Scores> score_bn_scale(const ImportanceTask& task) {
  const graph::Graph& graph = task.coupling.graph();
  CTK_TRY(Scores scores, score_l1(task));
  bool is_found = false;
  for (std::size_t g = 0; g < scores.size(); ++g) {
    const CoupledGroup& group = task.coupling.groups()[g];
    if (scores[g].empty()) continue;
    std::vector<double> factors(group.units.size(), 0.0);
    bool has_norm = false;
    for (std::size_t a = 0; a < group.axes.size(); ++a) {
      if (!is_norm_factor(graph, group.axes[a])) continue;
      has_norm = true;
      const auto sums = sums_along(graph, group, a, [](double w) { return std::abs(w); });
      for (std::size_t u = 0; u < sums.size(); ++u) factors[u] += sums[u];
    }
    if (!has_norm) continue;
    is_found = true;
    scores[g] = std::move(factors);
  }
  if (!is_found) {
    return input_error(
        "stages.prune.method: bn_scale: expected batch normalizations on the channels that can be cut, found none: "
        "those "
        "behind a convolution are folded into it when a model is read. Use l1");
  }
  normalize(scores);
  return scores;
}
Result<Scores> score_random(const ImportanceTask& task) {
  Scores scores;
  Random random(task.seed, "prune importance");
  for (const CoupledGroup& group : task.coupling.groups()) {
    std::vector<double>& score = scores.emplace_back();
    for (std::size_t u = 0; u < group.units.size() && group.reason.empty(); ++u) score.push_back(random.uniform());
  }
  normalize(scores);
  return scores;
}

constexpr std::array kMethods{
    ImportanceMethod{"l1", "least sum of absolute weights first, of all layers that make or read the channel", false,
                     score_l1},
    ImportanceMethod{"l2", "least root of the sum of squared weights first", false, score_l2},
    ImportanceMethod{"bn_scale",
                     "least factor of batch normalizations that were not folded first, l1 where there are none", false,
                     score_bn_scale},
    ImportanceMethod{"random", "in an order drawn by the seed", false, score_random},
    ImportanceMethod{"activation", "least mean absolute activation first", true, score_activation},
    ImportanceMethod{"taylor", "least squared first-order change of the loss first, labels drawn from the network",
                     true, score_taylor},
    ImportanceMethod{"hessian", "least squared error of the layers that read the channel first", true, score_hessian},
};

}  // namespace

std::span<const ImportanceMethod> importance_methods() {
  return kMethods;
}

Result<const ImportanceMethod*> find_importance(std::string_view name) {
  std::string known;
  for (const ImportanceMethod& method : kMethods) {
    if (method.name == name) return &method;
    known += (known.empty() ? "" : ", ") + std::string(method.name);
  }
  return config_error("expected an importance out of " + known + ", found \"" + std::string(name) + "\"");
}

bool needs_data(std::string_view method) {
  return std::ranges::any_of(kMethods, [&](const ImportanceMethod& m) { return m.name == method && m.needs_data; });
}

std::vector<std::vector<std::size_t>> ranking_of(const Scores& scores) {
  std::vector<std::vector<std::size_t>> ranking;
  for (const std::vector<double>& score : scores) {
    std::vector<std::size_t>& order = ranking.emplace_back(score.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t u) { return score[u]; });
  }
  return ranking;
}

void normalize(Scores& scores) {
  for (std::vector<double>& score : scores) {
    const double sum = std::accumulate(score.begin(), score.end(), 0.0);
    for (double& value : score) value = sum > 0 ? value * static_cast<double>(score.size()) / sum : 1.0;
  }
}

}  // namespace ctk::pruning

// Rules and greedy: the two placements that look at one node at a time.
#include <algorithm>
#include <array>
#include <cmath>

#include "search/partition/solvers.h"

namespace ctk::search::partition {
namespace {

enum class Goes { accelerator, cpu, along };  // along: where its largest input lies

struct Rule {
  std::string_view op;
  Goes goes;
};

// Operators not listed go along.
constexpr std::array<Rule, 24> kRules{{
    {"Conv", Goes::accelerator},
    {"ConvTranspose", Goes::accelerator},
    {"Gemm", Goes::accelerator},
    {"MatMul", Goes::accelerator},
    {"Attention", Goes::accelerator},
    {"LSTM", Goes::accelerator},
    {"GRU", Goes::accelerator},
    {"Gather", Goes::cpu},
    {"GatherElements", Goes::cpu},
    {"GatherND", Goes::cpu},
    {"OneHot", Goes::cpu},
    {"LayerNormalization", Goes::cpu},
    {"RMSNormalization", Goes::cpu},
    {"SimplifiedLayerNormalization", Goes::cpu},
    {"GroupNormalization", Goes::cpu},
    {"InstanceNormalization", Goes::cpu},
    {"LpNormalization", Goes::cpu},
    {"Softmax", Goes::cpu},
    {"LogSoftmax", Goes::cpu},
    {"TopK", Goes::cpu},
    {"ArgMax", Goes::cpu},
    {"NonMaxSuppression", Goes::cpu},
    {"RotaryEmbedding", Goes::cpu},
    {"Shape", Goes::cpu},
}};

Goes rule_for(std::string_view op) {
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& rule) { return rule.op == op; });
  return found == kRules.end() ? Goes::along : found->goes;
}

// The quickest unit that can run a node, of the kind asked for if any is; ties to the earlier.
std::size_t quickest(const Task& task, const Node& node, Goes goes) {
  std::size_t best = node.on.size();
  for (const bool any_kind : {goes == Goes::along, true}) {
    for (std::size_t u = 0; u < node.on.size(); ++u) {
      const bool fits = any_kind || (task.units[u].kind == "cpu") == (goes == Goes::cpu);
      if (!fits || !std::isfinite(node.on[u].us)) continue;
      if (best == node.on.size() || node.on[u].us < node.on[best].us) best = u;
    }
    if (best < node.on.size()) break;
  }
  return best;
}

std::vector<std::vector<std::size_t>> inputs_of(const Task& task) {
  std::vector<std::vector<std::size_t>> inputs(task.nodes.size());  // values
  for (std::size_t v = 0; v < task.values.size(); ++v) {
    for (std::size_t consumer : task.values[v].consumers) inputs[consumer].push_back(v);
  }
  return inputs;
}

}  // namespace

Plan place_by_rules(const Task& task, const Options& options) {
  const auto inputs = inputs_of(task);
  std::vector<std::size_t> unit_of;
  for (std::size_t i = 0; i < task.nodes.size(); ++i) {
    const Node& node = task.nodes[i];
    const Goes goes = rule_for(node.op);
    std::size_t unit = quickest(task, node, goes);
    if (goes == Goes::along && !inputs[i].empty()) {
      const auto largest = std::max_element(inputs[i].begin(), inputs[i].end(), [&](std::size_t a, std::size_t b) {
        return task.values[a].bytes < task.values[b].bytes;
      });
      const std::size_t producer = task.values[*largest].producer;
      const std::size_t there = producer == kOutside ? 0 : unit_of[producer];
      if (std::isfinite(node.on[there].us)) unit = there;
    }
    unit_of.push_back(unit);
  }
  return plan_of(task, std::move(unit_of), options.objective);
}

Plan place_greedily(const Task& task, const Options& options) {
  const auto inputs = inputs_of(task);
  std::vector<std::size_t> unit_of;
  std::vector<std::vector<bool>> lies_on(task.values.size(), std::vector<bool>(task.units.size(), false));
  for (std::size_t i = 0; i < task.nodes.size(); ++i) {
    double least = kCannotRun;
    std::size_t best = 0;
    for (std::size_t u = 0; u < task.units.size(); ++u) {
      double cost = task.nodes[i].on[u].us;
      if (i == 0 || unit_of[i - 1] != u) cost += task.units[u].launch_us;
      for (std::size_t v : inputs[i]) {
        const Value& value = task.values[v];
        const std::size_t from = value.producer == kOutside ? 0 : unit_of[value.producer];
        if (!lies_on[v][u]) cost += transfer_us(task, value, from, u);
        cost += convert_us(task, value, from, i, u);
      }
      if (cost >= least) continue;
      least = cost;
      best = u;
    }
    unit_of.push_back(best);
    for (std::size_t v : inputs[i]) lies_on[v][best] = true;
  }
  return plan_of(task, std::move(unit_of), options.objective);
}

}  // namespace ctk::search::partition

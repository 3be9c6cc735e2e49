#include "compress/search_table.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "compress/size.h"
#include "compress/summary.h"
#include "graph/layer.h"
#include "runtime/measure.h"

namespace ctk::pipeline::search_table {

using graph::Graph;
using graph::Layer;

namespace {

// Layers met so far that may be coded, with their groups.
using Met = std::vector<std::pair<Layer, std::size_t>>;

bool is_product(const Graph& graph, const Layer& layer) {
  const graph::Op op = graph.node(layer.node).op;
  return op == graph::Op::Gemm || op == graph::Op::MatMul;
}

std::vector<QuantScheme> common(const std::vector<QuantScheme>& a, const std::vector<QuantScheme>& b) {
  std::vector<QuantScheme> both;
  std::ranges::copy_if(a, std::back_inserter(both),
                       [&](const QuantScheme& scheme) { return std::ranges::find(b, scheme) != b.end(); });
  return both;
}

// The group a layer belongs to by sharing its weight, or by reading what another product reads (q, k and v; gate and
// up): such products can then run as one.
std::optional<std::size_t> group_of(const Graph& graph, const Met& met, const Layer& layer, bool ties_inputs,
                                    const std::vector<Group>& groups, const std::vector<QuantScheme>& allowed) {
  for (const auto& [other, group] : met) {
    if (other.weight == layer.weight) return group;
  }
  if (!ties_inputs || !is_product(graph, layer)) return std::nullopt;
  for (const auto& [other, group] : met) {
    if (other.input == layer.input && is_product(graph, other) && !common(groups[group].choices, allowed).empty())
      return group;
  }
  return std::nullopt;
}

// What tells how many bytes a scheme adds, where only weights are coded: layers of one form take the same.
std::string form_of(const Graph& graph, const std::vector<Layer>& layers, const QuantScheme& scheme) {
  std::string form = to_string(scheme);
  for (const Layer& layer : layers) {
    const graph::Value& weight = graph.value(layer.weight);
    form += "|" + graph.node(layer.node).op_type + ctk::to_string(weight.constant->shape()) +
            std::to_string(layer.channel_axis) + (layer.bias.is_valid() ? "b" : "") +
            std::to_string(graph::other_readers(graph, layer.weight).size()) +
            (graph.is_output(layer.weight) ? "o" : "");
    for (const Layer& other : layers) form += other.weight == layer.weight ? "=" : "-";
  }
  return form;
}

}  // namespace

Result<std::vector<Group>> make_groups(Session& session) {
  const Graph& graph = session.model.graph;
  const auto& quantize = session.config.quantize;
  CTK_TRY(const std::vector<Layer> layers,
          session.target_layers(quantize ? quantize->targets : std::vector<std::string>{},
                                quantize ? quantize->ignore : std::vector<std::string>{}));
  std::set<std::string> free;
  for (const Layer& layer : layers) free.insert(graph.address(layer.node));
  Met met;
  std::vector<Group> groups;
  for (const Layer& layer : graph::layers_of(graph)) {
    const std::string address = graph.address(layer.node);
    std::vector<QuantScheme> allowed;
    if (free.contains(address)) {
      for (const QuantScheme& scheme : session.config.search->schemes) {
        const std::string reason = quantization::infeasible_reason(graph, layer, scheme);
        if (reason.empty())
          allowed.push_back(scheme);
        else
          session.report.skipped.push_back(
              {address, graph.node(layer.node).op_type, to_string(scheme) + ": " + reason});
      }
    }
    if (allowed.empty()) allowed.push_back({});  // stays float; target_layers() or the line above says why
    // A layer that is left out keeps the float weight; those it shares it with get a copy.
    if (!free.contains(address)) {
      groups.push_back({{address}, allowed, {}});
      continue;
    }
    const auto known = group_of(graph, met, layer, session.config.search->groups == "auto", groups, allowed);
    const std::size_t at = known.value_or(groups.size());
    if (!known) groups.push_back({{}, allowed, {}});
    Group& group = groups[at];
    const bool shares =
        std::ranges::any_of(met, [&](const auto& m) { return m.second == at && m.first.weight == layer.weight; });
    if (known) group.tie = shares ? "share its weight" : group.tie.empty() ? "read the same input" : group.tie;
    group.layers.push_back(address);
    group.choices = common(group.choices, allowed);
    if (group.choices.empty()) group.choices.push_back({});
    met.emplace_back(layer, at);
  }
  return groups;
}

Status fill_bytes(const Session& session, Table& table) {
  const Graph& original = session.model.graph;
  const std::string format = budget_format(session.config);
  CTK_TRY(const std::size_t base, file_bytes(original, format, session.config.model));
  table.base_bytes = static_cast<double>(base);
  std::map<std::string, Layer> by_address;
  for (const Layer& layer : graph::layers_of(original)) by_address.emplace(original.address(layer.node), layer);
  std::set<graph::ValueId> counted;     // a float weight of two groups stands in the file once: the first group has it
  std::map<std::string, double> known;  // by form
  for (const Group& group : table.groups) {
    double weights = 0;
    std::vector<Layer> layers;
    for (const std::string& address : group.layers) {
      layers.push_back(by_address.at(address));
      if (counted.insert(layers.back().weight).second)
        weights += static_cast<double>(4 * original.value(layers.back().weight).constant->size());
    }
    table.base_bytes -= weights;
    table.bytes[{group.layers[0], to_string(QuantScheme{})}] = weights;
    for (const QuantScheme& scheme : group.choices) {
      double added = 0;
      if (!(scheme == QuantScheme{})) {
        // Notes on activations depend on the neighbours, codes of weights on nothing but their form.
        const std::string form =
            scheme.is_integer_activation() ? group.layers[0] + to_string(scheme) : form_of(original, layers, scheme);
        if (!known.contains(form)) {
          quantization::SchemeMap schemes;
          for (const std::string& layer : group.layers) schemes[layer] = scheme;
          Graph graph = original.clone();
          CTK_TRY(const auto applied,
                  quantization::apply_schemes(graph, schemes, session.ranges, session.plain_options()));
          CTK_TRY(const std::size_t size, file_bytes(graph, format, session.config.model));
          known[form] = static_cast<double>(size) - static_cast<double>(base);
        }
        added = known.at(form);
      }
      table.bytes[{group.layers[0], to_string(scheme)}] = std::max(0.0, weights + added);
    }
  }
  return {};
}

void fill_bits(const Graph& graph, Table& table) {
  std::map<std::string, Layer> by_address;
  for (const Layer& layer : graph::layers_of(graph)) by_address.emplace(graph.address(layer.node), layer);
  const double all = static_cast<double>(std::max<std::size_t>(1, layer_weights(graph)));
  std::set<graph::ValueId> floats;  // a float weight of two groups is there once: the first group has it
  for (const Group& group : table.groups) {
    std::set<graph::ValueId> own;
    std::vector<std::pair<Layer, std::size_t>> weights;
    double as_float = 0;
    for (const std::string& address : group.layers) {
      const Layer& layer = by_address.at(address);
      if (!own.insert(layer.weight).second) continue;
      const graph::Value& weight = graph.value(layer.weight);
      weights.emplace_back(layer, weight.constant ? weight.constant->size() : weight.quantized->codes.size());
      if (!floats.insert(layer.weight).second) continue;
      as_float += weight.quantized ? 8.0 * static_cast<double>(stored_bytes(*weight.quantized))
                                   : 32.0 * static_cast<double>(weights.back().second);
    }
    table.bits[{group.layers[0], to_string(QuantScheme{})}] = as_float / all;
    for (const QuantScheme& scheme : group.choices) {
      if (scheme == QuantScheme{}) continue;
      double bits = 0;
      for (const auto& [layer, count] : weights) bits += 8.0 * static_cast<double>(coded_bytes(layer, count, scheme));
      table.bits[{group.layers[0], to_string(scheme)}] = bits / all;
    }
  }
}

Status fill_baseline(const Session& session, Table& table) {
  table.baseline_us = table.float_us;
  table.baseline_peak = table.float_peak;
  if (!session.original) return {};
  CTK_TRY(auto executor, runtime::CpuExecutor::create(*session.original, batch_shapes(session.model, 1)));
  runtime::CpuExecutor* const one[] = {executor.get()};
  CTK_TRY(const auto figures, runtime::measure_interleaved(one, {0.2, 20, 2000, 5}));
  table.baseline_us = figures[0].median_us;
  table.baseline_peak = peak_bytes(*executor);
  return {};
}

double peak_bytes(const runtime::CpuExecutor& executor) {
  return static_cast<double>(executor.activation_bytes() + executor.packed_bytes());
}

Result<std::vector<UniformRun>> uniform_runs(const Session& session, const std::vector<Group>& groups,
                                             const std::map<std::string, calibrate::Range>& ranges, Running running) {
  std::vector<QuantScheme> schemes{{}};
  for (const QuantScheme& scheme : session.config.search->schemes) {
    if (std::find(schemes.begin(), schemes.end(), scheme) == schemes.end()) schemes.push_back(scheme);
  }
  std::vector<UniformRun> runs;
  for (const QuantScheme& scheme : schemes) {
    quantization::SchemeMap assigned;
    for (const Group& group : groups) {
      if (std::find(group.choices.begin(), group.choices.end(), scheme) == group.choices.end()) continue;
      for (const std::string& layer : group.layers) assigned[layer] = scheme;
    }
    UniformRun run{scheme, std::make_unique<Graph>(session.model.graph.clone()), nullptr};
    CTK_TRY(const auto applied, quantization::apply_schemes(*run.graph, assigned, ranges, session.plain_options()));
    if (running.whole) {
      CTK_TRY(run.executor, runtime::CpuExecutor::create(*run.graph, batch_shapes(session.model, 1)));
    }
    if (running.phases) {
      CTK_TRY(run.reader, make_reader(session, *run.graph));
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

void fill_peak(std::span<const UniformRun> runs, Table& table) {
  table.float_peak = peak_bytes(*runs[0].executor);
  table.base_peak = static_cast<double>(runs[0].executor->activation_bytes());
  for (const UniformRun& run : runs) {
    table.base_peak = std::min(table.base_peak, static_cast<double>(run.executor->activation_bytes()));
    for (const auto& step : run.executor->plan().steps) {
      if (step->packed_bytes == 0) continue;
      table.packed[{run.graph->address(step->node), to_string(run.scheme)}] += static_cast<double>(step->packed_bytes);
    }
  }
}

double clock_share(double whole_us, std::span<const runtime::StepTime> steps) {
  double sum = 0;
  for (const runtime::StepTime& step : steps) sum += step.median_us;
  return sum > 0 ? whole_us / sum : 1.0;
}

Status fill_times(std::span<const UniformRun> runs, Table& table) {
  std::vector<runtime::CpuExecutor*> turn;
  for (const UniformRun& run : runs) turn.push_back(run.executor.get());
  CTK_TRY(const auto whole, runtime::measure_interleaved(turn, {0.3, 20, 2000, 5}));
  CTK_TRY(const auto steps, runtime::measure_steps(turn, {0.3, 20, 2000, 2}));
  table.float_us = whole[0].median_us;
  std::vector<double> rest;
  for (std::size_t s = 0; s < runs.size(); ++s) {
    const Graph& graph = *runs[s].graph;
    const std::string scheme = to_string(runs[s].scheme);
    double other = 0;
    for (const runtime::StepTime& step : steps[s]) {
      const bool is_layer = step.node.is_valid() && graph::layer_of(graph, step.node).has_value();
      if (is_layer)
        table.latency_us[{graph.address(step.node), scheme}] += step.median_us;
      else
        other += step.median_us;
    }
    const double share = clock_share(whole[s].median_us, steps[s]);
    for (auto& [key, us] : table.latency_us) {
      if (key.second == scheme) us *= share;
    }
    rest.push_back(other * share);
  }
  table.base_us = runtime::median_of(rest);
  return {};
}

double group_cost(const Costs& costs, const Group& group, const QuantScheme& scheme, bool all_layers) {
  double sum = 0;
  for (const std::string& layer : group.layers) {
    const auto found = costs.find({layer, to_string(scheme)});
    if (found != costs.end()) sum += found->second;
    if (!all_layers) break;
  }
  return sum;
}

}  // namespace ctk::pipeline::search_table

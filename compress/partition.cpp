#include "compress/partition.h"

#include <algorithm>
#include <map>

#include "compress/estimate/roofline.h"
#include "compress/two_units.h"
#include "core/cpu_isa.h"
#include "core/parallel.h"
#include "graph/layer.h"
#include "graph/shapes.h"
#include "runtime/measure.h"
#include "runtime/npu_executor.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;
using search::partition::kCannotRun;
using search::partition::kOutside;
using search::partition::Link;
using search::partition::NodeTime;
using search::partition::Task;

constexpr int kMostRuns = 5;

double megabytes_per_s(double gb_s) {
  return gb_s * 1e3;  // bytes a us
}

// The node that computes `id` in its own last step: itself where nothing absorbs it.
NodeId host_of(const Graph& graph, NodeId id) {
  while (graph.node(id).absorbed_by.is_valid() && !graph.node(graph.node(id).absorbed_by).is_removed)
    id = graph.node(id).absorbed_by;
  return id;
}

double element_count(const graph::InferredValue& value) {
  return value.known ? static_cast<double>(elements(value.info.shape)) : 0;
}

std::string form_of(const QuantScheme& scheme) {
  if (scheme.is_integer_activation()) return "int" + std::to_string(scheme.activation_bits);
  return scheme.weight_bits == 16 ? "half" : "float";
}

double bytes_an_element(const QuantScheme& scheme) {
  if (scheme.is_integer_activation()) return 1;
  return scheme.weight_bits == 16 ? 2 : 4;
}

// What an npu whose inside is known takes: by simulating every layer it has commands for.
struct Simulated {
  double clock_mhz = 1;
  std::map<NodeId, runtime::NpuLayer> layers;
  std::map<NodeId, std::string> reasons;  // of the nodes that have steps but none on the npu
};

Result<Simulated> simulate(const LoadedModel& model, const kernels::npu::Card& machine) {
  CTK_TRY(auto npu, runtime::NpuExecutor::create(model.graph, batch_shapes(model, 1), {machine}));
  Simulated out{machine.clock_mhz, {}, {}};
  const runtime::NpuReport report = npu->report();
  for (const runtime::NpuLayer& layer : report.layers) out.layers[layer.node] = layer;
  for (const runtime::NpuFallback& step : report.fallbacks) {
    if (step.node.is_valid()) out.reasons[step.node] = step.reason;
  }
  return out;
}

struct Builder {
  const LoadedModel& model;
  const std::vector<graph::InferredValue>& infos;
  std::vector<TargetCard> cards;
  std::vector<std::optional<Simulated>> simulated;  // [cards]
  bool only_simulated = false;                      // what is not simulated cannot run
  Task task;
  std::map<NodeId, std::size_t> node_at;  // graph node -> task node, absorbed ones too

  // A node with what it absorbs on an npu that is simulated; nullopt: ask the card.
  std::optional<NodeTime> counted(const std::optional<Simulated>& npu, NodeId host,
                                  const std::vector<NodeId>& members) const {
    if (!npu) return std::nullopt;
    const auto layer = npu->layers.find(host);
    std::string reason;
    for (NodeId id : members) {
      const bool is_covered =
          layer != npu->layers.end() && (id == host || std::ranges::count(layer->second.absorbed, id) != 0);
      const auto told = npu->reasons.find(id);
      if (!is_covered && told != npu->reasons.end()) reason = told->second;
    }
    if (reason.empty() && layer != npu->layers.end())
      return NodeTime{static_cast<double>(layer->second.counts.cycles) / npu->clock_mhz, "int8", "", "simulated"};
    if (!only_simulated) return std::nullopt;
    // A node without a step of its own moves nothing and takes nothing, wherever it stands.
    if (reason.empty()) return NodeTime{0, cpu_form(host), "", "simulated"};
    return NodeTime{kCannotRun, "", reason, "simulated"};
  }

  // A layer computes in its scheme; other operators work on codes where all they read are.
  std::string cpu_form(NodeId id) const {
    const graph::Node& node = model.graph.node(id);
    if (graph::layer_of(model.graph, id)) return form_of(node.scheme);
    bool is_coded = !node.inputs.empty();
    for (ValueId input : node.inputs) {
      if (!input.is_valid() || model.graph.value(input).is_constant()) continue;
      is_coded = is_coded && model.graph.value(input).activation_quant.has_value();
    }
    return is_coded ? "int8" : form_of(node.scheme);
  }

  Work work_of(NodeId id) const {
    const Graph& graph = model.graph;
    const graph::Node& node = graph.node(id);
    Work work;
    work.op = node.op_type;
    const double out = node.outputs.empty() ? 0 : element_count(infos[node.outputs[0].index]);
    for (ValueId input : node.inputs) {
      if (!input.is_valid()) continue;
      (graph.value(input).is_constant() ? work.weights : work.activations) += element_count(infos[input.index]);
    }
    for (ValueId output : node.outputs) {
      if (output.is_valid()) work.activations += element_count(infos[output.index]);
    }
    work.ops = out;
    const auto shape_of = [&](std::size_t input) -> const Shape* {
      if (input >= node.inputs.size() || !node.inputs[input].is_valid()) return nullptr;
      const graph::InferredValue& value = infos[node.inputs[input].index];
      return value.known && !value.info.shape.empty() ? &value.info.shape : nullptr;
    };
    if (graph::layer_of(graph, id)) {
      work.is_layer = true;
      work.ops = 2.0 * static_cast<double>(layer_macs(model, id));
    } else if (const Shape* a = shape_of(0); node.op_type == "MatMul" && a != nullptr) {
      work.ops = 2.0 * out * static_cast<double>(a->back());
    } else if (const Shape* k = shape_of(1); node.op_type == "Attention" && k != nullptr && k->size() >= 2) {
      work.ops = 4.0 * out * static_cast<double>((*k)[k->size() - 2]);
    }
    return work;
  }

  void add_nodes() {
    const Graph& graph = model.graph;
    std::map<NodeId, std::vector<NodeId>> members;
    std::vector<NodeId> last;  // a node with what it absorbs stands where the last of them does: all inputs are there
    for (NodeId id : graph.order()) members[host_of(graph, id)].push_back(id);
    for (NodeId id : graph.order()) {
      const NodeId host = host_of(graph, id);
      if (members[host].back() == id) last.push_back(host);
    }
    for (NodeId host : last) {
      search::partition::Node node;
      node.name = graph.address(host);
      node.op = graph.node(host).op_type;
      node.on.push_back({0, cpu_form(host), "", "measured"});
      for (std::size_t c = 0; c < cards.size(); ++c) {
        const TargetCard& card = cards[c];
        if (auto time = counted(simulated[c], host, members[host])) {
          node.on.push_back(std::move(*time));
          continue;
        }
        NodeTime sum{0, "", "", "from the card"};
        for (NodeId id : members[host]) {
          const NodeTime part = time_on_card(card, work_of(id));
          // What a node absorbs is computed on what it just made: no memory of its own to read.
          if (id == host || part.us == kCannotRun) sum.us += part.us;
          if (id == host) sum.form = part.form;
          if (!part.reason.empty()) sum.reason = part.reason;
        }
        node.on.push_back(std::move(sum));
      }
      for (NodeId id : members[host]) node_at[id] = task.nodes.size();
      task.nodes.push_back(std::move(node));
    }
  }

  void add_values() {
    const Graph& graph = model.graph;
    for (std::size_t index = 0; index < graph.value_capacity(); ++index) {
      const ValueId id{static_cast<std::uint32_t>(index)};
      const graph::Value& from = graph.value(id);
      const bool is_input = std::ranges::count(graph.inputs(), id) != 0;
      if (from.is_removed || from.is_constant() || (!from.producer.is_valid() && !is_input)) continue;
      search::partition::Value value;
      value.name = from.name;
      value.producer = is_input ? kOutside : node_at.at(from.producer);
      value.is_output = graph.is_output(id);
      const auto count = static_cast<std::size_t>(element_count(infos[index]));
      value.bytes = static_cast<double>(from.activation_quant ? count : byte_size(from.dtype, count));
      for (NodeId reader : from.consumers) {
        const std::size_t at = node_at.at(reader);
        if (at == value.producer || std::ranges::count(value.consumers, at) != 0) continue;
        value.consumers.push_back(at);
      }
      std::ranges::sort(value.consumers);
      if (!value.consumers.empty() || value.is_output) task.values.push_back(std::move(value));
    }
  }

  // Between two accelerators a value goes through the processor's memory.
  void add_links() {
    const auto to_host = [](const TargetCard& card) {
      return Link{card.transfer_start_us, megabytes_per_s(card.has_shared_memory ? 1 : card.transfer_gb_s),
                  card.transfer_flush_us, card.has_shared_memory};
    };
    const std::size_t units = task.units.size();
    task.links.assign(units, std::vector<Link>(units));
    for (std::size_t a = 0; a < units; ++a) {
      for (std::size_t b = 0; b < units; ++b) {
        if (a == b) continue;
        if (a == 0 || b == 0) {
          task.links[a][b] = to_host(cards[std::max(a, b) - 1]);
          continue;
        }
        const Link first = to_host(cards[a - 1]), second = to_host(cards[b - 1]);
        Link& both = task.links[a][b];
        both.start_us = first.start_us + second.start_us;
        both.flush_us = first.flush_us + second.flush_us;
        both.is_shared_memory = first.is_shared_memory && second.is_shared_memory;
        const double slow_a = first.is_shared_memory ? 0 : 1 / first.bytes_per_us;
        const double slow_b = second.is_shared_memory ? 0 : 1 / second.bytes_per_us;
        if (!both.is_shared_memory) both.bytes_per_us = 1 / (slow_a + slow_b);
      }
    }
  }
};

Status measure_cpu(const LoadedModel& model, const PartitionOptions& options, Builder& builder, Partition& out) {
  CTK_TRY(auto executor, runtime::CpuExecutor::create(model.graph, batch_shapes(model, 1)));
  runtime::CpuExecutor* const turn[] = {executor.get()};
  runtime::MeasureOptions measure;
  measure.seconds = options.seconds;
  CTK_TRY(const auto whole, runtime::measure_interleaved(turn, measure));
  CTK_TRY(const auto steps, runtime::measure_steps(turn, measure));
  out.cpu_us = whole[0].median_us;
  for (const runtime::StepTime& step : steps[0]) {
    const auto found = step.node.is_valid() ? builder.node_at.find(step.node) : builder.node_at.end();
    if (found == builder.node_at.end()) {
      out.between_us += step.median_us;
    } else {
      builder.task.nodes[found->second].on[0].us += step.median_us;
    }
  }
  return {};
}

}  // namespace

search::partition::NodeTime time_on_card(const TargetCard& card, const Work& work) {
  const QuantScheme scheme = card.schemes.empty() ? QuantScheme{} : card.schemes[0];
  NodeTime time{kCannotRun, form_of(scheme), "", "from the card"};
  if (std::ranges::count(card.ops, work.op) == 0) {
    time.reason = "\"" + card.name + "\" does not list " + work.op;
    return time;
  }
  const double weight_bytes = work.weights * (work.is_layer ? scheme.weight_bits / 8.0 : bytes_an_element(scheme));
  const double bytes = weight_bytes + work.activations * bytes_an_element(scheme);
  time.us = estimate::bound_of({card.bandwidth_gb_s, card.peak_gops}, bytes, work.ops).us();
  return time;
}

Result<Partition> partition_model(const PartitionOptions& options) {
  CTK_TRY(const auto* solver, search::partition::find_solver(options.solver));
  if (options.targets.empty()) {
    return config_error(
        "partition: expected at least one device card, found none. Give --target, for example "
        "configs/targets/npu-4tops.yaml");
  }
  std::vector<TargetCard> cards;
  for (const std::string& path : options.targets) {
    CTK_TRY(TargetCard card, load_target(path, TargetUse::partition));
    if (card.kind == "cpu") {
      return config_error(path +
                          ": kind: expected gpu or npu, found cpu. The processor of this machine is always a unit; "
                          "leave its card out");
    }
    cards.push_back(std::move(card));
  }
  if (options.runs) {
    if (cards.size() != 1) {
      return config_error("partition: --run: expected one --target, found " + std::to_string(cards.size()) +
                          ". Name the npu to simulate");
    }
    if (auto whole = require_machine(cards[0]); !whole)
      return std::move(whole).error().with_context("partition: --run");
  }
  set_threads(options.threads);
  CTK_TRY(const LoadedModel model, load_model(options.model));
  if (auto sized = require_fixed_samples(model.graph); !sized)
    return std::move(sized).error().with_context(options.model);
  CTK_TRY(const auto infos, graph::infer_shapes(model.graph, batch_shapes(model, 1), true));

  Partition out;
  std::vector<std::optional<Simulated>> simulated(cards.size());
  for (std::size_t c = 0; c < cards.size(); ++c) {
    if (!cards[c].machine) continue;
    CTK_TRY(simulated[c], simulate(model, *cards[c].machine));
  }
  Builder builder{model, infos, std::move(cards), std::move(simulated), options.runs, {}, {}};
  builder.task.units.push_back({"cpu", "cpu", 0});
  out.sources.push_back(cpu_model() + ", measured with " + std::to_string(threads()) + " thread" +
                        (threads() == 1 ? "" : "s"));
  for (std::size_t c = 0; c < builder.cards.size(); ++c) {
    const TargetCard& card = builder.cards[c];
    std::size_t same = 0;
    for (const auto& unit : builder.task.units) same += unit.kind == card.kind;
    builder.task.units.push_back({card.kind + (same == 0 ? "" : std::to_string(same + 1)), card.kind, card.launch_us});
    const bool is_simulated = builder.simulated[c] && !builder.simulated[c]->layers.empty();
    std::string source = card.name + ", from the card";
    if (is_simulated) {
      source = card.name + ", layers simulated at " + to_text(card.machine->clock_mhz) + " MHz" +
               (options.runs ? "" : ", the rest from the card");
    }
    out.sources.push_back(std::move(source));
  }
  builder.add_nodes();
  builder.add_values();
  builder.add_links();
  // Changing form reads and writes every byte on the processor: 4 GB/s, one thread's rate on a common machine.
  builder.task.convert_bytes_per_us = 4e3;
  builder.task.outside_form = "float";
  CTK_CHECK(measure_cpu(model, options, builder, out));
  out.task = std::move(builder.task);
  CTK_CHECK(search::partition::sort_nodes(out.task));
  const search::partition::Options how{options.seed, options.for_makespan ? search::partition::Objective::makespan
                                                                          : search::partition::Objective::total};
  if (options.runs) {
    const auto run = [&](const search::partition::Plan& plan) {
      out.runs.push_back({plan, {}, 0, false});
      return run_placement(model, builder.cards[0], out.task, plan, options.seconds, out.runs.back());
    };
    CTK_TRY(auto tuned, search::partition::auto_tune(out.task, *solver, how, run, kMostRuns));
    out.task = std::move(tuned.task);
    // Its cost and bound by what is known now.
    CTK_TRY(out.plan, search::partition::solve(out.task, *solver, how));
    if (out.plan.unit_of != tuned.plan.unit_of)
      out.plan = search::partition::plan_of(out.task, std::move(tuned.plan.unit_of), how.objective);
    out.notes = std::move(tuned.notes);
  } else {
    CTK_TRY(out.plan, search::partition::solve(out.task, *solver, how));
  }
  for (const auto& other : search::partition::solvers())
    out.others.emplace_back(other.name, other.name == solver->name ? out.plan : other.solve(out.task, how));
  return out;
}

}  // namespace ctk::pipeline

// Budgets that no assignment reaches, alone or together, refused before anything is calibrated: bytes and peak memory
// are decided by shapes and schemes, and times do not depend on what ranges turn out to be.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compress/infeasible_budgets.h"
#include "compress/size.h"
#include "compress/summary.h"
#include "search/infeasible.h"
#include "search/solvers/solvers.h"

namespace ctk::pipeline {
namespace {

using search_table::kBudgets;
using search_table::Limits;
using search_table::Table;

// Times of another minute differ, and sums over layers miss what neighbours share: what misses a budget by less is left
// to the search to decide.
constexpr Limits kDoubt{1.02, 1.25, 1, 1 + 1e-9, 1.25, 1.25};

// The network of a run without search.
Result<graph::Graph> assigned_network(Session& session) {
  const auto& quantize = session.config.quantize;
  CTK_TRY(const std::vector<graph::Layer> layers, session.target_layers(quantize->targets, quantize->ignore));
  quantization::SchemeMap schemes;
  for (const graph::Layer& layer : layers) {
    const std::string address = session.model.graph.address(layer.node);
    const QuantScheme scheme = allowed_schemes(session.config, address)[0];
    if (quantization::infeasible_reason(session.model.graph, layer, scheme).empty()) schemes[address] = scheme;
  }
  graph::Graph graph = session.model.graph.clone();
  CTK_TRY(const auto applied,
          quantization::apply_schemes(graph, schemes, placeholder_ranges(graph), session.plain_options()));
  return graph;
}

Status require_assigned(Session& session) {
  const PipelineConfig& config = session.config;
  if (!config.budget.peak_memory && !config.budget.bits) return {};
  CTK_TRY(const graph::Graph network, assigned_network(session));
  const auto hold = [&](const char* name, const char* unit, double limit, double found, const char* what) -> Status {
    if (found <= limit * (1 + 1e-9)) return {};
    return Error{ErrorCode::budget_infeasible,
                 config.file_name + ": budget." + name + ": expected at most " + search::format_amount(limit, unit) +
                     ", found " + search::format_amount(found, unit) + " with every layer " +
                     (config.quantize->scheme ? "at " + to_string(*config.quantize->scheme)
                                              : "as " + config.quantize->assignment + " says") +
                     " (" + what + "). Raise the budget, or let a stage \"search\" choose"};
  };
  if (config.budget.bits)
    CTK_CHECK(hold("bits", "bits", config.budget.bits->value, average_bits(network),
                   "scales and layers that stay float included"));
  if (!config.budget.peak_memory) return {};
  CTK_TRY(const auto before, runtime::CpuExecutor::create(session.float_graph(), batch_shapes(session.model, 1)));
  CTK_TRY(const auto after, runtime::CpuExecutor::create(network, batch_shapes(session.model, 1)));
  return hold("peak_memory", "B", config.budget.peak_memory->absolute(search_table::peak_bytes(*before)),
              search_table::peak_bytes(*after), "packed weights, activations and scratch");
}

// Bytes of groups by what their codes take; the fixed part is what the smallest file has beyond that.
void estimate_bytes(const graph::Graph& graph, double smallest_file, Table& table) {
  search_table::fill_bits(graph, table);
  const double weights = static_cast<double>(layer_weights(graph));
  table.base_bytes = smallest_file;
  for (const auto& [key, bits] : table.bits) table.bytes[key] = bits * weights / 8;
  for (const search_table::Group& group : table.groups) {
    double least = std::numeric_limits<double>::infinity();
    for (const QuantScheme& scheme : group.choices)
      least = std::min(least, search_table::group_cost(table.bytes, group, scheme, false));
    table.base_bytes -= least;
  }
  table.base_bytes = std::max(0.0, table.base_bytes);
}

bool has_scores(const std::string& output) {
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(output + "/.cache", ignored)) {
    if (file.path().filename().string().starts_with("sensitivity-")) return true;
  }
  return false;
}

// The search's programme as far as it is known before work; losses are 0.
Result<search::Problem> programme(Session& session, bool with_times, double smallest_file) {
  const BudgetConfig& budget = session.config.budget;
  Table table;
  CTK_TRY(table.groups, search_table::make_groups(session));
  estimate_bytes(session.model.graph, smallest_file, table);
  Limits limit = search_table::kNoLimits;
  const bool times = budget.latency && with_times;
  const bool phases = (budget.latency_decode || budget.latency_prefill) && with_times;
  if (times || phases || budget.peak_memory) {
    const search_table::Running running{times || budget.peak_memory, phases};
    CTK_TRY(const auto runs,
            search_table::uniform_runs(session, table.groups, placeholder_ranges(session.model.graph), running));
    if (running.whole) {
      search_table::fill_peak(runs, table);
      if (times) CTK_CHECK(search_table::fill_times(runs, table));
      CTK_CHECK(search_table::fill_baseline(session, table));
    }
    if (phases) CTK_CHECK(search_table::fill_phases(session, runs, table));
    if (times) limit.latency = budget.latency->absolute(table.baseline_us);
    if (budget.peak_memory) limit.peak = budget.peak_memory->absolute(table.baseline_peak);
    if (phases && budget.latency_decode) limit.decode = budget.latency_decode->absolute(table.decode.baseline_us);
    if (phases && budget.latency_prefill) limit.prefill = budget.latency_prefill->absolute(table.prefill.baseline_us);
  }
  if (budget.size) limit.size = std::floor(budget.size->absolute(static_cast<double>(session.model.file_bytes)));
  if (budget.bits) limit.bits = budget.bits->value;
  return search_table::make_problem(table, limit, {});
}

}  // namespace

Status require_reachable(Session& session, bool with_times, const std::string& output) {
  const PipelineConfig& config = session.config;
  const BudgetConfig& budget = config.budget;
  if (!config.search) {
    CTK_CHECK(require_reachable_size(session));
    if (config.quantize && config.quantize->has_schemes()) return require_assigned(session);
    return {};
  }
  const bool has_phase = budget.latency_decode || budget.latency_prefill;
  if (has_phase) CTK_CHECK(search_table::make_reader(session, session.model.graph));
  if (!budget.size && !budget.latency && !budget.peak_memory && !budget.bits && !has_phase) return {};
  CTK_TRY(const ReachableSize reach, reachable_size(config, session.model));
  // Where layers are scored already, the search itself tells at once.
  CTK_TRY(search::Problem problem,
          programme(session, with_times && !has_scores(session.output), static_cast<double>(reach.least)));
  auto sized = require_reachable_size(session);
  if (!sized) return search_table::infeasible_error(problem, false, search::solve_ilp, output, sized.error().message);
  search::Problem doubted = problem;
  for (std::size_t b = 0; b < std::size(kBudgets); ++b) doubted.budgets[b].limit *= kDoubt.*kBudgets[b].of;
  const auto held = search::check_feasible(doubted, search::solve_ilp);
  if (held) return {};
  if (held.error().code != ErrorCode::budget_infeasible) return held.error();
  return search_table::infeasible_error(problem, false, search::solve_ilp, output).with_context(config.file_name);
}

Status require_budgets(Session& session) {
  CTK_CHECK(session.first_does("budgets", [&]() -> Result<std::string> {
    CTK_CHECK(require_reachable(session, true, session.output));
    return std::string();
  }));
  return {};
}

}  // namespace ctk::pipeline

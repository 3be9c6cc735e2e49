// Budgets of running that no assignment reaches, refused before anything is calibrated: peak memory is decided by
// shapes and schemes, and times do not depend on what ranges turn out to be.
#include <algorithm>
#include <filesystem>

#include "compress/search_table.h"
#include "compress/summary.h"
#include "search/infeasible.h"

namespace ctk::pipeline {
namespace {

// Times of another minute differ: what misses a budget by less is left to the search to decide.
constexpr double kDoubt = 1.25;

// The one scheme of a run without search.
Result<double> assigned_peak(Session& session) {
  const auto& quantize = session.config.quantize;
  CTK_TRY(const std::vector<graph::Layer> layers, session.target_layers(quantize->targets, quantize->ignore));
  quantization::SchemeMap schemes;
  for (const graph::Layer& layer : layers) {
    if (quantization::infeasible_reason(session.model.graph, layer, *quantize->scheme).empty())
      schemes[session.model.graph.address(layer.node)] = *quantize->scheme;
  }
  graph::Graph graph = session.model.graph.clone();
  CTK_TRY(const auto applied,
          quantization::apply_schemes(graph, schemes, placeholder_ranges(graph), session.plain_options()));
  CTK_TRY(const auto executor, runtime::CpuExecutor::create(graph, batch_shapes(session.model, 1)));
  return search_table::peak_bytes(*executor);
}

// A programme's items with one cost and no loss.
std::vector<search::Item> items_of(const search_table::Table& table, const search_table::Costs& costs) {
  std::vector<search::Item> items;
  for (const search_table::Group& group : table.groups) {
    search::Item item{group.layers[0], {}};
    for (const QuantScheme& scheme : group.choices)
      item.choices.push_back({to_string(scheme), 0, {search_table::group_cost(costs, group, scheme, true)}});
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace

Status require_reachable_peak(Session& session) {
  const PipelineConfig& config = session.config;
  if (!config.budget.peak_memory) return {};
  search::Problem problem;
  problem.budgets.push_back({"peak_memory", 0, 0, "B"});
  search::Budget& budget = problem.budgets[0];
  if (config.search) {
    search_table::Table table;
    CTK_TRY(table.groups, search_table::make_groups(session));
    CTK_TRY(const auto runs,
            search_table::uniform_runs(session, table.groups, placeholder_ranges(session.model.graph)));
    search_table::fill_peak(runs, table);
    CTK_CHECK(search_table::fill_baseline(session, table));
    budget.limit = config.budget.peak_memory->absolute(table.baseline_peak);
    budget.fixed = table.base_peak;
    problem.items = items_of(table, table.packed);
  } else if (config.quantize && config.quantize->scheme) {
    CTK_TRY(const auto executor, runtime::CpuExecutor::create(session.float_graph(), batch_shapes(session.model, 1)));
    budget.limit = config.budget.peak_memory->absolute(search_table::peak_bytes(*executor));
    CTK_TRY(budget.fixed, assigned_peak(session));
    if (budget.fixed > budget.limit) {
      return Error{
          ErrorCode::budget_infeasible,
          "budget.peak_memory: expected at most " + search::format_amount(budget.limit, "B") + ", found " +
              search::format_amount(budget.fixed, "B") + " with every layer at " + to_string(*config.quantize->scheme) +
              " (packed weights, activations and scratch). Raise the budget, or let a stage \"search\" choose"};
    }
    return {};
  } else {
    return {};
  }
  auto reached = search::check_feasible(problem, nullptr);
  if (!reached) return std::move(reached).error().with_context(config.file_name);
  return {};
}

Status require_reachable_latency(Session& session) {
  const PipelineConfig& config = session.config;
  if (!config.search || !config.budget.latency) return {};
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(session.output + "/.cache", ignored)) {
    // Scored already: the search itself will tell at once.
    if (file.path().filename().string().starts_with("sensitivity-")) return {};
  }
  search_table::Table table;
  CTK_TRY(table.groups, search_table::make_groups(session));
  CTK_TRY(const auto runs, search_table::uniform_runs(session, table.groups, placeholder_ranges(session.model.graph)));
  CTK_CHECK(search_table::fill_times(runs, table));
  CTK_CHECK(search_table::fill_baseline(session, table));
  search::Problem problem;
  problem.budgets.push_back(
      {"latency", config.budget.latency->absolute(table.baseline_us), std::max(0.0, table.base_us), "us"});
  problem.items = items_of(table, table.latency_us);
  CTK_TRY(const std::vector<search::Reach> reach, search::reach_of(problem, nullptr));
  if (reach[0].least_alone <= kDoubt * problem.budgets[0].limit) return {};
  return search::explain_infeasible(problem, nullptr).with_context(config.file_name);
}

}  // namespace ctk::pipeline

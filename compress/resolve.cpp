#include "compress/resolve.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>

#include "compress/infeasible_budgets.h"
#include "compress/search_files.h"
#include "compress/search_front.h"
#include "compress/units.h"
#include "core/cpu_isa.h"
#include "core/printable.h"

namespace ctk::pipeline {
namespace {

using namespace search_table;

Error wrong_budget(const std::string& text, const std::string& expected) {
  return config_error("--budget: expected " + expected + ", found \"" + printable(text) + "\"");
}

struct Asked {
  Limits limits;
  double loss = kNoLimits.size;  // in nats, where a budget is made small
};

std::string known_budgets() {
  std::string list;
  for (const BudgetRow& budget : kBudgets) list += (list.empty() ? "" : ", ") + std::string(budget.name);
  return list;
}

// The budgets that make a run measure what `name` asks for.
std::string running_budgets(std::string_view name) {
  return name.starts_with("latency.") ? "latency.decode or latency.prefill" : "latency or peak_memory";
}

bool has_time(const Limits& limits) {
  return std::isfinite(limits.latency) || std::isfinite(limits.decode) || std::isfinite(limits.prefill);
}

Result<double> parse_amount(std::string_view name, const std::string& amount, double baseline) {
  if (name == "bits" || name == "loss") {
    CTK_TRY(const double number, parse_number(amount));
    if (number > 0) return number;
    return config_error("expected a number above 0, found \"" + printable(amount) + "\". Raise it");
  }
  const auto parsed = name.starts_with("latency") ? parse_latency(amount) : parse_size(amount);
  if (!parsed) return parsed.error();
  return parsed->absolute(baseline);
}

// Limits of the run, each replaced by the one given.
Result<Asked> limits_of(const ResolveRequest& request, const SavedSearch& saved) {
  if (request.budgets.empty()) return Asked{saved.limit};
  Asked asked{kNoLimits};
  for (const std::string& text : request.budgets) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals),
                      amount = equals == std::string::npos ? "" : text.substr(equals + 1);
    const auto budget = find_budget(name);
    const bool is_loss = name == "loss" && !request.minimize.empty();
    if ((!budget && !is_loss) || equals == std::string::npos)
      return wrong_budget(text,
                          "size=60 kB, latency=0.2 ms, peak_memory=1 MB or bits=4.5, shares of the float model like "
                          "size=20 %, or loss=0.02 beside --minimize");
    double& limit = is_loss ? asked.loss : asked.limits.*kBudgets[*budget].of;
    if (std::isfinite(limit)) return wrong_budget(text, "each budget once");
    const double baseline = is_loss ? 0 : saved.baseline.*kBudgets[*budget].of;
    if (budget && kBudgets[*budget].is_of_running && !(baseline > 0)) {
      return input_error(request.run + ": expected figures of running for --budget " + name +
                         ", found none, since the run had no budget of " + running_budgets(name) +
                         ". Run the pipeline with one");
    }
    auto parsed = parse_amount(name, amount, baseline);
    if (!parsed) return std::move(parsed).error().with_context("--budget " + name);
    limit = *parsed;
  }
  asked.limits.size = std::floor(asked.limits.size);
  return asked;
}

// The budget to make small. Errors: config (none of them, one with a limit, no limit of the loss).
Result<std::size_t> aim_of(const ResolveRequest& request, const Asked& asked, const SavedSearch& saved) {
  const auto aim = find_budget(request.minimize);
  if (!aim)
    return config_error("--minimize: expected one of " + known_budgets() + ", found \"" + printable(request.minimize) +
                        "\". Name one of them");
  if (!std::isfinite(asked.loss))
    return config_error("--minimize: expected a limit of the loss beside it, found none. Give --budget loss=0.02");
  if (kBudgets[*aim].is_of_running && !(saved.baseline.*kBudgets[*aim].of > 0))
    return input_error(request.run + ": expected figures of running for --minimize " + request.minimize +
                       ", found none, since the run had no budget of " + running_budgets(request.minimize) +
                       ". Run the pipeline with one");
  return *aim;
}

Status check_machine(const ResolveRequest& request, bool needs_times, const SavedSearch& saved,
                     std::vector<std::string>& warnings) {
  const std::string here = cpu_model();
  if (!needs_times || saved.cpu == here) return {};
  const std::string text = request.run + "/search/times.json: times were taken on \"" + printable(saved.cpu) +
                           "\", this is \"" + here + "\"";
  if (!request.allow_other_machine)
    return input_error(text + ". Run the pipeline here, or give --allow-other-machine to use them");
  warnings.push_back(text);
  return {};
}

}  // namespace

Result<Resolved> resolve(const ResolveRequest& request) {
  Resolved result;
  CTK_TRY(SavedSearch saved, read_search_files(request.run, result.warnings));
  CTK_TRY(const Asked asked, limits_of(request, saved));
  Limits limits = asked.limits;
  const bool needs_times = has_time(limits) || request.minimize.starts_with("latency");
  CTK_CHECK(check_machine(request, needs_times, saved, result.warnings));
  CTK_TRY(const search::Solver* solver, search::find_solver(request.solver));
  search::Assignment answer;
  if (!request.minimize.empty()) {
    if (!request.assignment.empty())
      return config_error("--minimize: expected no --assignment beside it, found both. Leave one out");
    CTK_TRY(const std::size_t aim, aim_of(request, asked, saved));
    const search::Problem problem = minimizing(make_problem(saved.table, limits, saved.extra), aim, asked.loss);
    auto solved = solver->solve(problem);
    if (!solved && solved.error().code == ErrorCode::budget_infeasible)
      return infeasible_error(problem, false, search::solve_ilp, {});
    CTK_TRY(const search::Assignment least, std::move(solved));
    // Of the answers that cost so little, the one that loses least.
    limits.*kBudgets[aim].of = least.costs[aim] * (1 + 1e-9);
  }
  if (request.assignment.empty()) {
    const search::Problem problem = make_problem(saved.table, limits, saved.extra);
    auto solved = solver->solve(problem);
    if (!solved && solved.error().code == ErrorCode::budget_infeasible)
      return infeasible_error(problem, true, search::solve_ilp, {});
    CTK_TRY(answer, std::move(solved));
    result.bound = answer.bound;
    result.gap = answer.gap;
    result.is_proved = answer.proved_optimal;
    if (!answer.proved_optimal && solver->is_exact)
      result.warnings.push_back(
          "the solver came to its limit of steps: the answer is the best it found, and loses at "
          "most " +
          search::format_amount(answer.gap, "nats") + " more than the best there is");
  } else {
    CTK_TRY(std::vector<std::size_t> choices, read_assignment(request.assignment, saved.table));
    answer = search::total_of(make_problem(saved.table, limits, saved.extra), std::move(choices));
  }
  result.loss = answer.loss;
  const Limits prices =
      request.assignment.empty() ? prices_of(*solver, saved.table, limits, saved.extra, answer.loss) : Limits{};
  const auto schemes = to_schemes(saved.table, answer);
  for (const Group& group : saved.table.groups) {
    for (const std::string& layer : group.layers)
      result.layers.push_back(
          {layer, to_string(schemes.at(layer)), reason_for(saved.table, group, schemes.at(layer), prices)});
  }
  for (std::size_t b = 0; b < std::size(kBudgets); ++b) {
    const BudgetRow& budget = kBudgets[b];
    if (budget.is_of_running && !(saved.baseline.*budget.of > 0)) continue;
    result.budgets.push_back({std::string(budget.name), budget.unit, limits.*budget.of, answer.costs[b],
                              prices.*budget.of, budget.name == request.minimize});
  }
  for (const ResolvedBudget& budget : result.budgets) {
    if (request.assignment.empty() || budget.predicted <= budget.limit) continue;
    return Error{ErrorCode::budget_infeasible, request.assignment + ": " + budget.name + ": expected at most " +
                                                   search::format_amount(budget.limit, budget.unit) + ", found " +
                                                   search::format_amount(budget.predicted, budget.unit) +
                                                   ". Give layers smaller schemes or raise the budget"};
  }
  return result;
}

Result<ResolvedFront> resolve_front(const FrontRequest& request) {
  ResolvedFront result;
  if (!request.of.minimize.empty())
    return config_error("--pareto: expected no --minimize beside it, found \"" + printable(request.of.minimize) +
                        "\": the front is of the least loss at each budget. Leave one out");
  CTK_TRY(SavedSearch saved, read_search_files(request.of.run, result.warnings));
  CTK_TRY(const Asked asked, limits_of(request.of, saved));
  std::vector<std::size_t> axes;
  for (const std::string& name : request.over) {
    const auto axis = find_budget(name);
    if (!axis || std::ranges::find(axes, *axis) != axes.end() || axes.size() == 2)
      return config_error("--over: expected one or two different budgets of " + known_budgets() + ", found \"" +
                          printable(name) + "\". Name others");
    if (!has_costs(saved.table, *axis))
      return input_error(request.of.run + ": expected figures of running for --over " + name +
                         ", found none, since the run had no budget of " + running_budgets(name) +
                         ". Run the pipeline with one");
    axes.push_back(*axis);
  }
  if (axes.empty()) axes = usual_axes(saved.table);
  for (const std::size_t axis : axes) result.over.emplace_back(kBudgets[axis].name);
  const bool needs_times =
      std::ranges::any_of(result.over, [](const std::string& name) { return name.starts_with("latency"); }) ||
      (!request.of.budgets.empty() && has_time(asked.limits));
  CTK_CHECK(check_machine(request.of, needs_times, saved, result.warnings));
  // The run's own answer is one of them where it keeps the limits asked for now.
  std::optional<search::Assignment> taken;
  const std::string path = request.of.run + "/search/assignment.json";
  if (std::filesystem::exists(path)) {
    CTK_TRY(std::vector<std::size_t> choices, read_assignment(path, saved.table));
    taken = search::total_of(make_problem(saved.table, asked.limits, saved.extra), std::move(choices));
    for (std::size_t b = 0; b < std::size(kBudgets); ++b) {
      const bool is_axis = std::ranges::find(axes, b) != axes.end();
      if (taken && !is_axis && taken->costs[b] > asked.limits.*kBudgets[b].of) taken.reset();
    }
  }
  CTK_TRY(const std::vector<FrontPoint> front,
          front_of(saved.table, asked.limits, saved.extra, axes, request.points, taken ? &*taken : nullptr));
  for (const FrontPoint& point : front) {
    FrontAnswer& answer = result.points.emplace_back();
    answer.row = point.row;
    for (const auto& [layer, scheme] : to_schemes(saved.table, point.answer)) answer.schemes[layer] = to_string(scheme);
  }
  return result;
}

}  // namespace ctk::pipeline

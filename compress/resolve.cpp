#include "compress/resolve.h"

#include <cmath>
#include <limits>

#include "compress/search_files.h"
#include "compress/units.h"
#include "core/cpu_isa.h"
#include "core/printable.h"

namespace ctk::pipeline {
namespace {

using namespace search_table;

Error wrong_budget(const std::string& text, const std::string& expected) {
  return config_error("--budget: expected " + expected + ", found \"" + printable(text) + "\"");
}

// Limits of the run, each replaced by the one given.
Result<Limits> limits_of(const ResolveRequest& request, const SavedSearch& saved) {
  if (request.budgets.empty()) return saved.limit;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  Limits limits{kNone, kNone, kNone};
  for (const std::string& text : request.budgets) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals),
                      amount = equals == std::string::npos ? "" : text.substr(equals + 1);
    double* limit = name == "size"          ? &limits.size
                    : name == "latency"     ? &limits.latency
                    : name == "peak_memory" ? &limits.peak
                                            : nullptr;
    if (limit == nullptr || equals == std::string::npos)
      return wrong_budget(text,
                          "size=60 kB, latency=0.2 ms or peak_memory=1 MB, or shares of the float model like "
                          "size=20 %");
    if (std::isfinite(*limit)) return wrong_budget(text, "each budget once");
    auto parsed = name == "latency" ? parse_latency(amount) : parse_size(amount);
    if (!parsed) return std::move(parsed).error().with_context("--budget " + name);
    const double baseline = name == "size"      ? saved.baseline.size
                            : name == "latency" ? saved.baseline.latency
                                                : saved.baseline.peak;
    if (name != "size" && !(baseline > 0)) {
      return input_error(
          request.run + ": expected figures of running for --budget " + name +
          ", found none, since the run had no budget of latency or peak_memory. Run the pipeline with one");
    }
    *limit = parsed->absolute(baseline);
  }
  limits.size = std::floor(limits.size);
  return limits;
}

Status check_machine(const ResolveRequest& request, const Limits& limits, const SavedSearch& saved, Resolved& result) {
  const std::string here = cpu_model();
  if (!std::isfinite(limits.latency) || saved.cpu == here) return {};
  const std::string text = request.run + "/search/times.json: times were taken on \"" + printable(saved.cpu) +
                           "\", this is \"" + here + "\"";
  if (!request.allow_other_machine)
    return input_error(text + ". Run the pipeline here, or give --allow-other-machine to use them");
  result.warnings.push_back(text);
  return {};
}

}  // namespace

Result<Resolved> resolve(const ResolveRequest& request) {
  Resolved result;
  CTK_TRY(SavedSearch saved, read_search_files(request.run, result.warnings));
  CTK_TRY(const Limits limits, limits_of(request, saved));
  CTK_CHECK(check_machine(request, limits, saved, result));
  CTK_TRY(const search::Solver* solver, search::find_solver(request.solver));
  search::Assignment answer;
  if (request.assignment.empty()) {
    CTK_TRY(answer, solver->solve(make_problem(saved.table, limits, saved.extra)));
    result.bound = answer.bound;
    result.gap = answer.gap;
    result.is_proved = answer.proved_optimal;
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
  result.budgets = {{"size", "B", limits.size, answer.costs[0], prices.size}};
  if (saved.baseline.latency > 0)
    result.budgets.push_back({"latency", "us", limits.latency, answer.costs[1], prices.latency});
  if (saved.baseline.peak > 0)
    result.budgets.push_back({"peak_memory", "B", limits.peak, answer.costs[2], prices.peak});
  for (const ResolvedBudget& budget : result.budgets) {
    if (budget.predicted <= budget.limit) continue;
    return Error{ErrorCode::budget_infeasible, request.assignment + ": " + budget.name + ": expected at most " +
                                                   search::format_amount(budget.limit, budget.unit) + ", found " +
                                                   search::format_amount(budget.predicted, budget.unit) +
                                                   ". Give layers smaller schemes or raise the budget"};
  }
  return result;
}

}  // namespace ctk::pipeline

#include "compress/infeasible_budgets.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compress/output_folder.h"
#include "core/file.h"
#include "search/nearest.h"

namespace ctk::pipeline::search_table {
namespace {

using nlohmann::ordered_json;
using search::format_amount;

constexpr std::size_t kHoldersShown = 5;

bool binds(const search::Reach& reach) {
  // Raised alone it would do, or it can be met by nobody.
  return std::isfinite(reach.limit) &&
         (!reach.is_reachable || (reach.least_with_others && *reach.least_with_others > reach.limit));
}

std::string line_of(const search::Reach& reach, const std::string& unit, bool has_others) {
  std::string text = "budget." + reach.budget + ": " + format_amount(reach.limit, unit) + " asked; smallest " +
                     format_amount(reach.least_alone, unit) + " alone";
  if (reach.least_with_others && has_others)
    text += ", " + format_amount(*reach.least_with_others, unit) + " while the others hold";
  std::string held;
  for (std::size_t i = 0; i < std::min(kHoldersShown, reach.holders.size()) && reach.holders[i].cost > 0; ++i) {
    const search::Holder& holder = reach.holders[i];
    held +=
        (held.empty() ? "" : ", ") + holder.item + " " + format_amount(holder.cost, unit) + " (" + holder.choice + ")";
  }
  if (!held.empty()) text += "; held by " + held;
  return text + (binds(reach) ? "; it binds" : "");
}

std::string way_out(const search::NearestFeasible& nearest, const search::Problem& problem, bool has_losses) {
  if (has_losses) return "nearest: " + search::describe(nearest, problem) + " (nats, by the scores)";
  std::string text = "nearest: ";
  for (const search::Relief& relief : nearest.raise_one) {
    for (const search::Budget& budget : problem.budgets) {
      if (budget.name == relief.budget)
        text += "budget." + relief.budget + " alone at " + format_amount(relief.needed, budget.unit) + " is enough; ";
    }
  }
  const auto finite =
      std::ranges::count_if(nearest.reaches, [](const auto& reach) { return std::isfinite(reach.limit); });
  if (finite > 1) text += "all limits " + format_amount(100 * nearest.share, "%") + " higher are enough; ";
  return text + "what that loses is known once layers are scored";
}

ordered_json figure(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

ordered_json as_json(const search::NearestFeasible& nearest, const search::Problem& problem, bool has_losses) {
  ordered_json budgets = ordered_json::array(), reliefs = ordered_json::array();
  for (std::size_t b = 0; b < nearest.reaches.size(); ++b) {
    const search::Reach& reach = nearest.reaches[b];
    if (!std::isfinite(reach.limit)) continue;
    ordered_json holders = ordered_json::array();
    for (const search::Holder& holder : reach.holders) {
      if (holder.cost > 0)
        holders.push_back({{"layer", holder.item}, {"scheme", holder.choice}, {"cost", holder.cost}});
    }
    budgets.push_back(
        {{"name", reach.budget},
         {"unit", problem.budgets[b].unit},
         {"limit", reach.limit},
         {"least_alone", reach.least_alone},
         {"least_given_others", reach.least_with_others ? ordered_json(*reach.least_with_others) : ordered_json()},
         {"binds", binds(reach)},
         {"held_by", holders}});
  }
  const auto loss_of = [&](double loss) { return has_losses ? ordered_json(loss) : ordered_json(); };
  for (const search::Relief& relief : nearest.raise_one) {
    reliefs.push_back({{"budget", relief.budget},
                       {"limit", relief.limit},
                       {"needed", relief.needed},
                       {"loss", loss_of(relief.loss)}});
  }
  ordered_json limits, costs, prices, schemes;
  for (std::size_t b = 0; b < problem.budgets.size(); ++b) {
    const std::string& name = problem.budgets[b].name;
    limits[name] = figure(nearest.limits[b]);
    costs[name] = nearest.answer.costs[b];
    prices[name] = has_losses ? figure(nearest.prices[b]) : ordered_json();
  }
  for (std::size_t i = 0; i < problem.items.size(); ++i)
    schemes[problem.items[i].name] = problem.items[i].choices[nearest.answer.choices[i]].name;
  return {{"budget", budgets},
          {"raise_one", reliefs},
          {"nearest",
           {{"share", nearest.share},
            {"limit", limits},
            {"cost", costs},
            {"loss", loss_of(nearest.answer.loss)},
            {"price", prices},
            {"assignment", schemes}}}};
}

}  // namespace

Result<Explanation> explain(const search::Problem& problem, bool has_losses,
                            Result<search::Assignment> (*solve)(const search::Problem&)) {
  CTK_TRY(const search::NearestFeasible nearest, search::nearest_feasible(problem, solve));
  Explanation out;
  out.text = search::explain_infeasible(problem, solve).message;
  const auto finite =
      std::ranges::count_if(nearest.reaches, [](const auto& reach) { return std::isfinite(reach.limit); });
  for (std::size_t b = 0; b < nearest.reaches.size(); ++b) {
    if (std::isfinite(nearest.reaches[b].limit))
      out.text += "\n" + line_of(nearest.reaches[b], problem.budgets[b].unit, finite > 1);
  }
  out.text += "\n" + way_out(nearest, problem, has_losses);
  out.json = as_json(nearest, problem, has_losses).dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  return out;
}

Error infeasible_error(const search::Problem& problem, bool has_losses,
                       Result<search::Assignment> (*solve)(const search::Problem&), const std::string& output,
                       const std::string& headline) {
  auto found = explain(problem, has_losses, solve);
  if (!found) return std::move(found).error();
  if (!output.empty()) {
    if (auto left = leave_infeasible(output, found->json); !left) return std::move(left).error();
  }
  if (headline.empty()) return {ErrorCode::budget_infeasible, std::move(found->text)};
  return {ErrorCode::budget_infeasible,
          headline + found->text.substr(std::min(found->text.find('\n'), found->text.size()))};
}

Status leave_infeasible(const std::string& output, const std::string& json) {
  CTK_CHECK(claim_output(output));
  std::error_code error;
  std::filesystem::create_directories(output + "/search", error);
  if (error) return input_error(output + "/search: cannot be made: " + error.message());
  return write_file(output + "/search/infeasible.json", json);
}

void forget_infeasible(const std::string& output) {
  std::error_code ignored;
  std::filesystem::remove(output + "/search/infeasible.json", ignored);
}

}  // namespace ctk::pipeline::search_table

#include "compress/search_objective.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "compress/contest.h"
#include "compress/infeasible_budgets.h"
#include "search/infeasible.h"
#include "search/pareto.h"

namespace ctk::pipeline::search_table {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kFrontPoints = 12;

Result<Floor::Verdict> hold(const Session& session, Floor& floor, const Table& table,
                            const search::Assignment& answer) {
  CTK_TRY(const CodedNetwork network, code_network(session, to_schemes(table, answer), {}));
  return floor.hold(network.graph);
}

class Trials {
 public:
  Trials(const Session& session, Floor& floor, const Table& table, std::size_t budget)
      : session_(session), floor_(floor), table_(table), budget_(budget) {}

  bool is_full() const { return rows_.size() >= kMostTrials; }

  // Whether the answer's network stays within the floor.
  Result<bool> is_within(const search::Assignment& answer) {
    if (const auto known = known_.find(answer.choices); known != known_.end()) return known->second;
    CTK_TRY(const Floor::Verdict verdict, hold(session_, floor_, table_, answer));
    exporter::TrialRow row;
    row.limit = answer.costs[budget_];
    row.loss = answer.loss;
    row.measured = verdict.kl;
    row.metric = verdict.metric;
    row.drop = verdict.drop;
    row.is_within = verdict.is_within;
    rows_.push_back(row);
    known_[answer.choices] = verdict.is_within;
    return verdict.is_within;
  }

  std::vector<exporter::TrialRow> take() {
    std::ranges::stable_sort(rows_, {}, &exporter::TrialRow::limit);
    return std::move(rows_);
  }

 private:
  const Session& session_;
  Floor& floor_;
  const Table& table_;
  std::size_t budget_;
  std::vector<exporter::TrialRow> rows_;
  std::map<std::vector<std::size_t>, bool> known_;
};

// Layers by their share of the answer's loss, most first.
std::vector<search::Holder> losers(const search::Problem& problem, const search::Assignment& answer) {
  std::vector<search::Holder> all;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const search::Choice& choice = problem.items[i].choices[answer.choices[i]];
    if (choice.loss > 0) all.push_back({problem.items[i].name, choice.name, choice.loss});
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &search::Holder::cost);
  return all;
}

}  // namespace

Result<Objective> smallest_within(const Session& session, Floor& floor, const Table& table, const Limits& limit,
                                  const Limits& extra, std::size_t budget) {
  search::Problem problem = make_problem(table, limit, extra);
  problem.budgets[budget].limit = kNoLimits.size;
  CTK_TRY(const std::vector<search::FrontPoint> front, search::front(problem, budget, kFrontPoints));
  Trials trials(session, floor, table, budget);
  Objective found;
  const search::Assignment& best = front.back().answer;
  found.limit = best.costs[budget];
  CTK_TRY(found.is_within, trials.is_within(best));
  if (!found.is_within) {
    found.trials = trials.take();
    return found;
  }
  // Below `low` nothing is known to hold; `high` holds.
  std::ptrdiff_t low = -1, high = static_cast<std::ptrdiff_t>(front.size()) - 1;
  while (high - low > 1 && !trials.is_full()) {
    const std::ptrdiff_t middle = low + (high - low) / 2;
    CTK_TRY(const bool is_within, trials.is_within(front[static_cast<std::size_t>(middle)].answer));
    (is_within ? high : low) = middle;
  }
  found.limit = front[static_cast<std::size_t>(high)].answer.costs[budget];
  if (low >= 0) {  // between the two, answers that are no points of the front as drawn
    double fails = front[static_cast<std::size_t>(low)].answer.costs[budget];
    constexpr int kHalvings = 12;
    for (int k = 0; k < kHalvings && !trials.is_full() && found.limit - fails > 1e-3 * found.limit; ++k) {
      const double middle = 0.5 * (fails + found.limit);
      problem.budgets[budget].limit = middle;
      CTK_TRY(const search::Assignment answer, search::solve_ilp(problem));
      if (answer.costs[budget] <= fails) {
        fails = middle;
        continue;
      }
      CTK_TRY(const bool is_within, trials.is_within(answer));
      (is_within ? found.limit : fails) = is_within ? answer.costs[budget] : middle;
    }
  }
  found.trials = trials.take();
  return found;
}

Status require_floor(const Session& session, Floor& floor, const Table& table, const Limits& limit, const Limits& extra,
                     const search::Assignment& best) {
  if (quantization::needs_inputs(session.config.quantize->method)) return {};
  CTK_TRY(const Floor::Verdict verdict, hold(session, floor, table, best));
  if (!verdict.is_clearly_broken) return {};
  return floor_error(session, floor, table, limit, extra, best);
}

Error floor_error(const Session& session, Floor& floor, const Table& table, const Limits& limit, const Limits& extra,
                  const search::Assignment& best) {
  constexpr std::size_t kHoldersShown = 5;
  const search::Problem problem = make_problem(table, limit, extra);
  const auto explained = [&]() -> Result<std::string> {
    CTK_TRY(const Floor::Verdict given, hold(session, floor, table, best));
    CTK_TRY(const search::Assignment free, search::solve_ilp(make_problem(table, kNoLimits, extra)));
    CTK_TRY(const Floor::Verdict alone, hold(session, floor, table, free));
    const bool is_alone = free.choices == best.choices || !alone.is_within;
    std::string text = "budget.metric_drop: expected a drop of at most " + to_text(floor.limit()) + ", found " +
                       given.text + " on " + std::to_string(floor.samples()) +
                       " samples of the select split with the least loss the other budgets allow. " +
                       (is_alone ? "Allow more precise schemes, or a greater drop"
                                 : "Raise a budget that binds, or allow a greater drop");
    text += "\nbudget.metric_drop: smallest drop alone: " + alone.text + "; it binds";
    ordered_json holders = ordered_json::array(), reliefs = ordered_json::array();
    std::string held;
    for (const search::Holder& holder : losers(problem, best)) {
      if (holders.size() < kHoldersShown)
        held += (held.empty() ? "; held by " : ", ") + holder.item + " " + search::format_amount(holder.cost, "nats") +
                " (" + holder.choice + ")";
      holders.push_back({{"layer", holder.item}, {"scheme", holder.choice}, {"cost", holder.cost}});
    }
    text += held;
    for (std::size_t b = 0; b < std::size(kBudgets) && !is_alone; ++b) {
      const double asked = limit.*kBudgets[b].of;
      if (!std::isfinite(asked)) continue;
      CTK_TRY(const Objective found, smallest_within(session, floor, table, limit, extra, b));
      const std::string name(kBudgets[b].name);
      if (!found.is_within) continue;
      const auto row = std::ranges::find(found.trials, found.limit, &exporter::TrialRow::limit);
      text += "\nnearest: budget." + name + " alone at " + search::format_amount(found.limit, kBudgets[b].unit) +
              " (asked " + search::format_amount(asked, kBudgets[b].unit) + ") keeps the floor: a drop of " +
              search::format_amount(*row->drop, "") + ", a loss of " + search::format_amount(row->loss, "nats");
      reliefs.push_back({{"budget", name}, {"limit", asked}, {"needed", found.limit}, {"loss", row->loss}});
    }
    const ordered_json budget{{"name", "metric_drop"},
                              {"unit", floor.limit().is_relative ? "ratio" : "points"},
                              {"limit", floor.limit().value},
                              {"least_alone", alone.drop},
                              {"least_given_others", given.drop},
                              {"binds", true},
                              {"held_by", holders}};
    const ordered_json file{{"budget", ordered_json::array({budget})}, {"raise_one", reliefs}};
    CTK_CHECK(
        leave_infeasible(session.output, file.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n"));
    return text;
  };
  auto text = explained();
  if (!text) return std::move(text).error();
  return {ErrorCode::budget_infeasible, std::move(*text)};
}

}  // namespace ctk::pipeline::search_table

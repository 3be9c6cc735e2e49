// Answers beside the best one, for the whole network to decide between: scores are estimates, and what they add up to
// is one more.
#include <algorithm>
#include <cmath>
#include <set>

#include "compress/search_plan.h"
#include "core/random.h"

namespace ctk::pipeline::search_table {
namespace {

constexpr int kMostDraws = 16;           // for one answer: where errors are small, draws end at the same one
constexpr std::size_t kMostBarred = 48;  // groups whose choice is taken away to find a second best

bool is_new(const search::Assignment& answer, const search::Assignment& first, const std::vector<Alternative>& found) {
  return answer.choices != first.choices &&
         std::ranges::none_of(found, [&](const Alternative& other) { return other.answer.choices == answer.choices; });
}

// Each loss moved by `steps(key)` standard errors; never below 0.
template <class Steps>
Table with_losses(const Table& table, Steps steps) {
  Table moved = table;
  for (auto& [key, loss] : moved.loss) {
    const auto error = table.loss_error.find(key);
    if (error != table.loss_error.end()) loss = std::max(0.0, loss + steps() * error->second);
  }
  return moved;
}

// The groups to take a choice from, those with most loss first: there scores matter most.
std::vector<std::size_t> by_loss(const search::Problem& problem, const search::Assignment& first) {
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    if (problem.items[i].choices.size() > 1) items.push_back(i);
  }
  std::ranges::stable_sort(items, [&](std::size_t a, std::size_t b) {
    return problem.items[a].choices[first.choices[a]].loss > problem.items[b].choices[first.choices[b]].loss;
  });
  items.resize(std::min(items.size(), kMostBarred));
  return items;
}

// The scheme that keeps the limits with the least loss where every group that can take it does, and the others the
// choice they lose least by. Mixing is a bet on scores; this is what it is held against.
std::optional<std::pair<std::string, std::vector<std::size_t>>> best_uniform(const Table& table,
                                                                             const search::Problem& problem,
                                                                             const Limits& limit) {
  std::set<std::string> schemes;
  for (const Group& group : table.groups) {
    for (const QuantScheme& scheme : group.choices) schemes.insert(to_string(scheme));
  }
  std::optional<std::pair<std::string, std::vector<std::size_t>>> best;
  double least = 0;
  for (const std::string& scheme : schemes) {
    std::vector<std::size_t> choices;
    for (const search::Item& item : problem.items) {
      auto at = std::ranges::find(item.choices, scheme, &search::Choice::name);
      if (at == item.choices.end()) at = std::ranges::min_element(item.choices, {}, &search::Choice::loss);
      choices.push_back(static_cast<std::size_t>(at - item.choices.begin()));
    }
    const search::Assignment answer = search::total_of(problem, choices);
    bool is_within = true;
    for (std::size_t b = 0; b < std::size(kBudgets); ++b) is_within &= answer.costs[b] <= limit.*kBudgets[b].of;
    if (is_within && (!best || answer.loss < least)) {
      best = {scheme, std::move(choices)};
      least = answer.loss;
    }
  }
  return best;
}

}  // namespace

std::vector<Alternative> alternatives_to(const search::Assignment& first, const search::Solver& solver,
                                         const Table& table, const Limits& limit, const Limits& extra,
                                         std::size_t count, std::uint64_t seed) {
  const search::Problem problem = make_problem(table, limit, extra);
  std::vector<Alternative> found;
  const auto keep = [&](const search::Assignment& answer, std::string origin) {
    if (found.size() < count && is_new(answer, first, found))
      found.push_back({search::total_of(problem, answer.choices), std::move(origin)});
  };
  const auto try_losses = [&](const Table& moved, std::string origin) {
    if (const auto answer = solver.solve(make_problem(moved, limit, extra))) keep(*answer, std::move(origin));
  };
  if (const auto uniform = best_uniform(table, problem, limit))
    keep(search::total_of(problem, uniform->second), "one scheme everywhere, " + uniform->first);
  if (found.size() < count) try_losses(with_losses(table, [] { return 1.0; }), "losses one standard error up");
  Random random(seed, "finalists");
  for (int draw = 0; draw < kMostDraws && found.size() < count; ++draw)
    try_losses(with_losses(table, [&] { return random.normal(); }), "losses drawn within their standard errors");
  while (found.size() < count) {  // the next best, by taking one choice away
    std::optional<search::Assignment> best;
    for (std::size_t item : by_loss(problem, first)) {
      search::Problem barred = problem;
      auto& choices = barred.items[item].choices;
      choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(first.choices[item]));
      auto answer = solver.solve(barred);
      if (!answer) continue;
      if (answer->choices[item] >= first.choices[item]) ++answer->choices[item];
      if (is_new(*answer, first, found) && (!best || answer->loss < best->loss)) best = *answer;
    }
    if (!best) break;
    keep(*best, "next best by the scores");
  }
  return found;
}

}  // namespace ctk::pipeline::search_table

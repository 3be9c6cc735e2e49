#include "compress/search_front.h"

#include <algorithm>

#include "search/pareto.h"

namespace ctk::pipeline::search_table {
namespace {

bool beats(const search::Assignment& a, const search::Assignment& b, std::span<const std::size_t> axes) {
  return a.loss <= b.loss &&
         std::ranges::all_of(axes, [&](std::size_t axis) { return a.costs[axis] <= b.costs[axis]; });
}

// In its place by cost, unless one is as good in everything; those that it beats leave.
void join(std::vector<search::Assignment>& answers, search::Assignment answer, std::span<const std::size_t> axes) {
  if (std::ranges::any_of(answers, [&](const auto& other) { return beats(other, answer, axes); })) return;
  std::erase_if(answers, [&](const auto& other) { return beats(answer, other, axes); });
  const auto place =
      std::ranges::find_if(answers, [&](const auto& other) { return other.costs[axes[0]] > answer.costs[axes[0]]; });
  answers.insert(place, std::move(answer));
}

double price_at(const std::vector<search::Assignment>& answers, const search::Assignment& here,
                std::span<const std::size_t> axes, std::size_t budget) {
  constexpr double kHeld = 1.01;  // points are few: few take exactly as much of the other axis
  double most = 0;
  for (const search::Assignment& other : answers) {
    const double more = other.costs[budget] - here.costs[budget];
    const bool is_free = std::ranges::all_of(
        axes, [&](std::size_t axis) { return axis == budget || other.costs[axis] <= kHeld * here.costs[axis]; });
    if (more > 0 && is_free) most = std::max(most, (here.loss - other.loss) / more);
  }
  return most;
}

}  // namespace

std::vector<std::size_t> usual_axes(const Table& table) {
  std::vector<std::size_t> axes{0};
  if (!table.latency_us.empty())
    axes.push_back(1);
  else if (!table.decode.us.empty())
    axes.push_back(*find_budget("latency.decode"));
  return axes;
}

exporter::BudgetFigures figures_of(const Table& table, const search::Assignment& answer) {
  exporter::BudgetFigures figures;
  for (std::size_t b = 0; b < std::size(kBudgets); ++b) {
    if (has_costs(table, b)) figures.*kBudgets[b].figure = answer.costs[b];
  }
  return figures;
}

Result<std::vector<FrontPoint>> front_of(const Table& table, const Limits& limit, const Limits& extra,
                                         std::span<const std::size_t> axes, std::size_t points,
                                         const search::Assignment* taken) {
  if (axes.empty() || axes.size() > 2)
    return input_error("search.front: expected one budget or two, found " + std::to_string(axes.size()) +
                       ". Name size, latency, peak_memory or bits");
  search::Problem problem = make_problem(table, limit, extra);
  for (const std::size_t axis : axes) problem.budgets[axis].limit = kNoLimits.size;
  auto found =
      axes.size() == 1 ? search::front(problem, axes[0], points) : search::front(problem, axes[0], axes[1], points);
  if (!found) return std::move(found).error();
  std::vector<search::Assignment> answers;
  for (search::FrontPoint& point : *found) answers.push_back(std::move(point.answer));
  if (taken != nullptr) join(answers, search::total_of(problem, taken->choices), axes);
  std::vector<FrontPoint> all;
  for (const search::Assignment& answer : answers) {
    FrontPoint& row = all.emplace_back();
    row.answer = answer;
    row.row.loss = answer.loss;
    row.row.cost = figures_of(table, answer);
    for (const std::size_t axis : axes) row.row.price.*kBudgets[axis].figure = price_at(answers, answer, axes, axis);
    row.row.is_chosen = taken != nullptr && answer.choices == taken->choices;
  }
  return all;
}

}  // namespace ctk::pipeline::search_table

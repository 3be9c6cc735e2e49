#include "compress/search_front.h"

#include "search/pareto.h"

namespace ctk::pipeline::search_table {

std::vector<std::size_t> usual_axes(const Table& table) {
  std::vector<std::size_t> axes{0};
  if (!table.latency_us.empty()) axes.push_back(1);
  return axes;
}

exporter::BudgetFigures figures_of(const Table& table, const search::Assignment& answer) {
  exporter::BudgetFigures figures;
  for (std::size_t b = 0; b < std::size(kBudgets); ++b) {
    if (!kBudgets[b].is_of_running || !table.latency_us.empty()) figures.*kBudgets[b].figure = answer.costs[b];
  }
  return figures;
}

Result<std::vector<FrontPoint>> front_of(const Table& table, const Limits& limit, const Limits& extra,
                                         std::span<const std::size_t> axes, std::size_t points) {
  if (axes.empty() || axes.size() > 2)
    return input_error("search.front: expected one budget or two, found " + std::to_string(axes.size()) +
                       ". Name size, latency, peak_memory or bits");
  search::Problem problem = make_problem(table, limit, extra);
  for (const std::size_t axis : axes) problem.budgets[axis].limit = kNoLimits.size;
  const auto found =
      axes.size() == 1 ? search::front(problem, axes[0], points) : search::front(problem, axes[0], axes[1], points);
  if (!found) return found.error();
  std::vector<FrontPoint> all;
  for (const search::FrontPoint& point : *found) {
    FrontPoint& row = all.emplace_back();
    row.answer = point.answer;
    row.row.loss = point.answer.loss;
    row.row.cost = figures_of(table, point.answer);
    if (axes.size() == 1) {
      row.row.price.*kBudgets[axes[0]].figure = point.price;
      continue;
    }
    constexpr double kRounding = 1e-9;  // a sum of fractions is asked back as a limit
    for (const std::size_t axis : axes) problem.budgets[axis].limit = point.answer.costs[axis] * (1 + kRounding);
    CTK_TRY(const std::vector<double> prices, search::prices_of(problem));
    for (const std::size_t axis : axes) row.row.price.*kBudgets[axis].figure = prices[axis];
  }
  return all;
}

}  // namespace ctk::pipeline::search_table

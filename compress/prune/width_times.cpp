#include "compress/prune/width_times.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "compress/interrupt.h"
#include "runtime/measure.h"
#include "search/solvers/solvers.h"

namespace ctk::pruning {
namespace {

constexpr std::size_t kMostWidths = 16;
constexpr runtime::MeasureOptions kMeasure{0.02, 7, 500, 2};  // an executor

}  // namespace

Status time_curves(const WidthTask& task, std::span<const Shape> input_shapes, Curves& curves) {
  const std::vector<Shape> shapes(input_shapes.begin(), input_shapes.end());
  CTK_TRY(const auto whole, runtime::CpuExecutor::create(task.coupling.graph(), shapes));
  double whole_us = 0;
  for (std::size_t g = 0; g < curves.size(); ++g) {
    if (curves[g].size() < 2) continue;
    CTK_CHECK(check_interrupt());
    std::vector<CurvePoint> points = spread(curves[g], kMostWidths);
    std::vector<std::unique_ptr<runtime::CpuExecutor>> cuts;
    std::vector<runtime::CpuExecutor*> turn{whole.get()};
    for (std::size_t i = 1; i < points.size(); ++i) {
      Widths widths = whole_widths(task);
      widths[g] = points[i].width;
      CTK_TRY(const graph::Graph cut, task.coupling.cut(removed_by(task, widths)));
      CTK_TRY(auto executor, runtime::CpuExecutor::create(cut, shapes));
      cuts.push_back(std::move(executor));
      turn.push_back(cuts.back().get());
    }
    CTK_TRY(const auto times, runtime::measure_interleaved(turn, kMeasure));
    if (whole_us == 0) whole_us = times[0].median_us;
    for (std::size_t i = 0; i < points.size(); ++i)
      points[i].us = times[i].median_us * whole_us / std::max(times[0].median_us, 1e-3);
    curves[g] = std::move(points);
  }
  return {};
}

void drop_slow_widths(Curves& curves) {
  for (std::vector<CurvePoint>& curve : curves) {
    double least = std::numeric_limits<double>::infinity();
    std::erase_if(curve, [&](const CurvePoint& point) {  // widest first
      if (point.us >= least) return true;
      least = point.us;
      return false;
    });
  }
}

Result<Widths> widths_within_time(const WidthTask& task, const Curves& curves, double share) {
  search::Problem problem;
  std::vector<std::size_t> groups;
  double whole = 0, fixed = 0;
  for (std::size_t g = 0; g < curves.size(); ++g) {
    if (!task.is_wanted[g] || curves[g].size() < 2) continue;
    groups.push_back(g);
    if (groups.size() == 1) whole = fixed = curves[g][0].us;
    // Costs start at the quickest width; all groups there is what stays whatever is chosen.
    const double least = std::ranges::min(curves[g], {}, &CurvePoint::us).us;
    search::Item item{task.coupling.groups()[g].name, {}};
    for (const CurvePoint& point : curves[g])
      item.choices.push_back({std::to_string(point.width), point.loss, {point.us - least}});
    fixed -= curves[g][0].us - least;
    problem.items.push_back(std::move(item));
  }
  problem.budgets.push_back({"latency", share * whole - std::min(0.0, fixed), std::max(0.0, fixed), "us"});
  CTK_TRY(const search::Solver* solver, search::find_solver("ilp"));
  CTK_TRY(const search::Assignment answer, solver->solve(problem));
  Widths widths = whole_widths(task);
  for (std::size_t i = 0; i < groups.size(); ++i) widths[groups[i]] = curves[groups[i]][answer.choices[i]].width;
  return widths;
}

}  // namespace ctk::pruning

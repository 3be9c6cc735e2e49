#include "compress/prune/widths.h"

#include <algorithm>
#include <cmath>

#include "compress/units.h"
#include "search/solvers/solvers.h"

namespace ctk::pruning {
namespace {

std::size_t units_of(const WidthTask& task, std::size_t group) {
  return task.coupling.groups()[group].units.size();
}

std::size_t step_of(const WidthTask& task, std::size_t units) {
  if (task.round_to > 0) return static_cast<std::size_t>(task.round_to);
  return units >= 16 ? 8 : 1;
}

bool meets(const WidthTask& task, const Widths& widths) {
  if (task.macs_kept) {
    const auto reached = static_cast<double>(task.macs.of(removed_by(task, widths)));
    return reached <= *task.macs_kept * static_cast<double>(task.macs.whole());
  }
  std::size_t whole = 0, kept = 0;
  for (std::size_t g = 0; g < widths.size(); ++g) {
    if (!task.is_wanted[g]) continue;
    whole += units_of(task, g);
    kept += widths[g];
  }
  return static_cast<double>(kept) <= (1.0 - *task.ratio) * static_cast<double>(whole) + 1e-9;
}

// The allowed width next to the wish, the wider of two.
std::size_t nearest(const Widths& allowed, double wish) {
  std::size_t best = allowed[0];
  for (std::size_t width : allowed) {
    if (std::abs(static_cast<double>(width) - wish) < std::abs(static_cast<double>(best) - wish)) best = width;
  }
  return best;
}

// The first of `count` ever smaller answers that meets the aim.
template <class At>
Result<Widths> first_that_meets(const WidthTask& task, std::size_t count, At&& at) {
  std::size_t low = 0, high = count;
  if (!meets(task, at(high))) return config_error("no width meets the aim");
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (meets(task, at(middle)))
      high = middle;
    else
      low = middle + 1;
  }
  return at(high);
}

Widths least_widths(const WidthTask& task) {
  Widths widths = whole_widths(task);
  for (std::size_t g = 0; g < widths.size(); ++g) {
    if (task.is_wanted[g]) widths[g] = allowed_widths(task, g).back();
  }
  return widths;
}

double cost_of(const WidthTask& task, std::size_t group, std::size_t width) {
  if (!task.macs_kept) return static_cast<double>(width);
  Widths widths = whole_widths(task);
  widths[group] = width;
  return static_cast<double>(task.macs.of(removed_by(task, widths)));
}

}  // namespace

Widths whole_widths(const WidthTask& task) {
  Widths widths;
  for (const graph::CoupledGroup& group : task.coupling.groups()) widths.push_back(group.units.size());
  return widths;
}

Widths allowed_widths(const WidthTask& task, std::size_t group) {
  const std::size_t units = units_of(task, group), step = step_of(task, units);
  const double least = std::max(1.0, static_cast<double>(units) * (1.0 - task.max_ratio) - 1e-9);
  Widths allowed{units};
  for (std::size_t width = (units - 1) / step * step; width >= 1 && static_cast<double>(width) >= least;
       width -= step) {
    allowed.push_back(width);
  }
  return allowed;
}

graph::Coupling::Units removed_by(const WidthTask& task, const Widths& widths) {
  graph::Coupling::Units removed(widths.size());
  for (std::size_t g = 0; g < widths.size(); ++g) {
    const std::size_t units = units_of(task, g);
    if (widths[g] >= units) continue;
    const auto& order = task.ranking[g];
    removed[g].assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(units - widths[g]));
    std::ranges::sort(removed[g]);
  }
  return removed;
}

Status require_reachable(const WidthTask& task) {
  const Widths least = least_widths(task);
  if (meets(task, least)) return {};
  const auto percent = [](double share) { return pipeline::to_text(std::ceil(share * 1000) / 1000); };
  if (task.macs_kept) {
    const double share = static_cast<double>(task.macs.of(removed_by(task, least))) /
                         static_cast<double>(std::max<std::int64_t>(1, task.macs.whole()));
    return config_error("macs: expected at least " + percent(share) + ", the share that stays with " +
                        "max_ratio: " + pipeline::to_text(task.max_ratio) + " in every group that may be cut, found " +
                        pipeline::to_text(*task.macs_kept) +
                        ". Raise macs or max_ratio, or loosen `targets` and `ignore`");
  }
  return config_error("pruning_ratio: expected what max_ratio: " + pipeline::to_text(task.max_ratio) +
                      " and the widths of the groups allow, found " + pipeline::to_text(*task.ratio) +
                      ". Lower it, or raise max_ratio");
}

Result<Widths> uniform_widths(const WidthTask& task) {
  constexpr std::size_t kSteps = 1000;
  std::vector<Widths> allowed;
  for (std::size_t g = 0; g < task.coupling.groups().size(); ++g) allowed.push_back(allowed_widths(task, g));
  return first_that_meets(task, kSteps, [&](std::size_t step) {
    const double ratio = static_cast<double>(step) / kSteps;
    Widths widths = whole_widths(task);
    for (std::size_t g = 0; g < widths.size(); ++g) {
      if (task.is_wanted[g]) widths[g] = nearest(allowed[g], (1.0 - ratio) * static_cast<double>(units_of(task, g)));
    }
    return widths;
  });
}

Result<Widths> global_widths(const WidthTask& task, const Scores& scores) {
  struct Unit {
    double score;
    std::size_t group;
  };
  std::vector<Unit> all;
  for (std::size_t g = 0; g < scores.size(); ++g) {
    if (!task.is_wanted[g]) continue;
    for (std::size_t unit : task.ranking[g]) all.push_back({scores[g][unit], g});
  }
  std::ranges::stable_sort(all, {}, &Unit::score);
  std::vector<Widths> allowed;
  for (std::size_t g = 0; g < scores.size(); ++g) allowed.push_back(allowed_widths(task, g));
  return first_that_meets(task, all.size(), [&](std::size_t count) {
    Widths wish = whole_widths(task), widths = wish;
    for (std::size_t i = 0; i < count; ++i) --wish[all[i].group];
    for (std::size_t g = 0; g < widths.size(); ++g) {
      if (task.is_wanted[g]) widths[g] = nearest(allowed[g], static_cast<double>(wish[g]));
    }
    return widths;
  });
}

namespace {

double loss_at(const std::vector<CurvePoint>& curve, std::size_t width) {
  for (const CurvePoint& point : curve) {
    if (point.width == width) return point.loss;
  }
  return 0;
}

// What is left of the aim goes to the group that gains most by the next wider point, as long as one fits.
Widths widened(const WidthTask& task, const Curves& curves, Widths widths) {
  for (;;) {
    double most = 0;
    std::optional<Widths> best;
    for (std::size_t g = 0; g < curves.size(); ++g) {
      std::size_t wider = 0;
      for (const CurvePoint& point : curves[g]) wider = point.width > widths[g] ? point.width : wider;
      if (wider == 0 || !task.is_wanted[g]) continue;
      const double gain = loss_at(curves[g], widths[g]) - loss_at(curves[g], wider);
      Widths next = widths;
      next[g] = wider;
      if (gain <= most || !meets(task, next)) continue;
      most = gain;
      best = std::move(next);
    }
    if (!best) return widths;
    widths = std::move(*best);
  }
}

}  // namespace

bool needs_curves(std::string_view ratios) {
  return ratios == "sensitivity" || ratios == "timed" || ratios == "joint";
}

std::vector<CurvePoint> spread(const std::vector<CurvePoint>& curve, std::size_t most) {
  const std::size_t count = std::min(most, curve.size());
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < count; ++i) points.push_back(curve[i * (curve.size() - 1) / (count - 1)]);
  return points;
}

Result<Widths> widths_from_curves(const WidthTask& task, const Curves& curves) {
  constexpr int kMostCorrections = 24;
  search::Problem problem;
  std::vector<std::size_t> groups;
  double whole = 0;
  for (std::size_t g = 0; g < curves.size(); ++g) {
    if (!task.is_wanted[g] || curves[g].empty()) continue;
    if (!task.macs_kept) whole += static_cast<double>(units_of(task, g));
    groups.push_back(g);
  }
  if (task.macs_kept) whole = static_cast<double>(task.macs.whole());
  const double aim = task.macs_kept ? std::floor(*task.macs_kept * whole) : std::floor((1.0 - *task.ratio) * whole);
  for (std::size_t g : groups) {
    search::Item item{task.coupling.groups()[g].name, {}};
    const double full = cost_of(task, g, units_of(task, g));
    double least = full;
    for (const CurvePoint& point : curves[g]) least = std::min(least, cost_of(task, g, point.width));
    for (const CurvePoint& point : curves[g]) {
      // Savings add up from the network with every group whole; what stays whatever is chosen is in `fixed`.
      item.choices.push_back({std::to_string(point.width), point.loss, {cost_of(task, g, point.width) - least}});
    }
    whole -= full - least;
    problem.items.push_back(std::move(item));
  }
  problem.budgets.push_back({task.macs_kept ? "macs" : "channels", aim, whole, ""});
  CTK_TRY(const search::Solver* solver, search::find_solver("ilp"));
  // Layers cut on both sides save less than the sum, which may even fall below 0: the limit is moved by what was
  // missed.
  double missed = 0;
  for (int round = 0; round < kMostCorrections; ++round) {
    problem.budgets[0].fixed = whole + missed;
    if (problem.budgets[0].fixed < 0) problem.budgets[0].fixed = 0, problem.budgets[0].limit = aim - whole - missed;
    auto answer = solver->solve(problem);
    if (!answer) {
      if (answer.error().code == ErrorCode::budget_infeasible) break;
      return std::move(answer).error();
    }
    Widths widths = whole_widths(task);
    for (std::size_t i = 0; i < groups.size(); ++i) widths[groups[i]] = curves[groups[i]][answer->choices[i]].width;
    if (meets(task, widths)) return widened(task, curves, widths);
    const auto found = static_cast<double>(task.macs_kept ? task.macs.of(removed_by(task, widths)) : 0);
    missed += std::max(found - aim, 1e-3 * aim);
  }
  return config_error(
      "expected widths that meet the aim, found none on the sensitivity curves. Loosen the aim, or set ratios: "
      "uniform");
}

}  // namespace ctk::pruning

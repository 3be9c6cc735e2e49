#include "search/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "search/solvers/solvers.h"

namespace ctk::search {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

Status check_front(const Problem& problem, std::size_t budget, std::size_t points) {
  CTK_CHECK(check_problem(problem));
  if (budget >= problem.budgets.size() || points < 2) {
    return input_error("search.front: expected a budget below " + std::to_string(problem.budgets.size()) +
                       " and at least 2 points, found budget " + std::to_string(budget) + " and " +
                       std::to_string(points) + " points. Name a budget of the problem");
  }
  return {};
}

// Fractional costs are rounded one by one: a limit that is their very sum needs room for that.
double with_room(double limit) {
  constexpr double kRounding = 1e-10;
  return std::floor(limit) == limit ? limit : limit * (1 + kRounding);
}

// The budget comes first, so that of equal losses the cheapest wins; its limit is free.
Problem with_first(Problem problem, std::size_t budget) {
  std::swap(problem.budgets[0], problem.budgets[budget]);
  for (Item& item : problem.items) {
    for (Choice& choice : item.choices) std::swap(choice.costs[0], choice.costs[budget]);
  }
  for (Edge& edge : problem.edges) {
    for (PairTerm& term : edge.terms) {
      if (!term.costs.empty()) std::swap(term.costs[0], term.costs[budget]);
    }
  }
  problem.budgets[0].limit = kNoLimit;
  return problem;
}

// Loss + price * first cost in place of the loss; price infinite: the cost alone.
Problem priced(Problem problem, double price) {
  const bool is_cost_only = std::isinf(price);
  const auto weigh = [&](double loss, double cost) { return is_cost_only ? cost : loss + price * cost; };
  for (Item& item : problem.items) {
    for (Choice& choice : item.choices) choice.loss = weigh(choice.loss, choice.costs[0]);
  }
  for (Edge& edge : problem.edges) {
    for (PairTerm& term : edge.terms) term.loss = weigh(term.loss, term.costs.empty() ? 0 : term.costs[0]);
  }
  return problem;
}

class Front {
 public:
  Front(Problem problem, std::size_t points) : problem_(std::move(problem)), most_(points), solves_left_(4 * points) {}

  Status run() {
    CTK_TRY(const Assignment best, solve_ilp(problem_));
    CTK_TRY(const Assignment cheapest, solve_ilp(priced(problem_, kNoLimit)));
    CTK_TRY(const Assignment least, at_limit(cheapest.costs[0]));
    points_ = {{least, true, 0}, {best, true, 0}};
    tidy();
    CTK_CHECK(add_corners());
    CTK_CHECK(fill_gaps());
    for (std::size_t k = 0; k + 1 < points_.size(); ++k) {
      const Assignment &here = points_[k].answer, &next = points_[k + 1].answer;
      points_[k].price = (here.loss - next.loss) / (next.costs[0] - here.costs[0]);
    }
    return {};
  }

  std::vector<FrontPoint> take() { return std::move(points_); }

 private:
  Result<Assignment> at_limit(double limit) const {
    Problem limited = problem_;
    limited.budgets[0].limit = with_room(limit);
    return solve_ilp(limited);
  }

  // By cost; beaten points fall away.
  void tidy() {
    std::stable_sort(points_.begin(), points_.end(), [](const FrontPoint& a, const FrontPoint& b) {
      return std::pair(a.answer.costs[0], a.answer.loss) < std::pair(b.answer.costs[0], b.answer.loss);
    });
    std::vector<FrontPoint> kept;
    for (FrontPoint& point : points_) {
      if (kept.empty() || point.answer.loss < kept.back().answer.loss) kept.push_back(std::move(point));
    }
    points_ = std::move(kept);
  }

  // Between neighbours, the best answer at the price that makes them equal, widest gaps first.
  Status add_corners() {
    std::vector<std::pair<double, double>> done;  // costs between which no corner lies
    while (points_.size() < most_ && solves_left_ > 0) {
      const auto gap = widest([&](double left, double right) {
        return std::find(done.begin(), done.end(), std::pair(left, right)) == done.end();
      });
      if (!gap) return {};
      const Assignment left = points_[*gap].answer, right = points_[*gap + 1].answer;
      const double price = (left.loss - right.loss) / (right.costs[0] - left.costs[0]);
      --solves_left_;
      CTK_TRY(const Assignment corner, solve_ilp(priced(problem_, price)));
      const Assignment found = total_of(problem_, corner.choices);
      const double on_chord = left.loss + price * left.costs[0], reached = found.loss + price * found.costs[0];
      const bool is_inside = found.costs[0] > left.costs[0] && found.costs[0] < right.costs[0];
      if (!is_inside || reached >= on_chord - 1e-12 * std::abs(on_chord)) {
        done.emplace_back(left.costs[0], right.costs[0]);
        continue;
      }
      CTK_CHECK(add(found.costs[0], true));
    }
    return {};
  }

  // Least losses at the middle of the widest gap; a half without answers is not asked again.
  Status fill_gaps() {
    std::vector<std::pair<double, double>> empty;  // point's cost, limit up to which nothing better exists
    const auto free_from = [&](double left) {
      double from = left;
      for (const auto& [cost, limit] : empty) {
        if (cost == left) from = std::max(from, limit);
      }
      return from;
    };
    while (points_.size() < most_ && solves_left_ > 0) {
      const auto gap =
          widest([&](double left, double right) { return right - free_from(left) > 1e-3 * (right - left); }, free_from);
      if (!gap) return {};
      const double left = points_[*gap].answer.costs[0], right = points_[*gap + 1].answer.costs[0];
      const double limit = 0.5 * (free_from(left) + right);
      const std::size_t before = points_.size();
      CTK_CHECK(add(limit, false));
      if (points_.size() == before) empty.emplace_back(left, limit);
    }
    return {};
  }

  Status add(double limit, bool is_supported) {
    --solves_left_;
    CTK_TRY(Assignment found, at_limit(limit));
    const bool is_known = std::any_of(points_.begin(), points_.end(), [&](const FrontPoint& point) {
      return point.answer.costs[0] == found.costs[0] && point.answer.loss <= found.loss;
    });
    if (is_known) return {};
    points_.push_back({std::move(found), is_supported, 0});
    tidy();
    return {};
  }

  // The gap of the largest rectangle among those allowed; `start` may narrow it from the left.
  template <class Allowed, class Start>
  std::optional<std::size_t> widest(const Allowed& allowed, const Start& start) const {
    std::optional<std::size_t> best;
    double most = 0;
    for (std::size_t k = 0; k + 1 < points_.size(); ++k) {
      const Assignment &a = points_[k].answer, &b = points_[k + 1].answer;
      if (!allowed(a.costs[0], b.costs[0])) continue;
      const double area = (b.costs[0] - start(a.costs[0])) * (a.loss - b.loss);
      if (best && area <= most) continue;
      best = k;
      most = area;
    }
    return best;
  }
  template <class Allowed>
  std::optional<std::size_t> widest(const Allowed& allowed) const {
    return widest(allowed, [](double left) { return left; });
  }

  Problem problem_;
  std::size_t most_, solves_left_;
  std::vector<FrontPoint> points_;
};

}  // namespace

Result<std::vector<FrontPoint>> front(const Problem& problem, std::size_t budget, std::size_t points) {
  CTK_CHECK(check_front(problem, budget, points));
  Front found(with_first(problem, budget), points);
  CTK_CHECK(found.run());
  std::vector<FrontPoint> all = found.take();
  for (FrontPoint& point : all) std::swap(point.answer.costs[0], point.answer.costs[budget]);
  return all;
}

Result<std::vector<FrontPoint>> front(const Problem& problem, std::size_t first, std::size_t second,
                                      std::size_t points) {
  CTK_CHECK(check_front(problem, first, points));
  CTK_CHECK(check_front(problem, second, points));
  if (first == second) {
    return input_error("search.front: expected two different budgets, found " + problem.budgets[first].name +
                       " twice. Name another");
  }
  Problem free = problem;
  free.budgets[first].limit = free.budgets[second].limit = kNoLimit;
  // Limits of `second` from its least up to what the other two ends of the front take of it.
  const Problem by_first = with_first(free, first), by_second = with_first(free, second);
  CTK_TRY(const Assignment least_first, solve_ilp(priced(by_first, kNoLimit)));
  CTK_TRY(const Assignment least_second, solve_ilp(priced(by_second, kNoLimit)));
  CTK_TRY(const Assignment best, solve_ilp(free));
  const double low = total_of(free, least_second.choices).costs[second];
  const double high = std::max(total_of(free, least_first.choices).costs[second], best.costs[second]);
  std::vector<FrontPoint> all;
  for (std::size_t k = 0; k < points; ++k) {
    free.budgets[second].limit =
        with_room(low + (high - low) * static_cast<double>(k) / static_cast<double>(points - 1));
    CTK_TRY(auto row, front(free, first, points));
    for (FrontPoint& point : row) {
      point.price = 0;
      point.is_supported = false;
      all.push_back(std::move(point));
    }
  }
  const auto key = [&](const FrontPoint& point) {
    return std::tuple(point.answer.costs[first], point.answer.costs[second], point.answer.loss);
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  std::vector<FrontPoint> kept;
  for (FrontPoint& point : all) {
    const bool is_beaten = std::any_of(kept.begin(), kept.end(), [&](const FrontPoint& other) {
      return other.answer.costs[second] <= point.answer.costs[second] && other.answer.loss <= point.answer.loss;
    });
    if (!is_beaten) kept.push_back(std::move(point));
  }
  return kept;
}

}  // namespace ctk::search

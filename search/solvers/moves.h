// An assignment with running sums, changed one item at a time: what the heuristics share.
#pragma once

#include <optional>

#include "search/solvers/dual.h"

namespace ctk::search {

class Moves {
 public:
  // The grid must outlive it.
  Moves(const Grid& grid, std::vector<std::size_t> positions);

  const std::vector<std::size_t>& positions() const { return positions_; }
  std::int64_t loss() const { return loss_; }
  const std::vector<std::int64_t>& costs() const { return costs_; }
  bool is_within() const;
  // By how much limits are broken, each in units of `scale` (its spread over all choices), summed. 0: all hold.
  double excess() const;

  // What the sums become when an item moves.
  struct Change {
    std::int64_t loss = 0;            // added to the loss
    std::vector<std::int64_t> costs;  // [budgets], added to the costs
  };
  void change(std::size_t item, std::size_t position, Change& out) const;
  double excess_after(const Change& change) const;
  // Of the change, in units of each limit's spread; only limits that can bind count.
  double scaled_cost(const Change& change) const;
  void apply(std::size_t item, std::size_t position);

  // Brings the limits to hold by moves of least loss for each unit of excess removed; false when no move helps.
  bool repair();
  // Takes moves that lose less (or as much, and are better by the tie rule) and keep the limits, best loss for each
  // unit of cost first, until none is left.
  void descend();
  // As descend(), then pairs of moves: one that gains and one that pays for it. At most `max_steps` pairs are looked
  // at.
  void exchange(std::size_t max_steps);

 private:
  // Applies the move of least rate, the first of equals; rate_of(item, position, change) is empty for moves that do not
  // count. False: none does.
  template <class RateOf>
  bool apply_best(RateOf&& rate_of);

  const Grid* grid_;
  std::vector<std::size_t> positions_;
  std::int64_t loss_ = 0;
  std::vector<std::int64_t> costs_;
  std::vector<double> scales_;  // [budgets], 0: cannot bind
};

// The best assignment within the limits that repairing the dual's assignments and exchanging (at most `exchange_steps`
// looks each) gives, by the tie rule. None: it found none, which proves nothing.
std::optional<std::vector<std::size_t>> best_repaired(const Grid& grid, const Dual& dual, std::size_t exchange_steps);

// Choices of any assignment within the limits, by the integer programme without losses.
// Errors: budget_infeasible (there is none), those of solve_ilp.
Result<std::vector<std::size_t>> any_feasible(const Problem& problem);

}  // namespace ctk::search

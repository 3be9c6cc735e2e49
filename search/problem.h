// What a search decides: one choice for each item, so that total loss is least and every budget holds. Numbers in,
// numbers out; what items and choices stand for is the caller's business.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/result.h"

namespace ctk::search {

struct Choice {
  std::string name;           // "w8a8_c"
  double loss = 0;            // finite; losses of all items are added, so they share a unit
  std::vector<double> costs;  // [budgets], finite and >= 0, in the unit of each budget
};

struct Item {
  std::string name;             // a layer, or a group of layers that must agree
  std::vector<Choice> choices;  // at least one
};

// A dimension of cost and its limit. sum of chosen costs + fixed <= limit.
struct Budget {
  std::string name;  // "size", "latency": as in the pipeline file
  double limit = 0;  // infinity: only reported
  double fixed = 0;  // cost that no choice changes
  std::string unit;  // "B", "us" or "": only for messages
};

// What one choice of item a and one of item b add when both are taken.
struct PairTerm {
  std::size_t choice_a = 0, choice_b = 0;
  double loss = 0;            // finite, of either sign
  std::vector<double> costs;  // [budgets], finite and >= 0; empty: none
};

// Two items that are not independent: a precision change between neighbours, two layers that lose more together than
// each alone. Pairs that are not listed add nothing, pairs listed twice add both times.
struct Edge {
  std::size_t a = 0, b = 0;  // different items
  std::vector<PairTerm> terms;
};

struct Problem {
  std::vector<Item> items;
  std::vector<Budget> budgets;
  std::vector<Edge> edges;
};

struct Assignment {
  std::vector<std::size_t> choices;  // [items]
  double loss = 0;                   // summed in item order, then in edge order
  std::vector<double> costs;         // [budgets], fixed included
  bool proved_optimal = false;
  double bound = 0;  // no assignment has a smaller loss than this
  double gap = 0;    // loss - bound, >= 0
};

// Every number finite where it must be, every cost vector as long as budgets, edges between items and choices that
// exist. Errors: input (names item, choice, budget, edge).
Status check_problem(const Problem& problem);

// Sums of a complete assignment. proved_optimal, bound and gap stay unset.
Assignment total_of(const Problem& problem, std::vector<std::size_t> choices);

// "137.2 kB", "204.1 us", "12.5": an amount as a reader wants it, with the unit it is counted in.
std::string format_amount(double amount, const std::string& unit);

}  // namespace ctk::search

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

struct Problem {
  std::vector<Item> items;
  std::vector<Budget> budgets;
};

struct Assignment {
  std::vector<std::size_t> choices;  // [items]
  double loss = 0;                   // summed in item order
  std::vector<double> costs;         // [budgets], fixed included
  bool proved_optimal = false;
  double bound = 0;  // no assignment has a smaller loss than this
  double gap = 0;    // loss - bound, >= 0
};

// Every number finite where it must be, every cost vector as long as budgets. Errors: input (names item, choice,
// budget).
Status check_problem(const Problem& problem);

// Sums of a complete assignment. proved_optimal, bound and gap stay unset.
Assignment total_of(const Problem& problem, std::vector<std::size_t> choices);

// "137.2 kB", "204.1 us", "12.5": an amount as a reader wants it, with the unit it is counted in.
std::string format_amount(double amount, const std::string& unit);

}  // namespace ctk::search

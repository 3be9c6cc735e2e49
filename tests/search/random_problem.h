// Random problems that the solvers' tests share.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "core/random.h"
#include "search/problem.h"

namespace ctk::search {

// Small whole losses and costs make ties common; real ones make them rare. Both must agree with brute force.
inline Problem random_problem(Random& random, bool is_whole) {
  Problem problem;
  const std::size_t budgets = 1 + random.below(3), items = random.below(7);
  for (std::size_t i = 0; i < items; ++i) {
    Item& it = problem.items.emplace_back();
    it.name = "item" + std::to_string(i);
    for (std::size_t c = 0, n = 1 + random.below(4); c < n; ++c) {
      Choice& choice = it.choices.emplace_back();
      choice.name = "choice" + std::to_string(c);
      choice.loss = is_whole ? static_cast<double>(random.below(4))
                             : random.uniform() * std::pow(10.0, -static_cast<double>(random.below(5)));
      for (std::size_t b = 0; b < budgets; ++b) {
        choice.costs.push_back(is_whole ? static_cast<double>(random.below(5)) : random.uniform() * 1000);
      }
    }
  }
  for (std::size_t b = 0; b < budgets; ++b) {
    double least = 0, most = 0;
    for (const Item& it : problem.items) {
      double low = it.choices[0].costs[b], high = low;
      for (const Choice& choice : it.choices) {
        low = std::min(low, choice.costs[b]);
        high = std::max(high, choice.costs[b]);
      }
      least += low;
      most += high;
    }
    const double share = random.uniform() * 1.3 - 0.1;  // some out of reach, some without effect
    const double limit = least + (most - least) * share;
    problem.budgets.push_back({"b" + std::to_string(b), is_whole ? std::floor(limit) : limit, 0, ""});
  }
  return problem;
}

// Terms between some pairs of items, neighbours mostly, sometimes of negative loss.
inline void add_random_edges(Problem& problem, Random& random, bool is_whole) {
  for (std::size_t b = 1; b < problem.items.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (random.below(a + 1 == b ? 2 : 6) != 0) continue;
      Edge& edge = problem.edges.emplace_back();
      edge.a = random.below(2) == 0 ? a : b;
      edge.b = a + b - edge.a;
      for (std::size_t p = 0; p < problem.items[edge.a].choices.size(); ++p) {
        for (std::size_t q = 0; q < problem.items[edge.b].choices.size(); ++q) {
          if (random.below(3) == 0) continue;
          PairTerm term{p, q, is_whole ? static_cast<double>(random.below(4)) - 1 : random.uniform() - 0.2, {}};
          for (std::size_t k = 0; random.below(2) == 0 && k < problem.budgets.size(); ++k)
            term.costs.resize(problem.budgets.size(), is_whole ? 1 : 100 * random.uniform());
          edge.terms.push_back(std::move(term));
        }
      }
    }
  }
}

// 200 layers with losses that fall and sizes that grow by the choice, times of their own, and (with edges) conversions
// of `conversion` us a thousand weights between neighbours that choose differently.
inline Problem large_problem(std::uint64_t seed, std::size_t choices, std::size_t budgets, double conversion) {
  Random random(seed, "large");
  Problem problem;
  for (std::size_t b = 0; b < budgets; ++b)
    problem.budgets.push_back({b == 0 ? "size" : b == 1 ? "latency" : "peak_memory", 0, b == 0 ? 5000.0 : 12.5, ""});
  std::vector<double> least(budgets, 0), most(budgets, 0), weights;
  for (int i = 0; i < 200; ++i) {
    Item& item = problem.items.emplace_back();
    item.name = "layer" + std::to_string(i);
    weights.push_back(std::floor(100 + 100000 * std::pow(random.uniform(), 3)));
    const double sensitivity = random.uniform() / 200;
    std::vector<double> low(budgets, 1e300), high(budgets, 0);
    for (std::size_t c = 0; c < choices; ++c) {
      const double step = 4.0 * static_cast<double>(c) / static_cast<double>(choices);
      std::vector<double> costs{std::floor(weights[i] * std::pow(2.0, step) / 2)};
      while (costs.size() < budgets) costs.push_back(weights[i] / 1000 * (0.3 + 0.2 * step + 0.3 * random.uniform()));
      for (std::size_t b = 0; b < budgets; ++b) {
        low[b] = std::min(low[b], costs[b]);
        high[b] = std::max(high[b], costs[b]);
      }
      const double loss = sensitivity * std::pow(0.25, step) * (0.5 + random.uniform());
      item.choices.push_back({"s" + std::to_string(c), loss, std::move(costs)});
    }
    for (std::size_t b = 0; b < budgets; ++b) {
      least[b] += low[b];
      most[b] += high[b];
    }
  }
  for (std::size_t b = 0; b < budgets; ++b) {
    const double share = b == 0 ? 0.2 : 0.35;
    problem.budgets[b].limit = std::floor(least[b] + (most[b] - least[b]) * share + problem.budgets[b].fixed);
  }
  for (std::size_t i = 1; conversion > 0 && i < problem.items.size(); ++i) {
    Edge& edge = problem.edges.emplace_back(Edge{i - 1, i, {}});
    for (std::size_t p = 0; p < choices; ++p) {
      for (std::size_t q = 0; q < choices; ++q) {
        if (p % 3 == q % 3) continue;
        PairTerm term{p, q, 0, std::vector<double>(budgets, 0)};
        if (budgets > 1) term.costs[1] = conversion * std::min(weights[i - 1], weights[i]) / 1000;
        edge.terms.push_back(std::move(term));
      }
    }
  }
  return problem;
}

}  // namespace ctk::search

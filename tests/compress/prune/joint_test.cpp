#include "compress/prune/joint.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace ctk::pruning {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

// Least loss within the limits over every width and every scheme; infinity where there is none.
double brute_force(const JointProgramme& p) {
  std::vector<std::size_t> levels(p.levels.size()), schemes(p.layers.size());
  double best = kNone;
  const auto next = [](std::vector<std::size_t>& digits, const auto& base) {
    for (std::size_t i = 0; i < digits.size(); ++i) {
      if (++digits[i] < base(i)) return true;
      digits[i] = 0;
    }
    return false;
  };
  do {
    do {
      double loss = 0, size = p.fixed_size, latency = p.fixed_latency;
      for (std::size_t g = 0; g < levels.size(); ++g) loss += p.levels[g][levels[g]].loss;
      for (std::size_t l = 0; l < schemes.size(); ++l) {
        const JointLayer& layer = p.layers[l];
        const std::size_t level = layer.group ? levels[*layer.group] : 0;
        loss += layer.loss[schemes[l]];
        size += layer.size[level][schemes[l]];
        latency += layer.latency[level][schemes[l]];
      }
      if (size <= p.size_limit && latency <= p.latency_limit) best = std::min(best, loss);
    } while (next(schemes, [&](std::size_t l) { return p.layers[l].loss.size(); }));
  } while (next(levels, [&](std::size_t g) { return p.levels[g].size(); }));
  return best;
}

// Groups of two or three layers and some that no width touches; figures are whole, so that sums are exact.
JointProgramme random_programme(std::mt19937& random) {
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  JointProgramme p;
  const int groups = draw(1, 2);
  for (int g = 0; g < groups; ++g) {
    std::vector<CurvePoint> points{{16, 0.0}};
    for (int i = 0; i < 2; ++i) points.push_back({points.back().width - 4, points.back().loss + draw(0, 9)});
    p.levels.push_back(points);
  }
  for (int l = 0; l < 4; ++l) {
    JointLayer layer{"l" + std::to_string(l), {}, {}, {}, {}, {"w8", "w4"}};
    if (const int g = draw(0, groups); g < groups) layer.group = static_cast<std::size_t>(g);
    layer.loss = {static_cast<double>(draw(0, 2)), static_cast<double>(draw(2, 9))};
    for (std::size_t level = 0; level < (layer.group ? 3u : 1u); ++level) {
      const double bytes = draw(4, 12) * (3.0 - static_cast<double>(level));
      layer.size.push_back({2 * bytes, bytes});
      layer.latency.push_back({static_cast<double>(draw(1, 20)), static_cast<double>(draw(1, 20))});
    }
    p.layers.push_back(layer);
  }
  p.fixed_size = 10;
  p.fixed_latency = 5;
  p.size_limit = draw(60, 220);
  p.latency_limit = draw(0, 2) == 0 ? kNone : draw(20, 70);
  return p;
}

TEST(JointWidths, AreTheBestOfAllWidthsAndSchemes) {
  std::mt19937 random(7);
  int feasible = 0;
  for (int i = 0; i < 200; ++i) {
    const JointProgramme p = random_programme(random);
    const double best = brute_force(p);
    const auto found = solve_joint(p);
    if (best == kNone) {
      ASSERT_FALSE(found) << i;
      EXPECT_EQ(found.error().code, ErrorCode::budget_infeasible);
      continue;
    }
    ++feasible;
    ASSERT_TRUE(found) << i << ": " << found.error().message;
    EXPECT_NEAR(found->loss, best, 1e-9) << i;
    EXPECT_LE(found->size, p.size_limit);
    EXPECT_LE(found->latency, p.latency_limit);
  }
  EXPECT_GT(feasible, 100);
}

TEST(JointWidths, BitsMayGoWhereChannelsStay) {
  // Half of the channels costs 5 nats, 4 bits cost 1: at half of the bytes the channels stay.
  JointProgramme p;
  p.levels = {{{16, 0.0}, {8, 5.0}}};
  for (const char* name : {"a", "b"})
    p.layers.push_back({name, 0, {{100, 50}, {50, 25}}, {{0, 0}, {0, 0}}, {0, 1}, {"w8", "w4"}});
  p.size_limit = 100;
  p.latency_limit = kNone;
  const auto both = solve_joint(p);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->levels, std::vector<std::size_t>{0});
  EXPECT_EQ(both->schemes, (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(both->loss, 2);
  // Widths given: the same bytes without fewer bits.
  const auto cut_first = solve_joint(p, {1});
  ASSERT_TRUE(cut_first);
  EXPECT_EQ(cut_first->schemes, (std::vector<std::size_t>{0, 0}));
  EXPECT_EQ(cut_first->loss, 5);
  p.size_limit = 40;
  EXPECT_FALSE(solve_joint(p));
}

}  // namespace
}  // namespace ctk::pruning

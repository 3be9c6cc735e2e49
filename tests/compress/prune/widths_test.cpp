#include "compress/prune/widths.h"

#include <gtest/gtest.h>

#include "compress/prune/width_times.h"
#include "tests/support/graph_builder.h"

namespace ctk::pruning {
namespace {

using graph::Coupling;
using test::GraphBuilder;
using test::varied;

// Convolutions 1x1 one after the other on [N,2,1,1], the last of them to 2 channels; weights times `scale` each.
graph::Graph chain(const std::vector<std::int64_t>& widths, const std::vector<float>& scale = {}) {
  GraphBuilder b;
  graph::ValueId at = b.input("x", {-1, 2, 1, 1});
  std::int64_t in = 2;
  for (std::size_t i = 0; i <= widths.size(); ++i) {
    const std::int64_t out = i < widths.size() ? widths[i] : 2;
    Tensor weight = varied({out, in, 1, 1}, static_cast<unsigned>(i + 1));
    for (float& w : weight.mutable_values<float>()) w *= i < scale.size() ? scale[i] : 1.0f;
    const std::string name = "c" + std::to_string(i);
    at = b.node("Conv", {at, b.constant(name + ".w", weight)}, name);
    in = out;
  }
  b.output(at);
  return std::move(b.graph);
}

struct Fixture {
  explicit Fixture(graph::Graph given)
      : graph(std::move(given)), coupling(*Coupling::find(graph, {{1, 2, 1, 1}})), macs(coupling) {
    scores = *(*find_importance("l1"))->score({coupling, nullptr, 0});
  }
  WidthTask task() const {
    WidthTask task{coupling, macs, ranking_of(scores), {}, 0.9, 1, {}, {}};
    for (std::size_t g = 0; g < coupling.groups().size(); ++g) {
      task.is_wanted.push_back(coupling.groups()[g].reason.empty());
      task.ranking[g].resize(coupling.groups()[g].units.size());
    }
    return task;
  }
  graph::Graph graph;
  Coupling coupling;
  MacsCount macs;
  Scores scores;
};

TEST(MacsCount, CountsTheCutNetworkWithoutCuttingIt) {
  const Fixture f(chain({8, 6}));
  EXPECT_EQ(f.macs.whole(), 2 * 8 + 8 * 6 + 6 * 2);
  EXPECT_EQ(f.macs.of({{0, 1, 2}, {5}, {}}), 2 * 5 + 5 * 5 + 5 * 2);
}

TEST(Widths, UniformTakesTheSmallestRatioThatMeetsTheAim) {
  const Fixture f(chain({8, 8}));
  WidthTask task = f.task();
  task.macs_kept = 0.75;  // of 96: 72. At 7 and 7: 14 + 49 + 14 = 77; at 6 and 6: 12 + 36 + 12 = 60
  const auto widths = uniform_widths(task);
  ASSERT_TRUE(widths) << widths.error().message;
  EXPECT_EQ(*widths, (Widths{6, 6, 2}));
}

TEST(Widths, ShareOfChannelsIsReachedAtLeast) {
  const Fixture f(chain({10, 10}));
  WidthTask task = f.task();
  task.ratio = 0.35;
  const auto widths = uniform_widths(task);
  ASSERT_TRUE(widths);
  EXPECT_EQ(*widths, (Widths{6, 6, 2}));
}

// B069: a middle layer of weights a thousand times smaller, and widths of 12, 12 and 16 in steps of 8.
TEST(Widths, GlobalRankingEmptiesNoLayerAndKeepsMultiples) {
  const Fixture f(chain({12, 12, 16}, {1.0f, 0.001f, 1.0f}));
  WidthTask task = f.task();
  task.round_to = 8;
  task.ratio = 0.3;
  const auto widths = global_widths(task, f.scores);
  ASSERT_TRUE(widths) << widths.error().message;
  for (std::size_t g = 0; g < 3; ++g) {
    EXPECT_TRUE((*widths)[g] == f.coupling.groups()[g].units.size() || (*widths)[g] % 8 == 0);
    EXPECT_GT((*widths)[g], 0u);
  }
  EXPECT_EQ((*widths)[3], 2u);  // leaves the network
}

TEST(Widths, AnAimOutOfReachSaysHowFarItGoes) {
  const Fixture f(chain({8, 8}));
  WidthTask task = f.task();
  task.max_ratio = 0.5;
  task.macs_kept = 0.2;  // at 4 and 4: 8 + 16 + 8 of 96 = 0.3334
  const Status status = require_reachable(task);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("expected at least 0.334"), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().message.find("found 0.2"), std::string::npos) << status.error().message;
}

TEST(Widths, CurvesSpendTheLossWhereItIsLeast) {
  const Fixture f(chain({8, 8}));
  WidthTask task = f.task();
  task.macs_kept = 0.75;
  // The first group costs nothing down to 5; the second a nat for each channel. At 6 and 8: 12 + 48 + 16 = 76 > 72;
  // at 5 and 8: 10 + 40 + 16 = 66.
  Curves curves(3);
  for (std::size_t width = 8; width >= 4; --width) {
    curves[0].push_back({width, width >= 5 ? 0.0 : 1.0});
    curves[1].push_back({width, static_cast<double>(8 - width)});
  }
  const auto widths = widths_from_curves(task, curves);
  ASSERT_TRUE(widths) << widths.error().message;
  EXPECT_EQ(*widths, (Widths{5, 8, 2}));
}

// 8 and 8 channels: 100 us whole. The first group's 6 takes longer than its 8, its 4 as long as its 5.
Curves timed_curves() {
  return {{{8, 0.0, 100}, {6, 0.1, 104}, {5, 0.2, 90}, {4, 0.5, 90}, {3, 0.9, 80}},
          {{8, 0.0, 100}, {6, 0.3, 92}, {4, 0.4, 85}, {2, 3.0, 70}},
          {}};
}

TEST(WidthTimes, AWidthAsSlowAsAWiderOneIsNoChoice) {
  Curves curves = timed_curves();
  drop_slow_widths(curves);
  const auto widths_of = [&](std::size_t group) {
    Widths widths;
    for (const CurvePoint& point : curves[group]) widths.push_back(point.width);
    return widths;
  };
  EXPECT_EQ(widths_of(0), (Widths{8, 5, 3}));
  EXPECT_EQ(widths_of(1), (Widths{8, 6, 4, 2}));
}

TEST(WidthTimes, SavingsAddUpToTheShareAtTheLeastLoss) {
  const Fixture f(chain({8, 8}));
  Curves curves = timed_curves();
  drop_slow_widths(curves);
  const auto at = [&](double share) { return widths_within_time(f.task(), curves, share); };
  EXPECT_EQ(*at(1.0), (Widths{8, 8, 2}));
  EXPECT_EQ(*at(0.90), (Widths{5, 8, 2}));  // 10 us off for 0.2; the second gives 15 for 0.4
  EXPECT_EQ(*at(0.85), (Widths{8, 4, 2}));  // 15 us for 0.4; 5 and 6 channels give 18 for 0.5
  EXPECT_EQ(*at(0.75), (Widths{5, 4, 2}));  // 25 us for 0.6; 20 + 8 for 1.2
  EXPECT_EQ(*at(0.50), (Widths{3, 2, 2}));  // all there is, exactly
  const auto beyond = at(0.49);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::budget_infeasible);
}

TEST(WidthTimes, EveryKeptWidthIsTimedAndTheWholeStays) {
  const Fixture f(chain({16, 16}));
  WidthTask task = f.task();
  Curves curves(3);
  for (std::size_t g = 0; g < 2; ++g) {
    for (const std::size_t width : allowed_widths(task, g)) curves[g].push_back({width, 0.0});
  }
  const std::vector<Shape> shapes{{1, 2, 1, 1}};
  ASSERT_TRUE(time_curves(task, shapes, curves));
  for (std::size_t g = 0; g < 2; ++g) {
    EXPECT_EQ(curves[g].front().width, 16u);
    EXPECT_EQ(curves[g].back().width, allowed_widths(task, g).back());
    EXPECT_LE(curves[g].size(), 16u);
    for (const CurvePoint& point : curves[g]) EXPECT_GT(point.us, 0);
  }
  EXPECT_TRUE(curves[2].empty());
}

TEST(Widths, StepsFollowTheWidthOfTheGroup) {
  const Fixture f(chain({8, 16, 32, 64}));
  WidthTask task = f.task();
  task.round_to = 0;
  task.max_ratio = 0.5;
  EXPECT_EQ(allowed_widths(task, 0), (Widths{8, 7, 6, 5, 4}));
  EXPECT_EQ(allowed_widths(task, 1), (Widths{16, 8}));
  EXPECT_EQ(allowed_widths(task, 2), (Widths{32, 24, 16}));
  EXPECT_EQ(allowed_widths(task, 3), (Widths{64, 56, 48, 40, 32}));
}

TEST(Importance, EveryGroupHasMeanOneAndTheLeastGoesFirst) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 1, 1, 1});
  const auto a = b.node("Conv", {x, b.constant("a.w", test::floats({3, 1, 1, 1}, {3, -1, 2}))}, "a");
  b.output(b.node("Conv", {a, b.constant("b.w", test::floats({1, 3, 1, 1}, {1, 2, -3}))}, "b"));
  const Coupling coupling = *Coupling::find(b.graph, {{1, 1, 1, 1}});
  const auto scores = (*find_importance("l1"))->score({coupling, nullptr, 0});
  ASSERT_TRUE(scores);
  // Made by 3, 1, 2 and read by 1, 2, 3, each over its mean of 2: 1.5 + 0.5, 0.5 + 1, 1 + 1.5; over the mean of 2.
  const std::vector<double> expected{1.0, 0.75, 1.25};
  for (std::size_t u = 0; u < 3; ++u) EXPECT_NEAR((*scores)[0][u], expected[u], 1e-12);
  EXPECT_EQ(ranking_of(*scores)[0], (std::vector<std::size_t>{1, 0, 2}));
  EXPECT_FALSE(find_importance("magnitude"));
}

// A normalization behind a Relu, which nothing before it can take in. |0.5|, |-2|, |0.1| over their mean of 13 / 15.
TEST(Importance, FactorsOfNormalizationsRankTheirChannels) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 1, 1, 1});
  const auto a = b.node("Conv", {x, b.constant("a.w", test::floats({3, 1, 1, 1}, {3, -1, 2}))}, "a");
  const auto constant = [&](const char* name, const std::vector<float>& values) {
    return b.constant(name, test::floats({3}, values));
  };
  const auto n = b.node("BatchNormalization",
                        {b.node("Relu", {a}, "r"), constant("factor", {0.5f, -2.0f, 0.1f}),
                         constant("offset", {9, 9, 9}), constant("mean", {0, 0, 0}), constant("variance", {1, 1, 1})},
                        "n");
  b.output(b.node("Conv", {n, b.constant("b.w", test::floats({1, 3, 1, 1}, {1, 2, -3}))}, "b"));
  const Coupling coupling = *Coupling::find(b.graph, {{1, 1, 1, 1}});
  const auto scores = (*find_importance("bn_scale"))->score({coupling, nullptr, 0});
  ASSERT_TRUE(scores) << scores.error().message;
  const std::vector<double> expected{0.5 * 15 / 13, 2.0 * 15 / 13, 0.1 * 15 / 13};
  for (std::size_t u = 0; u < 3; ++u) EXPECT_NEAR((*scores)[0][u], expected[u], 1e-6);
  EXPECT_EQ(ranking_of(*scores)[0], (std::vector<std::size_t>{2, 0, 1}));
}

TEST(Curves, ASpreadKeepsBothEndsAndIsEven) {
  std::vector<CurvePoint> curve;
  for (std::size_t width = 9; width > 0; --width) curve.push_back({width, static_cast<double>(9 - width)});
  const auto widths = [&](std::size_t most) {
    Widths found;
    for (const CurvePoint& point : spread(curve, most)) found.push_back(point.width);
    return found;
  };
  EXPECT_EQ(widths(2), (Widths{9, 1}));
  EXPECT_EQ(widths(4), (Widths{9, 7, 4, 1}));  // places 0, 8/3, 16/3 and 8, rounded down
  EXPECT_EQ(widths(20).size(), 9u);
}

TEST(Importance, ANetworkWithoutNormalizationsHasNoFactors) {
  const graph::Graph net = chain({4, 4});
  const Coupling coupling = *Coupling::find(net, {{1, 2, 1, 1}});
  const auto scores = (*find_importance("bn_scale"))->score({coupling, nullptr, 0});
  ASSERT_FALSE(scores);
  EXPECT_NE(scores.error().message.find("expected batch normalizations on the channels that can be cut, found none"),
            std::string::npos)
      << scores.error().message;
}

TEST(Importance, WeightsOfZeroRankByTheirPlace) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 1, 1, 1});
  const auto a = b.node("Conv", {x, b.constant("a.w", test::floats({3, 1, 1, 1}, {0, 0, 0}))}, "a");
  b.output(b.node("Conv", {a, b.constant("b.w", test::floats({2, 3, 1, 1}, {0, 0, 0, 0, 0, 0}))}, "b"));
  const Coupling coupling = *Coupling::find(b.graph, {{1, 1, 1, 1}});
  for (const char* name : {"l1", "l2"}) {
    const auto scores = (*find_importance(name))->score({coupling, nullptr, 0});
    EXPECT_EQ(ranking_of(*scores)[0], (std::vector<std::size_t>{0, 1, 2})) << name;
  }
}

}  // namespace
}  // namespace ctk::pruning

// A cut that loses nothing (a channel that another one repeats) is repaired exactly; one that loses something, better
// than it was, and in the very figures that are told.
#include "compress/prune/repair.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compress/prune/importance.h"
#include "tests/support/graph_builder.h"
#include "tests/support/made_rows.h"

namespace ctk::test {
namespace {

using graph::Coupling;
using graph::Graph;

constexpr std::size_t kSamples = 24;

data::Split split_of(const Graph& graph, const Shape& sample) {
  return made_split(graph, sample, kSamples);
}

// A residual block: x -> stem -> (a -> Relu -> b) + stem -> head. Channel 5 of `a` repeats channel 0 where
// `is_repeated`.
Graph block(bool is_repeated) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 3, 6, 6});
  const Attrs same{{"pads", Ints{1, 1, 1, 1}}};
  const auto conv = [&](const std::string& name, graph::ValueId in, Tensor weight) {
    const auto w = b.constant(name + ".w", weight);
    const auto bias = b.constant(name + ".b", varied({weight.shape()[0]}, static_cast<unsigned>(name.size()) + 50));
    return b.node("Conv", {in, w, bias}, name, same);
  };
  const auto stem = conv("stem", x, varied({4, 3, 3, 3}, 1));
  Tensor weight = varied({6, 4, 3, 3}, 2);
  if (is_repeated)
    std::copy_n(weight.mutable_values<float>().data(), 36, weight.mutable_values<float>().data() + 5 * 36);
  const auto a = conv("a", stem, weight);
  if (is_repeated) {
    Tensor bias = b.graph.value(*b.graph.find_value("a.b")).constant->clone();
    bias.mutable_values<float>()[5] = bias.values<float>()[0];
    b.graph.value(*b.graph.find_value("a.b")).constant = bias;
  }
  const auto inner = conv("b", b.node("Relu", {a}, "r"), varied({4, 6, 3, 3}, 3));
  const auto sum = b.node("Relu", {b.node("Add", {inner, stem}, "sum")}, "out");
  b.output(conv("head", sum, varied({2, 4, 3, 3}, 4)));
  return std::move(b.graph);
}

std::size_t group_of(const Coupling& coupling, const std::string& name) {
  for (std::size_t g = 0; g < coupling.groups().size(); ++g) {
    if (coupling.groups()[g].name == "Conv_" + name) return g;
  }
  ADD_FAILURE() << "no group " << name;
  return 0;
}

double error_between(const Graph& a, const Graph& b, const data::Split& split) {
  double error = 0, energy = 0;
  for (std::size_t i = 0; i < split.count(); ++i) {
    const auto sample = split.read(i, i + 1);
    const auto x = interpret(a, sample->inputs), y = interpret(b, sample->inputs);
    const auto u = x->outputs[0].values<float>(), v = y->outputs[0].values<float>();
    for (std::size_t e = 0; e < u.size(); ++e) {
      error += std::pow(static_cast<double>(u[e]) - v[e], 2);
      energy += std::pow(static_cast<double>(u[e]), 2);
    }
  }
  return error / energy;
}

TEST(Repair, ChannelThatAnotherRepeatsIsReplacedByIt) {
  const Graph graph = block(true);
  const Coupling coupling = *Coupling::find(graph, {{1, 3, 6, 6}});
  Coupling::Units removed(coupling.groups().size());
  removed[group_of(coupling, "a")] = {5};
  Graph cut = *coupling.cut(removed);
  const data::Split split = split_of(graph, {3, 6, 6});
  EXPECT_GT(error_between(graph, cut, split), 0.01);
  pruning::RepairOptions options;
  options.ridge = 1e-6;
  const auto lines = pruning::repair(coupling, removed, cut, split, options);
  ASSERT_TRUE(lines) << lines.error().message;
  ASSERT_EQ(lines->size(), 2u);  // b, which reads the channel, and head, whose input is another until b is repaired
  EXPECT_EQ((*lines)[0].name, "Conv_b");
  EXPECT_TRUE((*lines)[0].is_changed);
  EXPECT_LT(error_between(graph, cut, split), 1e-6);
}

TEST(Repair, SumsOfTheFloatNetworkGiveTheSameForOneGroup) {
  const Graph graph = block(false);
  const Coupling coupling = *Coupling::find(graph, {{1, 3, 6, 6}});
  Coupling::Units removed(coupling.groups().size());
  removed[group_of(coupling, "a")] = {1, 4};
  const data::Split split = split_of(graph, {3, 6, 6});
  Graph walked = *coupling.cut(removed), summed = *coupling.cut(removed);
  const double plain = error_between(graph, walked, split);
  pruning::RepairOptions options;
  options.hold_out_every = 1000;  // one sample
  ASSERT_TRUE(pruning::repair(coupling, removed, walked, split, options));
  const auto sums = pruning::input_sums(coupling, split, options);
  ASSERT_TRUE(sums) << sums.error().message;
  pruning::repair_from_sums(coupling, removed, *sums, options.ridge, summed);
  EXPECT_LT(error_between(graph, summed, split), 0.8 * plain);
  EXPECT_LT(error_between(graph, walked, split), error_between(graph, summed, split));  // head is fitted too
  // But for the one sample of 24 that is held out, the same sums: nearly the same weights of the layer that reads a.
  const auto u = walked.value(*walked.find_value("b.w")).constant->values<float>();
  const auto v = summed.value(*summed.find_value("b.w")).constant->values<float>();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    difference += std::pow(static_cast<double>(u[i]) - v[i], 2);
    size += std::pow(static_cast<double>(u[i]), 2);
  }
  EXPECT_LT(difference, 0.01 * size);
}

// What the shortcut lost is part of the target: the stem's channels are cut, which the block behind it makes up for.
TEST(Repair, MakesUpForWhatTheShortcutLost) {
  const Graph graph = block(false);
  const Coupling coupling = *Coupling::find(graph, {{1, 3, 6, 6}});
  Coupling::Units removed(coupling.groups().size());
  removed[group_of(coupling, "stem")] = {2};
  removed[group_of(coupling, "a")] = {3};
  const data::Split split = split_of(graph, {3, 6, 6});
  Graph cut = *coupling.cut(removed);
  const double plain = error_between(graph, cut, split);
  const auto lines = pruning::repair(coupling, removed, cut, split, {});
  ASSERT_TRUE(lines) << lines.error().message;
  EXPECT_EQ(lines->size(), 3u);  // a, b, head
  for (const pruning::RepairedLayer& line : *lines) EXPECT_LE(line.error_after, line.error_before);
  EXPECT_LT(error_between(graph, cut, split), 0.7 * plain);
}

TEST(Repair, NothingToRepairLeavesTheNetwork) {
  const Graph graph = block(false);
  const Coupling coupling = *Coupling::find(graph, {{1, 3, 6, 6}});
  const Coupling::Units removed(coupling.groups().size());
  Graph cut = *coupling.cut(removed);
  const data::Split split = split_of(graph, {3, 6, 6});
  const auto lines = pruning::repair(coupling, removed, cut, split, {});
  ASSERT_TRUE(lines);
  EXPECT_TRUE(lines->empty());
  EXPECT_EQ(error_between(graph, cut, split), 0.0);
}

TEST(ImportanceFromData, EveryMethodSeesThatAChannelOfZeroesIsWorthLeast) {
  Graph graph = block(false);
  Tensor reader = graph.value(*graph.find_value("b.w")).constant->clone();
  for (std::size_t out = 0; out < 4; ++out)
    std::fill_n(reader.mutable_values<float>().data() + (out * 6 + 2) * 9, 9, 0.0f);
  graph.value(*graph.find_value("b.w")).constant = reader;
  Tensor weight = graph.value(*graph.find_value("a.w")).constant->clone(),
         bias = graph.value(*graph.find_value("a.b")).constant->clone();
  std::fill_n(weight.mutable_values<float>().data() + 2 * 36, 36, 0.0f);
  bias.mutable_values<float>()[2] = 0.0f;
  graph.value(*graph.find_value("a.w")).constant = weight;
  graph.value(*graph.find_value("a.b")).constant = bias;
  const Coupling coupling = *Coupling::find(graph, {{1, 3, 6, 6}});
  const data::Split split = split_of(graph, {3, 6, 6});
  for (const pruning::ImportanceMethod& method : pruning::importance_methods()) {
    if (method.name == "random" || method.name == "bn_scale") continue;  // which look at no weights of this network
    const auto scores = method.score({coupling, &split, 0});
    ASSERT_TRUE(scores) << method.name << ": " << scores.error().message;
    const auto& of_a = (*scores)[group_of(coupling, "a")];
    ASSERT_EQ(of_a.size(), 6u);
    EXPECT_EQ(pruning::ranking_of(*scores)[group_of(coupling, "a")][0], 2u) << method.name;
    EXPECT_NEAR(of_a[2], 0.0, 1e-9) << method.name;
  }
}

}  // namespace
}  // namespace ctk::test

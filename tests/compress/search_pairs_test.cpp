#include "compress/search_pairs.h"

#include <gtest/gtest.h>

#include "graph/layer.h"
#include "tests/support/graph_builder.h"

namespace ctk::pipeline::search_table {
namespace {

using test::GraphBuilder;
using test::varied;
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

class Chain {
 public:
  graph::ValueId product(graph::ValueId x, const std::string& name) {
    return builder.node("MatMul", {x, builder.constant("w_" + name, varied({4, 4}))}, name);
  }
  // One group a layer, in graph order.
  std::vector<Group> groups() const {
    std::vector<Group> all;
    for (const graph::Layer& layer : graph::layers_of(builder.graph))
      all.push_back({{builder.graph.address(layer.node)}, {QuantScheme{}}, ""});
    return all;
  }
  GraphBuilder builder;
};

TEST(Neighbours, AreNextToEachOtherThroughWhatIsNoLayer) {
  Chain chain;
  const auto x = chain.builder.input("x", {2, 4});
  const auto a = chain.product(x, "a");
  const auto b = chain.product(chain.builder.node("Relu", {a}, "r"), "b");
  const auto c = chain.product(b, "c");
  chain.builder.graph.add_output(c);
  EXPECT_EQ(neighbours(chain.builder.graph, chain.groups()), (Pairs{{0, 1}, {1, 2}}));
}

TEST(Neighbours, MeetInOneSumButNotPastTheNext) {
  // a and b are summed (s), c reads the sum, and is summed with it (t), d reads that.
  Chain chain;
  const auto x = chain.builder.input("x", {2, 4});
  const auto a = chain.product(x, "a"), b = chain.product(x, "b");
  const auto s = chain.builder.node("Add", {a, b}, "s");
  const auto c = chain.product(s, "c");
  const auto t = chain.builder.node("Add", {c, s}, "t");
  chain.builder.graph.add_output(chain.product(t, "d"));
  // a-b by s; a-c, b-c through s; c-d through t. a and b reach d past two sums only.
  EXPECT_EQ(neighbours(chain.builder.graph, chain.groups()), (Pairs{{0, 1}, {0, 2}, {1, 2}, {2, 3}}));
}

TEST(Neighbours, OfOneGroupAreNone) {
  Chain chain;
  const auto x = chain.builder.input("x", {2, 4});
  const auto a = chain.product(x, "a"), b = chain.product(a, "b");
  chain.builder.graph.add_output(b);
  std::vector<Group> one = chain.groups();
  one[0].layers.push_back(one[1].layers[0]);
  one.pop_back();
  EXPECT_TRUE(neighbours(chain.builder.graph, one).empty());
}

}  // namespace
}  // namespace ctk::pipeline::search_table

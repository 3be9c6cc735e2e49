// diff_graphs(): what differs between two graphs, by name.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "tests/graph/rich_graph.h"

namespace ctk::graph {
namespace {

using namespace test;

TEST(GraphDiff, IsEmptyForEqualGraphsWhateverTheirIds) {
  Graph g = rich_graph();
  EXPECT_TRUE(diff_graphs(g, g.clone()).empty());
}

TEST(GraphDiff, ShowsChangedAddedAndRemovedLinesByName) {
  const char* before =
      "graph \"g\" ir 8 opset 17\nin %x: f32\nconst %c: f32 [] = {1}\n%a: f32 = Relu(%x) @one\n%b: f32 = Neg(%a)\nout "
      "%b\n";
  const char* after =
      "graph \"g\" ir 8 opset 17\nin %x: f32\nconst %d: f32 [] = {2}\n%a: f32 = Abs(%x) @one\n%b: f32 = Neg(%a)\nout "
      "%b\n";
  const std::vector<std::string> expected{
      "- const %c: f32 [] = {1}",
      "+ const %d: f32 [] = {2}",
      "- %a: f32 = Relu(%x) @one",
      "+ %a: f32 = Abs(%x) @one",
  };
  EXPECT_EQ(diff_graphs(parse_graph(before).value(), parse_graph(after).value()), expected);
}

TEST(GraphDiff, SeesContentOfLargeConstants) {
  Graph before, after;
  Tensor changed = ramp({100});
  changed.mutable_values<float>()[99] = -1.0f;
  before.add_constant("w", ramp({100}));
  after.add_constant("w", changed);
  EXPECT_EQ(diff_graphs(before, after).size(), 2u);
}

// Constants in a text are known by hash only, yet equal ones are equal and changed ones are not.
TEST(GraphDiff, ComparesAPrintedTextWithAnother) {
  Graph before, after;
  Tensor changed = ramp({100});
  changed.mutable_values<float>()[99] = -1.0f;
  before.add_constant("w", ramp({100}));
  after.add_constant("w", changed);
  const std::string text = "# printed today\n" + print_graph(before);
  EXPECT_TRUE(is_graph_text(text));
  EXPECT_TRUE(diff_texts(text, print_graph(before)).value().empty());
  EXPECT_EQ(diff_texts(text, print_graph(after)).value(), diff_graphs(before, after));
  const Graph rich = rich_graph();
  EXPECT_TRUE(diff_texts(print_graph(rich), print_graph(rich)).value().empty());
}

TEST(GraphDiff, TakesNoOtherFileForAText) {
  EXPECT_FALSE(is_graph_text(""));
  EXPECT_FALSE(is_graph_text(std::string("\x08\x08\x12\x05graph ", 11)));
  EXPECT_FALSE(is_graph_text("# only a comment\n"));
  const auto broken = diff_texts("graph \"g\" ir 8 opset 17\n", "graph of nothing\n");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("after"), std::string::npos) << broken.error().message;
  EXPECT_NE(broken.error().message.find("line 1"), std::string::npos) << broken.error().message;
}

TEST(GraphDiff, SeesTheOrderOfInputs) {
  const auto before = parse_graph("graph \"g\" ir 8 opset 17\nin %x: f32\nin %y: f32\n");
  const auto after = parse_graph("graph \"g\" ir 8 opset 17\nin %y: f32\nin %x: f32\n");
  EXPECT_EQ(diff_graphs(*before, *after), (std::vector<std::string>{"- in order %x %y", "+ in order %y %x"}));
}

}  // namespace
}  // namespace ctk::graph

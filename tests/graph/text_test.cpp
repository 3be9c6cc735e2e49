#include "graph/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>

#include "core/random.h"
#include "tests/graph/rich_graph.h"

namespace ctk::graph {
namespace {

using namespace test;

TEST(GraphText, PrintsWhatTheHeaderShows) {
  Graph g;
  g.name = "tiny";
  g.opset = 17;
  const ValueId x = g.add_value("x", DType::f32, DeclaredShape{{-1, "N"}, {16, ""}});
  g.add_input(x);
  const ValueId b = g.add_constant("b", tensor_of<float>({2}, {1.0f, -0.5f}));
  const ValueId y = g.add_value("add.out", DType::f32);
  const ValueId z = g.add_value("relu1.out", DType::f32, DeclaredShape{{-1, "N"}, {16, ""}});
  g.value(z).activation_quant = ActivationQuant{0.0235f, 0};
  const NodeId add = g.add_node(make_node("Add", {x, b}, {y}, "add"));
  Node relu = make_node("Relu", {y}, {z}, "relu1");
  relu.absorbed_by = add;
  g.add_node(std::move(relu));
  g.add_output(z);
  EXPECT_EQ(print_graph(g),
            "graph \"tiny\" ir 8 opset 17\n"
            "in %x: f32 [N,16]\n"
            "const %b: f32 [2] = {1, -0.5}\n"
            "%add.out: f32 = Add(%x, %b) @add\n"
            "%relu1.out: f32 [N,16] q8(0.0235, 0) = Relu(%add.out) into %add.out @relu1\n"
            "out %relu1.out\n");
}

TEST(GraphText, EveryFactComesBack) {
  const Graph before = rich_graph();
  ASSERT_TRUE(verify(before)) << verify(before).error().message;
  Store store;
  const std::string text = print_graph(before, &store);
  auto after = parse_graph(text, &store);
  ASSERT_TRUE(after) << after.error().message << "\n" << text;
  Store again;
  EXPECT_EQ(print_graph(*after, &again), text);
  EXPECT_TRUE(diff_graphs(before, *after).empty());

  const Value& x = after->value(*after->find_value("x"));
  EXPECT_EQ(*x.shape, (DeclaredShape{{-1, "N"}, {3, ""}, {-1, ""}, {8, "width"}, {-1, "2*N"}}));
  EXPECT_EQ(*x.activation_quant, (ActivationQuant{0.1f, 114}));
  EXPECT_EQ(after->metadata, before.metadata);
  EXPECT_EQ(after->other_opsets, before.other_opsets);
  EXPECT_EQ(after->name, before.name);
  const Value& q = after->value(*after->find_value("q"));
  EXPECT_EQ(unpack_codes(*q.quantized), (std::vector<std::int8_t>{-8, 7, 0, 1, 2, 3, -1, -2, 4}));
  EXPECT_EQ(q.quantized->scales, (std::vector<float>{0.5f, 1e-30f, 3.0f}));
  const Node& conv = after->node(after->order()[0]);
  EXPECT_EQ(conv.attributes.get_string("auto pad", ""), "NOT\tSET");
  EXPECT_EQ(std::get<OpaqueAttribute>(*conv.attributes.find("long_body")).bytes, std::string(100, 'z'));
  EXPECT_EQ(std::get<OpaqueAttribute>(*conv.attributes.find("body")).bytes, std::string("\0\xff", 2));
  EXPECT_EQ(conv.attributes.items().size(), 15u);
  EXPECT_EQ(conv.scheme, parse_scheme("w8a8_c").value());
  EXPECT_EQ(after->node(after->order()[1]).absorbed_by, after->order()[0]);
  EXPECT_EQ(after->node(after->order()[4]).absorbed_by, after->order()[3]);
  EXPECT_FALSE(after->node(after->order()[2]).inputs[1].is_valid());
  EXPECT_EQ(after->node(after->order()[2]).captured.size(), 2u);
  EXPECT_EQ(after->inputs().size(), 2u);
  EXPECT_EQ(after->value(after->inputs()[1]).name, "conv1.weight");
}

TEST(GraphText, SmallConstantsOfEveryTypeKeepTheirBits) {
  Random random(7, "text constants");
  for (int i = 0; i < static_cast<int>(DType::string); ++i) {
    const auto dtype = static_cast<DType>(i);
    for (int round = 0; round < 200; ++round) {
      Tensor tensor = Tensor::zeros(dtype, {3}).value();
      auto* bytes = static_cast<unsigned char*>(tensor.mutable_data());
      for (std::size_t k = 0; k < tensor.bytes(); ++k) bytes[k] = static_cast<unsigned char>(random.next());
      if (bits_of(dtype) == 4) bytes[1] = static_cast<unsigned char>(bytes[1] & 15);
      Graph g;
      g.add_output(g.add_constant("c", tensor));
      auto back = parse_graph(print_graph(g));
      ASSERT_TRUE(back) << back.error().message << print_graph(g);
      const Tensor& read = *back->value(*back->find_value("c")).constant;
      // NaN payloads count too: the comparison is on bytes.
      ASSERT_TRUE(std::equal(read.raw().begin(), read.raw().end(), tensor.raw().begin())) << print_graph(g);
    }
  }
}

TEST(GraphText, ExtremeFloatsRoundTrip) {
  for (float value : {std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max(), -0.0f, 0.1f,
                      16777216.0f, 1.0f / 3.0f, std::numeric_limits<float>::min()}) {
    Graph g;
    const ValueId out = g.add_constant("c", Tensor::scalar(value));
    g.add_output(out);
    auto back = parse_graph(print_graph(g));
    ASSERT_TRUE(back) << back.error().message;
    const float read = back->value(*back->find_value("c")).constant->values<float>()[0];
    EXPECT_EQ(std::bit_cast<std::uint32_t>(read), std::bit_cast<std::uint32_t>(value));
  }
}

TEST(GraphText, LargeConstantsPrintAsHashesAndComeBackAsZeros) {
  Graph g;
  g.add_output(g.add_constant("w", ramp({100, 100})));
  const std::string text = print_graph(g);
  EXPECT_NE(text.find("const %w: f32 [100,100] = #"), std::string::npos) << text;
  auto back = parse_graph(text);
  ASSERT_TRUE(back) << back.error().message;
  const Tensor& zeros = *back->value(back->outputs()[0]).constant;
  EXPECT_EQ(zeros.shape(), (Shape{100, 100}));
  for (float value : zeros.values<float>()) ASSERT_EQ(value, 0.0f);
}

TEST(GraphText, RemovedIdsLeaveNoTrace) {
  Graph g = rich_graph();
  const std::string before = print_graph(g);
  const ValueId extra = g.add_value("extra", DType::f32);
  g.remove_node(g.add_node(make_node("Relu", {g.inputs()[0]}, {extra})));
  g.remove_dead_values();
  Graph expected = rich_graph();
  expected.remove_dead_values();  // "dangling" goes with it
  EXPECT_EQ(print_graph(g), print_graph(expected));
}

TEST(GraphText, ErrorsNameLineAndColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 1, column 1: expected \"graph\""},
      {"graph \"g\" ir 8 opset 17\nin %x: f33\n", "line 2, column 7: expected a dtype, found \"f33\""},
      {"graph \"g\" ir 8 opset 17\nin %x: f32\nin %x: f32\n", "line 3, column 6: a second value named \"x\""},
      {"graph \"g\" ir 8 opset 17\n%y: f32 = Relu(%x)\n", "no value named \"x\" stands above this line"},
      {"graph \"g\" ir 8 opset 17\n%y: f32 = Relu(%y)\n", "reads \"y\" before anything produces it"},
      {"graph \"g\" ir 8 opset 17\nvalue %x: f32\nout %x\n", "graph output \"x\" is produced by no node"},
      {"graph \"g\" ir 8 opset 17\nconst %x: f32 [3] = {1, 2}\n", "shape [3] holds 3 elements, found 2"},
      {"graph \"g\" ir 8 opset 17\nconst %x: i8 [1] = {128}\n", "expected a value of type i8, found \"128\""},
      {"graph \"g\" ir 8 opset 17\nconst %x: f32 [9] = @7\n", "no source was given"},
      {"graph \"g\" ir 8 opset 17\nconst %x: f32 [99999999999,99999999999] = #0\n", "line 2"},
      {"graph \"g\" ir 8 opset 17\nconst %x: f32 [281474976710655] = #0\n", "past the limit"},
      {"graph \"g\" ir 8 opset 17\nin %x: f32 q8(-1, 0)\n", "a scale must be finite and above 0"},
      {"graph \"g\" ir 8 opset 17\nin %x: f32 q8(1, 256)\n", "expected a whole number in 0..255"},
      {"graph \"g\" ir 8 opset 17\nin %\"x: f32\n", "expected a string that closes on its line"},
      {"graph \"g\" ir 8 opset 17\n%y: f32 = Relu(%x) {a=[1,2.5]}\n", "no value named"},
      {"graph \"g\" ir 8 opset 17\nin %x: f32\n%y: f32 = F(%x) {a=[1,2.5]}\n", "a list mixes whole numbers, floats"},
      {"graph \"g\" ir 8 opset 17\nin %x: f32\n%y: f32 = Relu(%x) into %y\n", "absorb each other in a circle"},
      {"graph \"g\" ir 8 opset 17\nin %x: f32\n%y: f32 = Relu(%x) into #1\n", "there is no node #1"},
      {"graph \"g\" ir 8 opset 17\nconst %w: f32 [2,1] = quant(w8a8_c, axis 2, groups 1, \"rtn\") i8 [2,1] {1, 2} "
       "scales f32 "
       "[2] {1, 1}\n",
       "2 scales, axis 2 and 1 groups do not fit codes of shape [2,1]"},
      {"graph \"g\" ir 8 opset 17\nconst %w: f32 [2,1] = quant(w8a8_c, axis 0, groups 1, \"rtn\") i8 [2,1] {1, 2} "
       "scales f32 "
       "[2] {1, 0}\n",
       "weight scales must be finite and above 0"},
  };
  for (const auto& [text, words] : cases) {
    auto graph = parse_graph(text);
    ASSERT_FALSE(graph) << text;
    EXPECT_EQ(graph.error().code, ErrorCode::input);
    EXPECT_NE(graph.error().message.find(words), std::string::npos) << graph.error().message;
  }
}

TEST(GraphText, CommentsAndBlankLinesAreSkipped) {
  auto graph =
      parse_graph("\n# a hand-written graph\ngraph \"g\" ir 8 opset 17\n\n  in %x: f32 [ 2 , N ]\n# end\nout %x");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(print_graph(*graph), "graph \"g\" ir 8 opset 17\nin %x: f32 [2,N]\nout %x\n");
}

// What comes out of damaged text is an error or a graph that holds its own rules.
void expect_error_or_sound(std::string_view text, ConstantSource* source) {
  auto graph = parse_graph(text, source);
  if (!graph) {
    ASSERT_FALSE(graph.error().message.empty());
    return;
  }
  ASSERT_TRUE(verify(*graph));
  const std::string printed = print_graph(*graph);
  auto again = parse_graph(printed);
  ASSERT_TRUE(again) << again.error().message << "\n" << printed;
}

TEST(GraphText, TruncationAtAnyByteIsSafe) {
  Store store;
  const std::string text = print_graph(rich_graph(), &store);
  for (std::size_t end = 0; end <= text.size(); ++end)
    expect_error_or_sound(std::string_view(text).substr(0, end), &store);
  const std::string hashed = print_graph(rich_graph());
  for (std::size_t end = 0; end <= hashed.size(); ++end) {
    expect_error_or_sound(std::string_view(hashed).substr(0, end), nullptr);
  }
}

TEST(GraphText, RandomByteFlipsAreSafe) {
  Store store;
  const std::string stored = print_graph(rich_graph(), &store), hashed = print_graph(rich_graph());
  constexpr char kTelling[] = "%@#\"\\{}[]()=,:_ \n0129-.exN";
  Random random(20, "text flips");
  for (int round = 0; round < 20000; ++round) {
    const bool is_stored = round % 2 == 0;
    std::string text = is_stored ? stored : hashed;
    for (std::uint64_t flips = 1 + random.below(3); flips > 0; --flips) {
      const std::size_t at = random.below(text.size());
      switch (random.below(4)) {
        case 0:
          text[at] = static_cast<char>(random.next());
          break;
        case 1:
          text[at] = kTelling[random.below(sizeof kTelling - 1)];
          break;
        case 2:
          text.erase(at, 1 + random.below(4));
          break;
        default:
          text.insert(at, 1, kTelling[random.below(sizeof kTelling - 1)]);
          break;
      }
    }
    SCOPED_TRACE("seed 20, round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(expect_error_or_sound(text, is_stored ? &store : nullptr));
  }
}

TEST(GraphText, TwoThousandNodesParseQuickly) {
  Graph g;
  ValueId last = g.add_value("input", DType::f32, DeclaredShape{{-1, "N"}, {64, ""}, {56, ""}, {56, ""}});
  g.add_input(last);
  Store store;
  for (int i = 0; i < 2000; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".conv";
    const ValueId w = g.add_constant(layer + ".weight", ramp({4, 4}));
    const ValueId out = g.add_value(layer + ".out", DType::f32, DeclaredShape{{-1, "N"}, {64, ""}, {56, ""}, {56, ""}});
    g.value(out).activation_quant = ActivationQuant{0.0123f, 3};
    Node node = make_node("Conv", {last, w}, {out}, layer);
    node.attributes.set("kernel_shape", std::vector<std::int64_t>{3, 3});
    node.attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
    g.add_node(std::move(node));
    last = out;
  }
  g.add_output(last);
  const std::string text = print_graph(g, &store);
  // A lookup that costs nothing, so that the time is the parser's.
  struct Constant : ConstantSource {
    Tensor held = ramp({4, 4});
    Result<Tensor> load(std::string_view, DType, const Shape&) override { return held; }
  } source;
  double best_ms = 1e9;
  for (int round = 0; round < 7; ++round) {
    const std::clock_t start = std::clock();  // processor time: what others run must not count
    auto graph = parse_graph(text, &source);
    const double spent_ms = 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_TRUE(graph) << graph.error().message;
    best_ms = std::min(best_ms, spent_ms);
  }
  // Some 5 ms where this was written; the limit leaves room for sanitizers.
  EXPECT_LT(best_ms, 200.0);
  std::printf("parse of 2000 nodes (%zu bytes): %.2f ms\n", text.size(), best_ms);
}

}  // namespace
}  // namespace ctk::graph

#include "graph/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>

#include "core/random.h"

namespace ctk::graph {
namespace {

// Keeps tensors in memory under their number.
class Store : public ConstantSink, public ConstantSource {
 public:
  std::string store(const Tensor& tensor) override {
    held_.push_back(tensor);
    return std::to_string(held_.size() - 1);
  }
  Result<Tensor> load(std::string_view reference, DType dtype, const Shape& shape) override {
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (reference == std::to_string(i) && held_[i].dtype() == dtype && held_[i].shape() == shape) return held_[i];
    }
    return input_error("no tensor \"" + std::string(reference) + "\" of that type");
  }

 private:
  std::vector<Tensor> held_;
};

template <class T>
Tensor tensor_of(Shape shape, std::vector<T> values) {
  return Tensor::of<T>(std::move(shape), values);
}

DeclaredShape sizes(std::initializer_list<std::int64_t> list) {
  DeclaredShape shape;
  for (std::int64_t size : list) shape.push_back({size, ""});
  return shape;
}

Node make_node(std::string type, std::vector<ValueId> inputs, std::vector<ValueId> outputs, std::string name = "") {
  Node node;
  node.op_type = std::move(type);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.name = std::move(name);
  return node;
}

Tensor ramp(Shape shape) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape)).value();
  auto values = tensor.mutable_values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.1f;
  return tensor;
}

// Every kind of fact a graph can hold.
Graph rich_graph() {
  Graph g;
  g.name = "a \"rich\" graph\n";
  g.ir_version = 9;
  g.opset = 17;
  g.other_opsets = {{"com.acme", 3}, {"ai.onnx.ml", 2}};
  g.metadata = {{"author", "Zo\xc3\xab"}, {"author", "twice"}, {"", "\x01\x7f\xff\\"}};
  g.reader_notes = {"default of input W was frozen"};
  const ValueId x =
      g.add_value("x", DType::f32, DeclaredShape{{-1, "N"}, {3, ""}, {-1, ""}, {8, "width"}, {-1, "2*N"}});
  g.value(x).activation_quant = ActivationQuant{0.1f, 114};
  const ValueId w = g.add_constant("conv1.weight", ramp({4, 3, 3, 3}));
  const ValueId b = g.add_constant("b:ias", tensor_of<float>({4}, {1.0f, -0.0f, std::nanf(""), -INFINITY}));
  const ValueId odd =
      g.add_constant("\xe5\x90\x8d \xc3( :", tensor_of<std::int64_t>({}, {std::numeric_limits<std::int64_t>::min()}));
  g.add_input(x);
  g.add_input(w);  // a constant that is an input too

  auto quantized = std::make_shared<QuantTensor>();
  quantized->scheme = parse_scheme("w4a8_c").value();
  const std::vector<std::int8_t> codes{-8, 7, 0, 1, 2, 3, -1, -2, 4};
  quantized->codes = pack_codes({3, 3}, codes, 4);
  quantized->scales = {0.5f, 1e-30f, 3.0f};
  quantized->method = "rtn \"mse\"";
  const ValueId q = g.add_value("q", DType::f32, sizes({3, 3}));
  g.value(q).quantized = quantized;

  auto affine = std::make_shared<QuantTensor>();
  affine->scheme = parse_scheme("w3a16_g2_affine").value();
  affine->codes = pack_codes({3, 3}, std::vector<std::int8_t>{-4, 3, 0, 1, 2, 3, -1, -2, 1}, 3);
  affine->scales = {0.5f, -2.0f, 3.0f, 1.0f, 0.25f, -0.125f};
  affine->zeros = {-4, 3, 0, 1, -1, 2};
  affine->method = "gptq";
  const ValueId q3 = g.add_value("q3", DType::f32, sizes({3, 3}));
  g.value(q3).quantized = affine;

  const ValueId y = g.add_value("y", DType::f32, DeclaredShape{});
  g.value(y).activation_quant = ActivationQuant{std::numeric_limits<float>::min(), 0};
  Node conv = make_node("Conv", {x, w, b}, {y}, "conv 1");
  conv.scheme = parse_scheme("w8a8_c").value();
  conv.attributes.set("pads", std::vector<std::int64_t>{1, 1, -1, 1});
  conv.attributes.set("auto pad", std::string("NOT\tSET"));
  conv.attributes.set("alpha", 1.0f);
  conv.attributes.set("big", std::int64_t{-7});
  conv.attributes.set("floats", std::vector<float>{1.0f, 0.1f, 1e20f, -INFINITY, std::nanf("")});
  conv.attributes.set("names", std::vector<std::string>{"a", "b,]"});
  conv.attributes.set("no_ints", std::vector<std::int64_t>{});
  conv.attributes.set("no_floats", std::vector<float>{});
  conv.attributes.set("no_names", std::vector<std::string>{});
  conv.attributes.set("small", tensor_of<double>({2}, {0.1, 2.0}));
  conv.attributes.set("large", ramp({10}));
  conv.attributes.set("undefined", Tensor());
  conv.attributes.set("body", OpaqueAttribute{std::string("\0\xff", 2)});
  conv.attributes.set("long_body", OpaqueAttribute{std::string(100, 'z')});
  conv.attributes.set("no_body", OpaqueAttribute{});
  const NodeId conv_id = g.add_node(std::move(conv));

  const ValueId z = g.add_value("z", DType::f16);
  Node relu = make_node("Relu", {y}, {z}, "relu");
  relu.absorbed_by = conv_id;
  g.add_node(std::move(relu));

  const ValueId top = g.add_value("top", DType::i64, sizes({0}));
  Node custom = make_node("Top:K", {z, ValueId{}, q, q3}, {ValueId{}, top}, "relu");
  custom.domain = "com.acme";
  custom.captured = {w, odd};
  g.add_node(std::move(custom));
  const NodeId silent = g.add_node(make_node("Print", {top}, {}));
  const ValueId last = g.add_value("last", DType::boolean);
  Node end = make_node("Not_known", {}, {last});
  end.absorbed_by = silent;
  g.add_node(std::move(end));
  g.add_value("dangling", DType::u8, sizes({2}));
  g.add_output(last);
  g.add_output(y);
  return g;
}

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

#include "calibrate/reverse/reverse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "calibrate/reverse/rules.h"
#include "calibrate/reverse/weight_gradient.h"
#include "core/parallel.h"
#include "tests/support/graph_builder.h"

namespace ctk::calibrate {
namespace {

using graph::Graph;
using graph::Op;
using graph::ValueId;
using test::Attrs;
using test::counting;
using test::floats;
using test::GraphBuilder;
using test::Ints;
using test::ints;
using test::varied;

// One operator with float inputs whose gradients are checked, and constants behind them.
struct Case {
  std::string op;
  std::vector<Tensor> data;       // graph inputs
  std::vector<Tensor> constants;  // further inputs of the node; undefined: omitted
  Attrs attributes = {};
  std::size_t outputs = 1;
};

// Values at least 0.3 away from 0 and apart, so that no step crosses a kink.
Tensor off_kinks(Shape shape, unsigned seed = 1) {
  Tensor tensor = varied(std::move(shape), seed);
  for (float& v : tensor.mutable_values<float>()) v += v < 0 ? -0.3f : 0.3f;
  return tensor;
}

// Distinct values a quarter apart, in a shuffled order.
Tensor spaced(Shape shape) {
  Tensor tensor = counting(std::move(shape));
  const auto count = static_cast<float>(tensor.size());
  for (float& v : tensor.mutable_values<float>()) v = 0.25f * std::fmod(v * 7.0f + 3.0f, count);
  return tensor;
}

Tensor positive(Shape shape, unsigned seed = 1) {
  Tensor tensor = varied(std::move(shape), seed);
  for (float& v : tensor.mutable_values<float>()) v = 1.5f + v;
  return tensor;
}

std::vector<Case> cases() {
  const Tensor line = floats({6}, {-4, -2.5f, -0.5f, 0.7f, 2.5f, 4});
  return {
      {"Abs", {off_kinks({3, 4})}, {}},
      {"Add", {varied({2, 3, 4}), varied({3, 1}, 2)}, {}},
      {"Add", {varied({3, 4}), varied({3, 4}, 2)}, {}},
      {"Attention",
       {varied({1, 5, 8}), varied({1, 5, 4}, 2), varied({1, 5, 4}, 3)},
       {},
       {{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}, {"is_causal", std::int64_t{1}}}},
      {"Attention", {varied({2, 3, 4, 5}), varied({2, 3, 6, 5}, 2), varied({2, 3, 6, 2}, 3)}, {}, {{"scale", 0.7f}}},
      {"AveragePool",
       {varied({1, 2, 5, 5})},
       {},
       {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}}},
      {"AveragePool",
       {varied({1, 2, 5})},
       {},
       {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}, {"count_include_pad", std::int64_t{1}}}},
      {"BatchNormalization", {varied({2, 3, 4})}, {varied({3}, 2), varied({3}, 3), varied({3}, 4), positive({3}, 5)}},
      {"Clip", {line}, {Tensor::scalar(-1.0f), Tensor::scalar(2.0f)}},
      {"Concat", {varied({2, 3}), varied({2, 1}, 2), varied({2, 2}, 3)}, {}, {{"axis", std::int64_t{1}}}},
      {"Conv",
       {varied({2, 4, 7, 6})},
       {varied({6, 2, 3, 2}, 2), varied({6}, 3)},
       {{"group", std::int64_t{2}}, {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}, {"pads", Ints{1, 0, 0, 2}}}},
      {"Conv",
       {varied({1, 3, 5, 5})},
       {varied({3, 1, 3, 3}, 2)},
       {{"group", std::int64_t{3}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"Conv", {varied({1, 2, 9})}, {varied({5, 2, 4}, 2)}, {{"strides", Ints{3}}}},
      {"Conv", {varied({1, 2, 3, 4, 3})}, {varied({2, 2, 2, 2, 2}, 2)}},
      {"Div", {varied({2, 3}), positive({3}, 2)}, {}},
      {"Dropout", {varied({2, 3})}, {}},
      {"Elu", {off_kinks({7})}, {}, {{"alpha", 0.6f}}},
      {"Erf", {varied({7})}, {}},
      {"Exp", {varied({7})}, {}},
      {"Expand", {varied({3, 1})}, {ints({2, 3, 4})}},
      {"Flatten", {varied({2, 3, 2})}, {}, {{"axis", std::int64_t{1}}}},
      {"Gather", {varied({4, 3})}, {ints({2, 0, 2})}},
      {"Gather", {varied({3, 4})}, {ints({3, -1})}, {{"axis", std::int64_t{1}}}},
      {"Gelu", {varied({9})}, {}},
      {"Gelu", {varied({9})}, {}, {{"approximate", std::string("tanh")}}},
      {"Gemm", {varied({3, 5}), varied({4, 5}, 2), varied({4}, 3)}, {}, {{"transB", std::int64_t{1}}, {"beta", 0.5f}}},
      {"Gemm", {varied({5, 3}), varied({5, 4}, 2)}, {}, {{"transA", std::int64_t{1}}, {"alpha", 0.7f}}},
      {"Gemm", {varied({5, 3}), varied({4, 5}, 2)}, {}, {{"transA", std::int64_t{1}}, {"transB", std::int64_t{1}}}},
      {"GlobalAveragePool", {varied({2, 3, 4, 2})}, {}},
      {"HardSigmoid", {line}, {}, {{"alpha", 0.3f}, {"beta", 0.4f}}},
      {"HardSwish", {line}, {}},
      {"Identity", {varied({2, 3})}, {}},
      {"LayerNormalization", {varied({2, 3, 5})}, {positive({5}, 2), varied({5}, 3)}},
      {"LayerNormalization", {varied({2, 3, 4})}, {positive({3, 4}, 2)}, {{"axis", std::int64_t{1}}}},
      {"LeakyRelu", {off_kinks({3, 4})}, {}, {{"alpha", 0.2f}}},
      {"MatMul", {varied({2, 3, 4}), varied({4, 5}, 2)}, {}},
      {"MatMul", {varied({2, 1, 3, 4}), varied({3, 4, 5}, 2)}, {}},
      {"MatMul", {varied({4}), varied({2, 4, 3}, 2)}, {}},
      {"MatMul", {varied({3, 4}), varied({4}, 2)}, {}},
      {"MaxPool",
       {spaced({1, 2, 5, 4})},
       {},
       {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}}},
      {"Mul", {varied({2, 3, 4}), varied({2, 1, 4}, 2)}, {}},
      {"Mul", {varied({5}), varied({5}, 2)}, {}},
      {"Neg", {varied({5})}, {}},
      {"Pad", {varied({2, 3})}, {ints({1, 0, 0, 2})}},
      {"Pad", {varied({2, 4})}, {ints({0, 2, 0, 1})}, {{"mode", std::string("reflect")}}},
      {"RMSNormalization", {varied({3, 6})}, {positive({6}, 2)}},
      {"ReduceMean", {varied({2, 3, 4})}, {ints({0, 2})}, {{"keepdims", std::int64_t{0}}}},
      {"ReduceSum", {varied({2, 3, 4})}, {ints({1})}},
      {"Relu", {off_kinks({3, 4})}, {}},
      {"Reshape", {varied({2, 6})}, {ints({3, -1})}},
      {"RotaryEmbedding",
       {varied({1, 3, 8})},
       {varied({1, 3, 2}, 2), varied({1, 3, 2}, 3)},
       {{"num_heads", std::int64_t{2}}}},
      {"RotaryEmbedding",
       {varied({1, 2, 3, 6})},
       {varied({4, 2}, 2), varied({4, 2}, 3), Tensor::of<std::int64_t>({1, 3}, Ints{3, 0, 1})},
       {{"rotary_embedding_dim", std::int64_t{4}}, {"interleaved", std::int64_t{1}}}},
      {"Sigmoid", {varied({7})}, {}},
      {"Slice", {varied({3, 5})}, {ints({4, 0}), ints({-6, 2}), ints({1, 0}), ints({-2, 1})}},
      {"Softmax", {varied({2, 3, 4})}, {}},
      {"Softmax", {varied({2, 3, 4})}, {}, {{"axis", std::int64_t{1}}}},
      {"Split", {varied({2, 5})}, {ints({2, 3})}, {{"axis", std::int64_t{1}}}, 2},
      {"Sqrt", {positive({5})}, {}},
      {"Squeeze", {varied({1, 3, 1})}, {ints({0})}},
      {"Sub", {varied({2, 3}), varied({2, 1}, 2)}, {}},
      {"Tanh", {varied({7})}, {}},
      {"Transpose", {varied({2, 3, 4})}, {}, {{"perm", Ints{2, 0, 1}}}},
      {"Unsqueeze", {varied({3, 2})}, {ints({1})}},
  };
}

struct Built {
  Graph graph;
  std::vector<ValueId> inputs;
  std::vector<Shape> shapes;
};

// The case as a graph; several outputs are joined into the first, so that all of them matter.
Built build(const Case& c) {
  GraphBuilder builder;
  Built built;
  std::vector<ValueId> reads;
  for (std::size_t i = 0; i < c.data.size(); ++i) {
    built.shapes.push_back(c.data[i].shape());
    reads.push_back(builder.input("x" + std::to_string(i), c.data[i].shape()));
  }
  built.inputs = reads;
  for (std::size_t i = 0; i < c.constants.size(); ++i) {
    reads.push_back(builder.constant("c" + std::to_string(i), c.constants[i]));
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < c.outputs; ++i) names.push_back("y" + std::to_string(i));
  const std::vector<ValueId> outputs = builder.nodes(c.op, reads, names, c.attributes);
  ValueId last = outputs[0];
  if (outputs.size() > 1) last = builder.node("Concat", outputs, "joined", {{"axis", std::int64_t{1}}});
  builder.output(last);
  built.graph = std::move(builder.graph);
  return built;
}

// Every float value of a run.
Values run(const Graph& graph, const std::vector<ValueId>& inputs, const std::vector<Tensor>& data) {
  Values values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[inputs[i]] = data[i];
  std::vector<Shape> shapes;
  for (const Tensor& tensor : data) shapes.push_back(tensor.shape());
  const auto infos = graph::infer_shapes(graph, shapes).value();
  for (graph::NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    std::vector<TensorView> reads;
    for (ValueId input : node.inputs) {
      reads.push_back(!input.is_valid()                  ? TensorView{}
                      : graph.value(input).is_constant() ? graph.value(input).constant->view()
                                                         : values.at(input).view());
    }
    std::vector<MutableTensorView> writes;
    for (ValueId output : node.outputs) {
      values[output] = Tensor::zeros(infos[output.index].info.dtype, infos[output.index].info.shape).value();
      writes.push_back(values[output].mutable_view());
    }
    const auto done = graph::rules_of(node.op).evaluate(node, reads, writes);
    EXPECT_TRUE(done) << done.error().message;
  }
  return values;
}

// sum of direction * output: what the gradients are of.
double loss(const Built& built, const std::vector<Tensor>& data, const Tensor& direction) {
  const Values values = run(built.graph, built.inputs, data);
  const auto y = values.at(built.graph.outputs()[0]).values<float>();
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum += static_cast<double>(y[i]) * static_cast<double>(direction.values<float>()[i]);
  }
  return sum;
}

// Central differences at two steps, the error of second order taken out.
double difference(const Built& built, std::vector<Tensor> data, std::size_t input, std::size_t element,
                  const Tensor& direction) {
  const Tensor original = data[input];
  const auto at = [&](float step) {
    data[input] = original.clone();
    data[input].mutable_values<float>()[element] += step;
    return loss(built, data, direction);
  };
  constexpr float kStep = 0.03125f;
  return (8.0 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12.0 * static_cast<double>(kStep));
}

TEST(ReverseRules, AreHeldToCentralDifferences) {
  std::set<Op> seen;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.op);
    const Built built = build(c);
    seen.insert(built.graph.node(built.graph.order()[0]).op);
    const Values values = run(built.graph, built.inputs, c.data);
    const ValueId last = built.graph.outputs()[0];
    const Tensor direction = varied(values.at(last).shape(), 77);
    const auto pass = ReversePass::create(built.graph, built.shapes, built.inputs);
    ASSERT_TRUE(pass) << pass.error().message;
    Values kept;  // nothing but what the pass asks for
    for (ValueId id : pass->keep()) kept[id] = values.at(id);
    const auto gradients = backward(built.graph, built.shapes, built.inputs, kept, direction);
    ASSERT_TRUE(gradients) << gradients.error().message;
    for (std::size_t input = 0; input < built.inputs.size(); ++input) {
      ASSERT_TRUE(gradients->contains(built.inputs[input])) << input;
      const auto found = gradients->at(built.inputs[input]).values<float>();
      for (std::size_t i = 0; i < found.size(); ++i) {
        // Outputs of size 1 to 10 carry some 1e-6 of rounding, divided by the step; the fourth order leaves less.
        const double expected = difference(built, c.data, input, i, direction);
        EXPECT_NEAR(static_cast<double>(found[i]), expected, 2e-4 * std::max(1.0, std::abs(expected)))
            << "input " << input << " element " << i;
      }
    }
  }
  for (const ReverseRow& row : reverse_rows()) {
    EXPECT_TRUE(seen.contains(row.op)) << "no case for " << graph::name_of(row.op);
  }
}

TEST(ReversePass, SumsOverAllReadersOfAValue) {
  // y = x * x + relu(x): dy/dx = 2 x + 1 for x > 0, 2 x else.
  GraphBuilder builder;
  const ValueId x = builder.input("x", {4});
  const ValueId square = builder.node("Mul", {x, x}, "square");
  const ValueId positive_part = builder.node("Relu", {x}, "part");
  builder.output(builder.node("Add", {square, positive_part}, "y"));
  const Values values = run(builder.graph, {x}, {floats({4}, {-2, -1, 1, 3})});
  const auto gradients = backward(builder.graph, std::vector<Shape>{{4}}, {x}, values, floats({4}, {1, 1, 1, 10}));
  ASSERT_TRUE(gradients) << gradients.error().message;
  EXPECT_EQ(test::values_of(gradients->at(x)), (test::Floats{-4, -2, 3, 70}));
}

TEST(ReversePass, VisitsTargetsFromTheOutputBackAndTheLastOneTheOutputItself) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", {2});
  const ValueId a = builder.node("Tanh", {x}, "a");
  const ValueId b = builder.node("Neg", {a}, "b");
  builder.output(b);
  const Values values = run(builder.graph, {x}, {floats({2}, {0, 0})});
  const auto pass = ReversePass::create(builder.graph, std::vector<Shape>{{2}}, {a, b});
  ASSERT_TRUE(pass);
  std::vector<ValueId> visited;
  GradientVisitor visitor;
  visitor.target = [&](ValueId id, const Tensor& gradient) -> Status {
    visited.push_back(id);
    EXPECT_EQ(gradient.values<float>()[1], id == b ? 3.0f : -3.0f);
    return {};
  };
  ASSERT_TRUE(pass->run(values, floats({2}, {1, 3}), visitor));
  EXPECT_EQ(visited, (std::vector<ValueId>{b, a}));
}

TEST(ReversePass, NeedsNoRuleBeforeTheFirstTarget) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", {2});
  const ValueId a = builder.node("Pow", {x, builder.constant("two", Tensor::scalar(2.0f))}, "a");
  builder.output(builder.node("Tanh", {a}, "y"));
  EXPECT_TRUE(ReversePass::create(builder.graph, std::vector<Shape>{{2}}, {a}));
  const auto refused = ReversePass::create(builder.graph, std::vector<Shape>{{2}}, {x});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::input);
  EXPECT_NE(refused.error().message.find("Pow_a"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("found Pow"), std::string::npos) << refused.error().message;
}

TEST(ReversePass, KeepsOneOperandOfAProductOnlyForTheOther) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", {2, 3});
  const ValueId w = builder.constant("w", varied({3, 4}));
  builder.output(builder.node("MatMul", {x, w}, "y"));
  const auto pass = ReversePass::create(builder.graph, std::vector<Shape>{{2, 3}}, {x});
  ASSERT_TRUE(pass);
  EXPECT_TRUE(pass->keep().empty());
}

TEST(ReversePass, TellsWhatEachNodeAddsToItsFirstInput) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", {1});
  const ValueId a = builder.node("Mul", {x, builder.constant("two", Tensor::scalar(2.0f))}, "a");
  builder.output(builder.node("Add", {x, a}, "y"));
  const auto pass = ReversePass::create(builder.graph, std::vector<Shape>{{1}}, {x});
  ASSERT_TRUE(pass);
  std::map<std::string, float> added;
  float total = 0;
  GradientVisitor visitor;
  visitor.contribution = [&](graph::NodeId id, const Tensor& gradient) -> Status {
    added[builder.graph.node(id).op_type] = gradient.values<float>()[0];
    return {};
  };
  visitor.target = [&](ValueId, const Tensor& gradient) -> Status {
    total = gradient.values<float>()[0];
    return {};
  };
  ASSERT_TRUE(pass->run({}, floats({1}, {5}), visitor));
  EXPECT_EQ(added, (std::map<std::string, float>{{"Add", 5.0f}, {"Mul", 10.0f}}));
  EXPECT_EQ(total, 15.0f);
}

TEST(ReversePass, GivesTheSameBitsAtAnyNumberOfThreads) {
  const int before = threads();
  for (const Case& c :
       {Case{"Gemm", {varied({33, 200}), varied({300, 200}, 2)}, {}, {{"transB", std::int64_t{1}}}},
        Case{"Conv", {varied({1, 10, 9, 9})}, {varied({7, 10, 3, 3}, 2)}},
        Case{"Attention", {varied({2, 3, 9, 4}), varied({2, 3, 9, 4}, 2), varied({2, 3, 9, 4}, 3)}, {}}}) {
    const Built built = build(c);
    const Values values = run(built.graph, built.inputs, c.data);
    const Tensor direction = varied(values.at(built.graph.outputs()[0]).shape(), 5);
    std::vector<test::Floats> found[2];
    for (int t = 0; t < 2; ++t) {
      set_threads(t == 0 ? 1 : 3);
      const auto gradients = backward(built.graph, built.shapes, built.inputs, values, direction);
      ASSERT_TRUE(gradients);
      for (ValueId id : built.inputs) found[t].push_back(test::values_of(gradients->at(id)));
    }
    EXPECT_EQ(found[0], found[1]) << c.op;
  }
  set_threads(before);
}

// A layer with its weight as constant: d(loss) / d(weight) against central differences in the weight.
void check_weight_gradient(const Case& c) {
  SCOPED_TRACE(c.op + to_string(c.constants[0].shape()));
  const Built built = build(c);
  const auto layers = graph::layers_of(built.graph);
  ASSERT_EQ(layers.size(), 1u);
  const Values values = run(built.graph, built.inputs, c.data);
  const Tensor direction = varied(values.at(built.graph.outputs()[0]).shape(), 9);
  const auto found = weight_gradient(built.graph, layers[0], c.data[0], direction);
  ASSERT_TRUE(found) << found.error().message;
  const auto k = static_cast<std::size_t>(layers[0].reduction), n = static_cast<std::size_t>(layers[0].channels);
  ASSERT_EQ(found->size(), n * k);
  for (std::size_t i = 0; i < n * k; ++i) {
    double losses[2];  // the output is linear in the weight: any step is exact but for rounding
    for (int side = 0; side < 2; ++side) {
      Case moved = c;
      moved.constants[0] = c.constants[0].clone();
      const std::size_t at = layers[0].channel_axis == 0 ? i : i % k * n + i / k;
      moved.constants[0].mutable_values<float>()[at] += side == 0 ? -0.5f : 0.5f;
      losses[side] = loss(build(moved), moved.data, direction);
    }
    EXPECT_NEAR(static_cast<double>((*found)[i]), losses[1] - losses[0], 1e-4) << i;
  }
}

TEST(WeightGradient, IsHeldToDifferencesOfTheLoss) {
  check_weight_gradient({"Gemm", {varied({5, 3})}, {varied({4, 3}, 2)}, {{"transB", std::int64_t{1}}}});
  check_weight_gradient({"MatMul", {varied({2, 5, 3})}, {varied({3, 4}, 2)}});
  check_weight_gradient({"Conv",
                         {varied({2, 4, 6, 5})},
                         {varied({6, 2, 3, 2}, 2)},
                         {{"group", std::int64_t{2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}}});
  check_weight_gradient({"Conv", {varied({1, 3, 5})}, {varied({3, 1, 3}, 2)}, {{"group", std::int64_t{3}}}});
}

}  // namespace
}  // namespace ctk::calibrate

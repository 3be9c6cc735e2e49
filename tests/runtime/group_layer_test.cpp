// Coded weights of every width are multiplied, and looked up, as they are packed: no plan holds their floats.
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "runtime/cpu_executor.h"
#include "tests/support/interpret.h"

namespace ctk::runtime {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

constexpr std::int64_t kChannels = 21, kReduction = 72, kRows = 5;  // groups of 32: the last is short

QuantTensor random_codes(const std::string& scheme, int channel_axis) {
  Random random(3, scheme);
  QuantTensor w;
  w.scheme = parse_scheme(scheme).value();
  w.channel_axis = channel_axis;
  const Shape shape = channel_axis == 0 ? Shape{kChannels, kReduction} : Shape{kReduction, kChannels};
  const int low = lowest_code(w.scheme.weight_bits), high = highest_code(w.scheme.weight_bits);
  std::vector<std::int8_t> codes(elements(shape));
  const auto draw = [&] { return static_cast<std::int8_t>(low + static_cast<int>(random.below(high - low + 1))); };
  for (auto& code : codes) code = draw();
  w.codes = pack_codes(shape, codes, w.scheme.weight_bits);
  const std::size_t scales = kChannels * groups_of(shape, channel_axis, w.scheme);
  for (std::size_t i = 0; i < scales; ++i) {
    w.scales.push_back(half_to_float(float_to_half(static_cast<float>(0.01 * (random.uniform() + 0.1)))));
    if (w.scheme.is_affine) w.zeros.push_back(draw());
  }
  return w;
}

struct Network {
  Graph graph;

  ValueId add_weight(QuantTensor weight) {
    const Shape& shape = weight.codes.shape();
    const ValueId id = graph.add_value("weight", DType::f32, graph::DeclaredShape{{shape[0], ""}, {shape[1], ""}});
    graph.value(id).quantized = std::make_shared<const QuantTensor>(std::move(weight));
    return id;
  }
  ValueId add_input(DType dtype, const Shape& shape) {
    graph::DeclaredShape declared;
    for (std::int64_t size : shape) declared.push_back({size, ""});
    const ValueId id = graph.add_value("input", dtype, declared);
    graph.add_input(id);
    return id;
  }
  ValueId add(const std::string& op, std::vector<ValueId> from, const std::string& flag = "") {
    Node node;
    node.op_type = op;
    node.inputs = std::move(from);
    if (!flag.empty()) node.attributes.set(flag, std::int64_t{1});
    const ValueId y = graph.add_value(graph.unique_name(op), DType::f32);
    node.outputs = {y};
    graph.add_node(std::move(node));
    return y;
  }
};

std::vector<std::string> labels_of(const Plan& plan) {
  std::vector<std::string> labels;
  for (const auto& step : plan.steps) labels.push_back(step->label);
  return labels;
}

Tensor random_activations() {
  Random random(4);
  Tensor x = Tensor::zeros(DType::f32, {kRows, kReduction}).value();
  for (float& value : x.mutable_values<float>()) value = static_cast<float>(random.normal());
  return x;
}

const char* const kSchemes[] = {"w2a16_g32",        "w3a16_g32",        "w4a16_g32",        "w5a16_g32",
                                "w6a16_g32",        "w8a16_g32",        "w8a16_g64",        "w8a16_c",
                                "w6a16_c",          "w3a8_g16",         "w8a8_g32",         "w6a8_g64",
                                "w8a16_g32_affine", "w4a16_g64_affine", "w2a16_g16_affine", "w5a16_c_affine"};

TEST(GroupLayer, EveryWidthIsMultipliedAsItIsPacked) {
  for (const std::string scheme : kSchemes) {
    for (int axis : {0, 1}) {
      if (axis == 1 && scheme.find("_g") == std::string::npos) continue;
      SCOPED_TRACE(scheme + " axis " + std::to_string(axis));
      Network net;
      const QuantTensor weight = random_codes(scheme, axis);
      const ValueId x = net.add_input(DType::f32, {kRows, kReduction}), w = net.add_weight(weight);
      net.graph.add_output(axis == 0 ? net.add("Gemm", {x, w}, "transB") : net.add("MatMul", {x, w}));
      net.graph.node(net.graph.order()[0]).scheme = weight.scheme;
      const Tensor a = random_activations();
      auto executor = CpuExecutor::create(net.graph, {a.shape()});
      ASSERT_TRUE(executor.has_value()) << executor.error().message;
      EXPECT_EQ(labels_of((*executor)->plan()), std::vector<std::string>{"gemm_wg"});
      const auto got = (*executor)->run(std::span(&a, 1));
      ASSERT_TRUE(got.has_value());
      const auto want = test::interpret(net.graph, {a});
      ASSERT_TRUE(want.has_value());
      // Half a step of the activations' rounding for each weight, and the roundings of the sums.
      const Tensor floats = dequantize(weight);
      const auto values = floats.values<float>();
      const double step = weight.scheme.activation_bits == 8 ? 0x1p-8 : 0x1p-15;
      for (std::int64_t m = 0; m < kRows; ++m) {
        double top = 0;
        for (std::int64_t k = 0; k < kReduction; ++k) {
          top = std::fmax(top, std::fabs(a.values<float>()[static_cast<std::size_t>(m * kReduction + k)]));
        }
        for (std::int64_t n = 0; n < kChannels; ++n) {
          double sum = 0;
          for (std::int64_t k = 0; k < kReduction; ++k) {
            const std::int64_t at = axis == 0 ? n * kReduction + k : k * kChannels + n;
            sum += std::fabs(values[static_cast<std::size_t>(at)]);
          }
          const auto y = static_cast<std::size_t>(m * kChannels + n);
          EXPECT_NEAR((*got)[0].values<float>()[y], want->outputs[0].values<float>()[y],
                      sum * top * (1.02 * step + 1e-6));
        }
      }
    }
  }
}

TEST(Embedding, RowsOfACodedTableAreItsNumbers) {
  for (const std::string scheme : kSchemes) {
    SCOPED_TRACE(scheme);
    Network net;
    const ValueId ids = net.add_input(DType::i64, {2, 6}), table = net.add_weight(random_codes(scheme, 0));
    net.graph.add_output(net.add("Gather", {table, ids}));
    const std::vector<std::int64_t> wish = {0, 20, 7, 7, -1, -21, 15, 16, 1, 2, 3, 19};
    const Tensor input = Tensor::of<std::int64_t>({2, 6}, wish);
    auto executor = CpuExecutor::create(net.graph, {input.shape()});
    ASSERT_TRUE(executor.has_value()) << executor.error().message;
    EXPECT_EQ(labels_of((*executor)->plan()), std::vector<std::string>{"embedding"});
    const auto got = (*executor)->run(std::span(&input, 1));
    ASSERT_TRUE(got.has_value());
    const auto want = test::interpret(net.graph, {input});
    ASSERT_TRUE(want.has_value());
    const auto a = (*got)[0].values<float>(), b = want->outputs[0].values<float>();
    EXPECT_EQ(std::vector<float>(a.begin(), a.end()), std::vector<float>(b.begin(), b.end()));
  }
}

TEST(Embedding, SaysWhichIdTheTableLacks) {
  Network net;
  const ValueId ids = net.add_input(DType::i64, {3}), table = net.add_weight(random_codes("w5a16_g32", 0));
  net.graph.add_output(net.add("Gather", {table, ids}));
  const std::vector<std::int64_t> wish = {0, 20, 21};
  const Tensor input = Tensor::of<std::int64_t>({3}, wish);
  const auto got = (*CpuExecutor::create(net.graph, {input.shape()}))->run(std::span(&input, 1));
  ASSERT_FALSE(got.has_value());
  EXPECT_NE(got.error().message.find("expected values in [-21,20], found 21 at position 2"), std::string::npos)
      << got.error().message;
}

TEST(Embedding, SharesThePackedWeightOfTheHead) {
  Network net;
  const QuantTensor weight = random_codes("w6a16_g32", 0);
  const ValueId ids = net.add_input(DType::i64, {4}), table = net.add_weight(weight);
  const ValueId logits = net.add("Gemm", {net.add("Gather", {table, ids}), table}, "transB");
  net.graph.node(net.graph.value(logits).producer).scheme = weight.scheme;
  net.graph.add_output(logits);
  auto executor = CpuExecutor::create(net.graph, {{4}});
  ASSERT_TRUE(executor.has_value()) << executor.error().message;
  const Plan& plan = (*executor)->plan();
  EXPECT_EQ(labels_of(plan), (std::vector<std::string>{"embedding", "gemm_wg"}));
  EXPECT_EQ(plan.steps[0]->packed_bytes, 0u);
  EXPECT_EQ(plan.packed_bytes, plan.steps[1]->packed_bytes);
  for (const SlotInfo& slot : plan.slots) EXPECT_FALSE(slot.is_constant);
}

}  // namespace
}  // namespace ctk::runtime

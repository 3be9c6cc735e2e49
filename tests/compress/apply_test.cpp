// Schemes on weights with several readers, and on weights too small for codes.
#include "compress/quantize/apply.h"

#include <gtest/gtest.h>

#include "export/bundle.h"
#include "tests/support/graph_builder.h"

namespace ctk::quantization {
namespace {

using graph::Graph;
using graph::ValueId;
using test::GraphBuilder;
using test::varied;

const char* const kScheme = "w8a8_c";

std::map<std::string, calibrate::Range> ranges_of(const Graph& graph) {
  std::map<std::string, calibrate::Range> ranges;  // any will do: these tests look at weights
  for (std::uint32_t i = 0; i < graph.value_capacity(); ++i) {
    calibrate::Range& range = ranges[graph.value(ValueId{i}).name];
    range.low = -1.0f;
    range.high = 1.0f;
  }
  return ranges;
}

ApplyOutcome apply(Graph& graph, const std::map<std::string, std::string>& wanted) {
  SchemeMap schemes;
  for (const auto& [layer, name] : wanted) schemes[layer] = parse_scheme(name).value();
  auto applied = apply_schemes(graph, schemes, ranges_of(graph), {});
  EXPECT_TRUE(applied) << applied.error().message;
  return applied ? *applied : ApplyOutcome{};
}

const graph::Value& weight_of(const Graph& graph, const std::string& output) {
  return graph.value(graph.node(test::producer_of(graph, output)).inputs[1]);
}

// table [4,4] read by a Gather and by two products over the same dimension.
GraphBuilder tied() {
  GraphBuilder b;
  const ValueId ids = b.input("ids", {3}, DType::i64), x = b.input("x", {2, 4});
  const ValueId table = b.constant("table", varied({4, 4}));
  b.output(b.node("Gather", {table, ids}, "rows"));
  b.output(b.node("MatMul", {x, table}, "y"));
  b.output(b.node("Gemm", {x, table}, "z"));
  return b;
}

// FAULTS B001.
TEST(ApplySchemes, SplitsAWeightThatAnotherReaderNeedsAndNamesIt) {
  GraphBuilder b = tied();
  const ApplyOutcome outcome = apply(b.graph, {{"MatMul_y", kScheme}, {"Gemm_z", kScheme}});
  const graph::Value& original = b.graph.value(*b.graph.find_value("table"));
  ASSERT_TRUE(original.constant);
  EXPECT_EQ(test::values_of(*original.constant), test::values_of(varied({4, 4})));
  EXPECT_EQ(original.consumers.size(), 1u);  // the Gather
  // One copy serves both products.
  EXPECT_NE(weight_of(b.graph, "y").quantized, nullptr);
  EXPECT_EQ(weight_of(b.graph, "y").name, weight_of(b.graph, "z").name);
  ASSERT_EQ(outcome.warnings.size(), 1u);
  EXPECT_EQ(outcome.warnings[0].code, "weight_split");
  for (const char* word : {"\"table\" is shared", "Gather_rows (Gather)", "split"}) {
    EXPECT_NE(outcome.warnings[0].text.find(word), std::string::npos) << outcome.warnings[0].text;
  }
}

TEST(ApplySchemes, LeavesTheOriginalToALayerThatStaysFloat) {
  GraphBuilder b = tied();
  apply(b.graph, {{"Gemm_z", kScheme}});
  EXPECT_EQ(weight_of(b.graph, "y").name, "table");
  EXPECT_EQ(weight_of(b.graph, "y").quantized, nullptr);
  EXPECT_NE(weight_of(b.graph, "z").quantized, nullptr);
}

TEST(ApplySchemes, GivesUnequalSchemesCodesOfTheirOwn) {
  GraphBuilder b = tied();
  apply(b.graph, {{"MatMul_y", kScheme}, {"Gemm_z", "w4a8_c"}});
  EXPECT_EQ(weight_of(b.graph, "y").quantized->codes.dtype(), DType::i8);
  EXPECT_EQ(weight_of(b.graph, "z").quantized->codes.dtype(), DType::i4);
  EXPECT_TRUE(b.graph.value(*b.graph.find_value("table")).constant);
}

TEST(ApplySchemes, GivesCodesOfTheirOwnToLayersWhoseChannelsLieOtherwise) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2, 4}), w = b.constant("w", varied({4, 4}));
  b.output(b.node("MatMul", {x, w}, "y"));
  b.output(b.node("Gemm", {x, w}, "z", {{"transB", std::int64_t{1}}}));
  apply(b.graph, {{"MatMul_y", kScheme}, {"Gemm_z", kScheme}});
  EXPECT_EQ(weight_of(b.graph, "y").quantized->channel_axis, 1);
  EXPECT_EQ(weight_of(b.graph, "z").quantized->channel_axis, 0);
}

TEST(ApplySchemes, KeepsAWeightThatIsAGraphOutputFloat) {
  GraphBuilder b;
  const ValueId w = b.constant("w", varied({4, 4}));
  b.output(b.node("MatMul", {b.input("x", {2, 4}), w}, "y"));
  b.output(w);
  const ApplyOutcome outcome = apply(b.graph, {{"MatMul_y", kScheme}});
  EXPECT_TRUE(b.graph.value(w).constant);
  EXPECT_NE(weight_of(b.graph, "y").quantized, nullptr);
  ASSERT_EQ(outcome.warnings.size(), 1u);
  EXPECT_NE(outcome.warnings[0].text.find("the graph's outputs"), std::string::npos);
}

// Rows of 1e-40 need a scale below the smallest normal number: codes 0. A row of 1e-30 does not.
TEST(ApplySchemes, SaysWhichWeightsVanish) {
  GraphBuilder b;
  Tensor w = varied({3, 4});
  for (std::size_t i = 0; i < 4; ++i) w.mutable_values<float>()[i] = 1e-40f;
  for (std::size_t i = 4; i < 8; ++i) w.mutable_values<float>()[i] = 1e-30f;
  b.output(b.node("Gemm", {b.input("x", {2, 4}), b.constant("w", w)}, "y", {{"transB", std::int64_t{1}}}));
  const ApplyOutcome outcome = apply(b.graph, {{"Gemm_y", kScheme}});
  ASSERT_EQ(outcome.warnings.size(), 1u);
  EXPECT_EQ(outcome.warnings[0].code, "weights_vanish");
  for (const char* word : {"Gemm_y: 1 channels of weight \"w\" hold only", "digits are lost", "ignore"}) {
    EXPECT_NE(outcome.warnings[0].text.find(word), std::string::npos) << outcome.warnings[0].text;
  }
}

// 1e-9 is below half of the smallest half-precision number, 2^-24 = 6e-8.
TEST(ApplySchemes, SaysWhichWeightsVanishInHalfPrecision) {
  GraphBuilder b;
  Tensor w = varied({1, 4});
  for (float& v : w.mutable_values<float>()) v = 1e-9f;
  b.output(b.node("Gemm", {b.input("x", {2, 4}), b.constant("w", w)}, "y", {{"transB", std::int64_t{1}}}));
  const ApplyOutcome outcome = apply(b.graph, {{"Gemm_y", "fp16"}});
  ASSERT_EQ(outcome.warnings.size(), 1u);
  EXPECT_EQ(outcome.warnings[0].code, "weights_vanish");
}

TEST(ApplySchemes, WarnsOfNothingForZerosThatWereZeros) {
  GraphBuilder b;
  const Tensor w = Tensor::zeros(DType::f32, {2, 4}).value();
  b.output(b.node("Gemm", {b.input("x", {2, 4}), b.constant("w", w)}, "y", {{"transB", std::int64_t{1}}}));
  EXPECT_TRUE(apply(b.graph, {{"Gemm_y", kScheme}}).warnings.empty());
}

// Sizes are wanted of networks whose coding takes minutes.
TEST(ApplySchemes, LaysOutCodesOfTheVeryBytesTheyWillTake) {
  for (const char* name : {"w8a8_c", "w8a8_t", "w4a16_g32", "w4a16_g32_affine", "w3a16_c", "w6a16_g16", "fp16"}) {
    const auto network = [] {
      GraphBuilder b;
      const ValueId x = b.input("x", {2, 72});  // the last group is short
      const ValueId h = b.node("MatMul", {x, b.constant("first", varied({72, 40}, 1))}, "h");
      b.output(b.node("Gemm", {h, b.constant("second", varied({24, 40}, 2)), b.constant("bias", varied({24}, 3))}, "y",
                      {{"transB", std::int64_t{1}}}));
      return b.graph.clone();
    };
    const QuantScheme scheme = parse_scheme(name).value();
    const SchemeMap schemes = {{"MatMul_h", scheme}, {"Gemm_y", scheme}};
    Graph coded = network(), laid_out = network();
    const auto ranges = ranges_of(coded);
    ASSERT_TRUE(apply_schemes(coded, schemes, ranges, {}).has_value()) << name;
    ApplyOptions options;
    options.codes_weights = false;
    const auto outcome = apply_schemes(laid_out, schemes, ranges, options);
    ASSERT_TRUE(outcome.has_value()) << name << ": " << outcome.error().message;
    EXPECT_EQ(outcome->layers.size(), 2u);
    // A single scale stands in the text, which is deflated and ends on a multiple of 64 bytes.
    const double slack = scheme.granularity == Granularity::per_tensor ? 64 : 0;
    EXPECT_NEAR(static_cast<double>(exporter::bundle_bytes(laid_out)),
                static_cast<double>(exporter::bundle_of(coded).size()), slack)
        << name;
    const QuantTensor &codes = *weight_of(coded, "y").quantized, &blank = *weight_of(laid_out, "y").quantized;
    EXPECT_EQ(stored_bytes(blank), stored_bytes(codes)) << name;
    for (const std::int8_t code : unpack_codes(blank)) ASSERT_EQ(code, 0);  // nothing was coded
  }
}

}  // namespace
}  // namespace ctk::quantization

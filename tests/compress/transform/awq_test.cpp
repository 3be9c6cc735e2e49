// AWQ's transform, and the search it stands on where features must share a factor.
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/hessian.h"
#include "compress/quantize/coordinate_descent.h"
#include "compress/quantize/gptq_weight.h"
#include "compress/quantize/grid_fit.h"
#include "compress/quantize/input_scaling.h"
#include "compress/transform/methods.h"
#include "tests/support/graph_builder.h"
#include "tests/support/made_rows.h"

namespace ctk::test {
namespace {

using graph::Graph;
using transform::Request;

// B039: feature 20 is twenty times the others.
Graph loud_network() {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 32});
  Floats scale(32, 1.0f);
  scale[20] = 20.0f;
  const auto n = b.node("Mul", {x, b.constant("scale", floats({32}, scale))}, "n");
  b.output(b.node("Gemm", {n, b.constant("w", varied({16, 32}, 2))}, "y", {{"transB", std::int64_t{1}}}));
  return b.graph;
}

// Sum of |x (W - Q(W))^T|^2 over samples no search saw.
double rounding_loss(const Graph& graph, const QuantScheme& scheme) {
  const Tensor w = *graph.value(*graph.find_value("w")).constant;
  const auto form = quantization::grid_form_of(scheme);
  const auto grids = quantization::fit_grids(w.values<float>(), 16, 32, form, quantization::GridFit::squared_error, {});
  const auto codes = quantization::round_to_grids(w.values<float>(), 16, 32, form, grids);
  const auto back = quantization::dequantize(codes, 16, 32, form, grids);
  const auto run = interpret(graph, {varied({50, 32}, 999)});
  const auto n = run->values.at("n").values<float>();
  double loss = 0;
  for (std::size_t t = 0; t < 50; ++t) {
    for (std::size_t r = 0; r < 16; ++r) {
      double miss = 0;
      for (std::size_t c = 0; c < 32; ++c)
        miss +=
            static_cast<double>(n[t * 32 + c]) * static_cast<double>(w.values<float>()[r * 32 + c] - back[r * 32 + c]);
      loss += miss * miss;
    }
  }
  return loss;
}

TEST(AwqTransform, HalvesWhatRoundingLosesOnALoudFeature) {
  const Graph graph = loud_network();
  const data::Split split = made_split(graph, {32}, 64);
  const QuantScheme scheme = *parse_scheme("w4a16_g32");
  const Request request{graph, {{1, 32}}, {{"Gemm_y", scheme}}, &split, {}, {}};
  const auto found = transform::find_method("awq")->run(request);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->rows.size(), 1u);
  EXPECT_EQ(found->rows[0].where, "Mul_n");
  EXPECT_LE(*found->rows[0].error_after, 0.5 * *found->rows[0].error_before);
  EXPECT_LE(rounding_loss(found->graph, scheme), 0.5 * rounding_loss(graph, scheme));
}

TEST(AwqTransform, KernelWindowsOfAConvolutionShareTheirChannelsFactor) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 3, 6, 6});
  const auto c = b.node("Conv", {x, b.constant("w", varied({8, 3, 3, 3}, 1))}, "c");
  b.output(b.node("Conv", {b.node("Relu", {c}, "r"), b.constant("v", varied({4, 8, 3, 3}, 2))}, "d"));
  const data::Split split = made_split(b.graph, {3, 6, 6}, 16);
  Tensor& w = *b.graph.value(*b.graph.find_value("w")).constant;
  for (std::size_t i = 0; i < 27; ++i) w.mutable_values<float>()[5 * 27 + i] *= 30;  // channel 5 is loud
  const Request request{b.graph, {{1, 3, 6, 6}}, {{"Conv_d", *parse_scheme("w4a16_c")}}, &split, {}, {}};
  const auto found = transform::find_method("awq")->run(request);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->rows[0].where, "Conv_c");
  EXPECT_LT(*found->rows[0].error_after, *found->rows[0].error_before);
  const auto before = b.graph.value(*b.graph.find_value("v")).constant->values<float>();
  const auto after = found->graph.value(*found->graph.find_value("v")).constant->values<float>();
  for (std::size_t channel = 0; channel < 8; ++channel) {
    const float factor = after[channel * 9] / before[channel * 9];
    for (std::size_t i = 1; i < 9; ++i)
      EXPECT_NEAR(after[channel * 9 + i] / before[channel * 9 + i], factor, 1e-5f * factor);
  }
  const Tensor input = varied({2, 3, 6, 6}, 77);
  const auto a = interpret(b.graph, {input}), z = interpret(found->graph, {input});
  float largest = 0;
  for (const float value : a->outputs[0].values<float>()) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < a->outputs[0].size(); ++i)
    EXPECT_NEAR(a->outputs[0].values<float>()[i], z->outputs[0].values<float>()[i], 1e-5f * largest);
}

}  // namespace
}  // namespace ctk::test

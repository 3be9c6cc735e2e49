// What walk_layers() gathers, against sums over values that the plain interpreter computes.
#include "compress/quantize/layer_inputs.h"

#include <gtest/gtest.h>

#include <cstring>

#include "compress/quantize/rank_bytes.h"
#include "tests/support/graph_builder.h"
#include "tests/support/made_rows.h"
#include "tests/support/thread_ranks.h"

namespace ctk::test {
namespace {

using graph::Graph;
using graph::Layer;
using quantization::LayerInputs;

constexpr std::size_t kSamples = 5;

data::Split split_of(const Graph& graph, const Shape& sample) {
  return made_split(graph, sample, kSamples);
}

// Conv (strides, dilation, padding) -> Relu -> Flatten -> Gemm.
Graph network() {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 2, 7, 6});
  const auto w = b.constant("w", varied({3, 2, 3, 2}, 7));
  const auto c =
      b.node("Conv", {x, w}, "c", {{"pads", Ints{1, 0, 2, 1}}, {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}});
  const auto f = b.node("Flatten", {b.node("Relu", {c}, "r")}, "f");
  const auto v = b.constant("v", varied({4, 3 * 4 * 5}, 9));
  b.output(b.node("Gemm", {f, v}, "y", {{"transB", std::int64_t{1}}}));
  return b.graph;
}

double energy(const Tensor& weight, std::span<const float> moment, std::size_t channel, std::size_t k) {
  const float* w = weight.values<float>().data() + channel * k;
  double sum = 0;
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j) sum += static_cast<double>(w[i]) * moment[i * k + j] * w[j];
  return sum;
}

TEST(LayerInputs, MomentsGiveTheOutputsTheirEnergy) {
  const Graph original = network();
  Graph coded = original.clone();
  const data::Split split = split_of(original, {2, 7, 6});
  // Squares of the convolution's outputs by channel, over the samples that are not held out (the last one is).
  std::vector<double> expected(3, 0.0), held_out(3, 0.0);
  for (std::size_t s = 0; s < kSamples; ++s) {
    const auto run = interpret(original, split.read(s, s + 1)->inputs);
    ASSERT_TRUE(run) << run.error().message;
    const Tensor& c = run->values.at("c");
    const std::size_t plane = c.size() / 3;
    for (std::size_t i = 0; i < c.size(); ++i) {
      const double v = static_cast<double>(c.values<float>()[i]);
      (s + 1 == kSamples ? held_out : expected)[i / plane] += v * v;
    }
  }
  std::vector<std::string> seen;
  const auto code = [&](Graph& graph, const std::vector<Layer>& layers, LayerInputs& inputs) -> Status {
    seen.push_back(graph.address(layers[0].node));
    if (seen.size() > 1) return {};
    const Tensor& weight = *original.value(layers[0].weight).constant;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      EXPECT_NEAR(energy(weight, inputs.coded.finish(), channel, 12), expected[channel], 1e-4 * expected[channel]);
      EXPECT_NEAR(energy(weight, inputs.cross.finish(), channel, 12), expected[channel], 1e-4 * expected[channel]);
      EXPECT_NEAR(energy(weight, inputs.held_out.finish(), channel, 12), held_out[channel], 1e-4 * held_out[channel]);
    }
    return {};
  };
  const Status walked = quantization::walk_layers(original, coded, {"Conv_c", "Gemm_y"}, split, {}, code);
  ASSERT_TRUE(walked) << walked.error().message;
  EXPECT_EQ(seen, (std::vector<std::string>{"Conv_c", "Gemm_y"}));
}

TEST(LayerInputs, LaterLayersSeeWhatCodedOnesLeaveThem) {
  const Graph original = network();
  Graph coded = original.clone();
  const data::Split split = split_of(original, {2, 7, 6});
  quantization::WalkOptions options;
  options.hold_out_every = 0;
  const auto code = [&](Graph& graph, const std::vector<Layer>& layers, LayerInputs& inputs) -> Status {
    if (graph.address(layers[0].node) == "Conv_c") {  // every weight is 1 from here on
      QuantTensor ones;
      ones.scheme = {8, 16, Granularity::per_tensor, 0};
      ones.codes = pack_codes({3, 2, 3, 2}, std::vector<std::int8_t>(36, 1), 8);
      ones.scales = {1.0f};
      graph.value(layers[0].weight).constant.reset();
      graph.value(layers[0].weight).quantized = std::make_shared<const QuantTensor>(ones);
      return {};
    }
    std::vector<double> expected(60 * 60, 0.0), crossed(60 * 60, 0.0);
    for (std::size_t s = 0; s < kSamples; ++s) {
      const auto inputs_of = split.read(s, s + 1)->inputs;
      const Tensor before = interpret(original, inputs_of)->values.at("f"),
                   after = interpret(graph, inputs_of)->values.at("f");
      for (std::size_t i = 0; i < 60; ++i) {
        for (std::size_t j = 0; j < 60; ++j) {
          expected[i * 60 + j] += static_cast<double>(after.values<float>()[i]) * after.values<float>()[j];
          crossed[i * 60 + j] += static_cast<double>(after.values<float>()[i]) * before.values<float>()[j];
        }
      }
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(inputs.coded.finish()[i], expected[i], 1e-3) << i;
      EXPECT_NEAR(inputs.cross.finish()[i], crossed[i], 1e-3) << i;
    }
    return {};
  };
  const Status walked = quantization::walk_layers(original, coded, {"Conv_c", "Gemm_y"}, split, options, code);
  ASSERT_TRUE(walked) << walked.error().message;
}

// 5 samples over 2 ranks and over 8: some have fewer, some none.
TEST(LayerInputs, OnSeveralRanksEveryOneHasTheMomentsOfOne) {
  const Graph original = network();
  const data::Split split = split_of(original, {2, 7, 6});
  using Moments = std::vector<std::vector<float>>;
  const auto walk = [&](Ranks& ranks) {
    Graph coded = original.clone();
    Moments found;
    quantization::WalkOptions options;
    options.ranks = &ranks;
    const auto code = [&](Graph&, const std::vector<Layer>&, LayerInputs& inputs) -> Status {
      for (const auto sum : {inputs.coded.finish(), inputs.held_out.finish(), inputs.cross.finish()}) {
        found.emplace_back(sum.begin(), sum.end());
      }
      return {};
    };
    const Status walked = quantization::walk_layers(original, coded, {"Conv_c", "Gemm_y"}, split, options, code);
    EXPECT_TRUE(walked) << walked.error().message;
    return found;
  };
  const Moments one = walk(alone());
  ASSERT_EQ(one.size(), 6u);
  for (const int size : {2, 8}) {
    for (const Moments& found : on_ranks<Moments>(size, walk)) EXPECT_EQ(found, one);
  }
}

TEST(RankBytes, OutcomesAndValuesComeBackBitForBit) {
  quantization::WeightOutcome outcome;
  outcome.tensor.scheme = parse_scheme("w4a8_c").value();
  outcome.tensor.channel_axis = 1;
  outcome.tensor.codes = pack_codes({3, 2}, std::vector<std::int8_t>{-8, 7, 0, 1, -1, 3}, 4);
  outcome.tensor.scales = {0.1f, -3e-38f};
  outcome.tensor.zeros = {-128, 127};
  outcome.tensor.method = "gptq";
  outcome.squared_error = 0.1;
  outcome.raised_scales = 2;
  outcome.receipt = quantization::InputReceipt{7, 1, 0.01, 3, 0.2, 1.0 / 3, true};
  const auto back = quantization::decode(quantization::encode({&outcome, 1})).value();
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(to_string(back[0].tensor.scheme), "w4a8_c");
  EXPECT_EQ(back[0].tensor.channel_axis, 1);
  EXPECT_EQ(unpack_codes(back[0].tensor), unpack_codes(outcome.tensor));
  EXPECT_EQ(back[0].tensor.scales, outcome.tensor.scales);
  EXPECT_EQ(back[0].tensor.zeros, outcome.tensor.zeros);
  EXPECT_EQ(back[0].tensor.method, "gptq");
  EXPECT_EQ(back[0].squared_error, 0.1);
  EXPECT_EQ(back[0].raised_scales, 2);
  ASSERT_TRUE(back[0].receipt);
  EXPECT_EQ(back[0].receipt->error, 1.0 / 3);
  EXPECT_TRUE(back[0].receipt->fell_back);
  EXPECT_FALSE(quantization::decode("torn"));

  const Tensor values[] = {varied({2, 3}, 1), Tensor::scalar(1.5f), Tensor::zeros(DType::i64, {0, 4}).value()};
  const auto tensors = quantization::decode_tensors(quantization::encode_tensors(values)).value();
  ASSERT_EQ(tensors.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tensors[i].shape(), values[i].shape());
    EXPECT_EQ(std::memcmp(tensors[i].data(), values[i].data(), values[i].bytes()), 0);
  }
  EXPECT_FALSE(quantization::decode_tensors(quantization::encode_tensors(values).substr(0, 30)));
}

}  // namespace
}  // namespace ctk::test

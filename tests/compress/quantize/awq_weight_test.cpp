// Rounding fitted to what outputs lose: where one input is loud its weights keep more; where none is, rounding stays.
#include "compress/quantize/awq_weight.h"

#include <gtest/gtest.h>

#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/rtn.h"
#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

using quantization::LayerInputs;
using quantization::WeightOutcome;
using quantization::WeightRequest;

constexpr std::size_t kInputs = 32, kOutputs = 8;

Tensor rows_of(std::size_t count, float loud, unsigned seed) {
  Tensor rows = varied({static_cast<std::int64_t>(count), kInputs}, seed);
  for (std::size_t t = 0; t < count; ++t) rows.mutable_values<float>()[t * kInputs + 20] *= loud;
  return rows;
}

double loss(const Tensor& weight, const WeightOutcome& outcome, const Tensor& rows) {
  const Tensor back = dequantize(outcome.tensor);
  double sum = 0;
  for (std::size_t t = 0; t < rows.size() / kInputs; ++t) {
    for (std::size_t r = 0; r < kOutputs; ++r) {
      double miss = 0;
      for (std::size_t c = 0; c < kInputs; ++c)
        miss += static_cast<double>(rows.values<float>()[t * kInputs + c]) *
                static_cast<double>(weight.values<float>()[r * kInputs + c] - back.values<float>()[r * kInputs + c]);
      sum += miss * miss;
    }
  }
  return sum;
}

TEST(AwqWeight, LosesLessThanRoundingOnRowsItNeverSaw) {
  LayerInputs inputs(kInputs);
  ASSERT_TRUE(inputs.coded.add(rows_of(400, 20, 1).values<float>()));
  ASSERT_TRUE(inputs.held_out.add(rows_of(100, 20, 2).values<float>()));
  WeightRequest request;
  request.weight = varied({kOutputs, kInputs}, 5);
  request.scheme = *parse_scheme("w3a16_g32");
  request.inputs = &inputs;
  const auto fitted = quantization::quantize_by_awq(request);
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_EQ(fitted->tensor.method, "awq");
  EXPECT_EQ(fitted->receipt->rows, 400);
  EXPECT_EQ(fitted->receipt->held_out_rows, 100);
  EXPECT_LT(fitted->receipt->error, fitted->receipt->error_rounding);
  const auto plain = quantization::quantize_rtn(request);
  ASSERT_TRUE(plain);
  const Tensor unseen = rows_of(200, 20, 9);
  EXPECT_LT(loss(request.weight, *fitted, unseen), 0.6 * loss(request.weight, *plain, unseen));
}

TEST(AwqWeight, KeepsRoundingWhereHeldOutRowsSayOtherwise) {
  LayerInputs inputs(kInputs);
  ASSERT_TRUE(inputs.coded.add(rows_of(400, 20, 1).values<float>()));
  ASSERT_TRUE(inputs.held_out.add(rows_of(100, 0.01f, 2).values<float>()));  // the loud input is silent there
  WeightRequest request;
  request.weight = varied({kOutputs, kInputs}, 5);
  request.scheme = *parse_scheme("w3a16_g32");
  request.inputs = &inputs;
  const auto found = quantization::quantize_by_awq(request);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->tensor.method, "rtn");
  EXPECT_TRUE(found->receipt->fell_back);
}

TEST(AwqWeight, RefusesOneScaleForAWholeTensor) {
  LayerInputs inputs(kInputs);
  WeightRequest request;
  request.weight = varied({kOutputs, kInputs}, 5);
  request.scheme = *parse_scheme("w8a8_t");
  request.inputs = &inputs;
  const auto refused = quantization::quantize_by_awq(request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("w8a8_t"), std::string::npos);
}

}  // namespace
}  // namespace ctk::test

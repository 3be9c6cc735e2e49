#include <algorithm>

#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

constexpr float kLn3 = 1.0986123f;  // exp(kLn3) = 3: against a score of 0 the weights are 1/4 and 3/4
const AttributeList kUnscaled = {{"scale", 1.0f}};

TEST(Attention, WeighsValuesByTheSoftmaxOfScores) {
  const auto k = f32({1, 1, 2, 1}, {0, kLn3});
  const auto v = f32({1, 1, 2, 1}, {0, 4});
  expect_f32(run_one("Attention", {filled({1, 1, 1, 1}, 1.0f), k, v}, kUnscaled), {1, 1, 1, 1}, {3}, 1e-6f);
}

TEST(Attention, ScalesByTheRootOfTheHeadSizeUnlessToldOtherwise) {
  // Four equal products of kLn3 / 2 make 2 kLn3, times 1 / sqrt(4): kLn3.
  const auto k = f32({1, 1, 2, 4}, {0, 0, 0, 0, kLn3 / 2, kLn3 / 2, kLn3 / 2, kLn3 / 2});
  expect_f32(run_one("Attention", {filled({1, 1, 1, 4}, 1.0f), k, f32({1, 1, 2, 1}, {0, 4})}), {1, 1, 1, 1}, {3},
             1e-6f);
}

TEST(Attention, CausalQueriesSeeThemselvesAndWhatIsBefore) {
  // Equal scores: the mean of 2; of 2, 6; of 2, 6, 13.
  expect_f32(
      run_one("Attention", {filled({1, 3, 1}, 0.0f), filled({1, 3, 1}, 0.0f), f32({1, 3, 1}, {2, 6, 13})},
              {{"is_causal", std::int64_t{1}}, {"q_num_heads", std::int64_t{1}}, {"kv_num_heads", std::int64_t{1}}}),
      {1, 3, 1}, {2, 4, 7}, 1e-6f);
}

TEST(Attention, JoinsTheCacheBeforeTheNewKeysAndTellsBoth) {
  const auto outputs = run_op("Attention",
                              {filled({1, 1, 2, 1}, 0.0f), f32({1, 1, 2, 1}, {8, 9}), f32({1, 1, 2, 1}, {20, 60}),
                               kOmitted, f32({1, 1, 1, 1}, {7}), f32({1, 1, 1, 1}, {10})},
                              {{"is_causal", std::int64_t{1}}}, 3);
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  expect_f32((*outputs)[0], {1, 1, 2, 1}, {15, 30}, 1e-5f);  // (10 + 20) / 2, (10 + 20 + 60) / 3
  expect_f32((*outputs)[1], {1, 1, 3, 1}, {7, 8, 9});
  expect_f32((*outputs)[2], {1, 1, 3, 1}, {10, 20, 60});
}

TEST(Attention, PresentOfThreeDimensionsHasHeadsApart) {
  // Two tokens of two heads.
  const auto outputs =
      run_op("Attention", {filled({1, 2, 2}, 0.0f), f32({1, 2, 2}, {1, 2, 3, 4}), f32({1, 2, 2}, {5, 6, 7, 8})},
             {{"q_num_heads", std::int64_t{2}}, {"kv_num_heads", std::int64_t{2}}}, 3);
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  expect_f32((*outputs)[0], {1, 2, 2}, {6, 7, 6, 7}, 1e-6f);
  expect_f32((*outputs)[1], {1, 2, 2, 1}, {1, 3, 2, 4});
  expect_f32((*outputs)[2], {1, 2, 2, 1}, {5, 7, 6, 8});
}

TEST(Attention, NeighbouringQueryHeadsShareAHeadOfKeys) {
  // One token: each head gives the value of its group. Heads 8 and kv heads 2: 8 / 2 is not 2 (FAULTS B022).
  expect_f32(run_one("Attention", {filled({1, 1, 8}, 0.0f), filled({1, 1, 2}, 0.0f), f32({1, 1, 2}, {5, 7})},
                     {{"q_num_heads", std::int64_t{8}}, {"kv_num_heads", std::int64_t{2}}}),
             {1, 1, 8}, {5, 5, 5, 5, 7, 7, 7, 7});
}

TEST(Attention, MasksHideOrAreAdded) {
  const auto q = filled({1, 1, 2, 1}, 0.0f), k = filled({1, 1, 3, 1}, 0.0f), v = f32({1, 1, 3, 1}, {2, 6, 13});
  expect_f32(run_one("Attention", {q, k, v, booleans({2, 3}, {1, 1, 0, 0, 1, 0})}), {1, 1, 2, 1}, {4, 6}, 1e-6f);
  expect_f32(run_one("Attention", {q, k, v, f32({3}, {0, kLn3, -kInfinity})}), {1, 1, 2, 1}, {5, 5}, 1e-6f);
}

TEST(Attention, MaskOfEachHeadAndBatchIsItsOwn) {
  const auto q = filled({2, 2, 1, 1}, 0.0f), k = filled({2, 2, 2, 1}, 0.0f);
  const auto v = f32({2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_f32(run_one("Attention", {q, k, v, booleans({2, 2, 1, 2}, {1, 0, 0, 1, 0, 1, 1, 0})}), {2, 2, 1, 1},
             {1, 4, 6, 7});
  expect_f32(run_one("Attention", {q, k, v, booleans({2, 1, 2}, {1, 0, 0, 1})}), {2, 2, 1, 1}, {1, 4, 5, 8});
}

TEST(Attention, KeysPastAShortMaskAreHidden) {
  expect_f32(run_one("Attention", {filled({1, 1, 1, 1}, 0.0f), filled({1, 1, 3, 1}, 0.0f),
                                   f32({1, 1, 3, 1}, {2, 6, 13}), filled({1, 1, 1, 2}, 0.0f)}),
             {1, 1, 1, 1}, {4}, 1e-6f);
}

TEST(Attention, QueryThatSeesNothingGivesZero) {
  expect_f32(run_one("Attention", {filled({1, 1, 1, 1}, 0.0f), filled({1, 1, 2, 1}, 0.0f), filled({1, 1, 2, 1}, 3.0f),
                                   booleans({1, 2}, {0, 0})}),
             {1, 1, 1, 1}, {0});
}

TEST(Attention, CountsOnlyTheKeysThatAreNoPadding) {
  const auto q = filled({2, 1, 1, 1}, 0.0f), k = filled({2, 1, 3, 1}, 0.0f);
  const auto v = f32({2, 1, 3, 1}, {2, 6, 13, 2, 6, 13});
  expect_f32(run_one("Attention", {q, k, v, kOmitted, kOmitted, kOmitted, i64({2}, {2, 3})}), {2, 1, 1, 1}, {4, 7},
             1e-6f);
}

TEST(Attention, SoftcapBendsScoresBeforeTheMask) {
  // cap tanh(1000 / cap) = cap = ln 3.
  const auto k = f32({1, 1, 3, 1}, {0, 1000, 1000});
  expect_f32(
      run_one("Attention", {filled({1, 1, 1, 1}, 1.0f), k, f32({1, 1, 3, 1}, {0, 4, 99}), f32({3}, {0, 0, -kInfinity})},
              {{"scale", 1.0f}, {"softcap", kLn3}}),
      {1, 1, 1, 1}, {3}, 1e-6f);
}

TEST(Attention, LongRowsAreTheSameSoftmax) {
  // Scores t ln 2: weights 2^t, so the mean of t is 199 - sum j 2^-j / sum 2^-j = 199 - 1 = 198.
  std::vector<float> scores(200), values(200);
  for (std::size_t t = 0; t < 200; ++t) {
    scores[t] = static_cast<float>(t) * 0.6931472f;
    values[t] = static_cast<float>(t);
  }
  const auto q = filled({1, 1, 1, 1}, 1.0f);
  expect_f32(run_one("Attention", {q, f32({1, 1, 200, 1}, scores), f32({1, 1, 200, 1}, values)}, kUnscaled),
             {1, 1, 1, 1}, {198}, 2e-3f);
  // Falling scores: the mean is 1, from the first chunk alone.
  std::reverse(scores.begin(), scores.end());
  expect_f32(run_one("Attention", {q, f32({1, 1, 200, 1}, scores), f32({1, 1, 200, 1}, values)}, kUnscaled),
             {1, 1, 1, 1}, {1}, 1e-4f);
}

TEST(Attention, NanAndInfiniteScoresMakeTheirQueryNan) {
  const auto k = filled({1, 1, 2, 1}, 1.0f), v = filled({1, 1, 2, 1}, 1.0f);
  expect_f32(run_one("Attention", {f32({1, 1, 3, 1}, {kNaN, kInfinity, 1}), k, v}), {1, 1, 3, 1}, {kNaN, kNaN, 1});
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  const auto q = unknown(DType::f32, {1, 4, 5, 8}), k = unknown(DType::f32, {1, 2, 5, 8});
  expect_input_error(infer_op("Attention", {q, unknown(DType::f32, {1, 3, 5, 8}), unknown(DType::f32, {1, 3, 5, 8})}),
                     {"heads", "multiple", "found 4 and 3"});
  expect_input_error(infer_op("Attention", {q, k, unknown(DType::f32, {1, 2, 6, 8})}), {"V:", "found shape [1,2,6,8]"});
  expect_input_error(infer_op("Attention", {q, unknown(DType::f32, {1, 2, 5, 4}), k}), {"K:", "found shape [1,2,5,4]"});
  expect_input_error(infer_op("Attention", {q, unknown(DType::f32, {1, 5, 16}), k}), {"K:", "dimensions"});
  expect_input_error(infer_op("Attention", {q, k, k, unknown(DType::boolean, {4, 5})}),
                     {"attn_mask", "[1,4,5,5]", "[4,5]"});
  expect_input_error(infer_op("Attention", {q, k, k, {}, k}), {"past_key", "both"});
  expect_input_error(
      infer_op("Attention", {q, k, k, {}, unknown(DType::f32, {1, 2, 3, 8}), unknown(DType::f32, {1, 2, 4, 8})}),
      {"past_value", "[1,2,3,8]", "[1,2,4,8]"});
  expect_input_error(infer_op("Attention", {q, k, k}, {{"qk_matmul_output_mode", std::int64_t{1}}}),
                     {"qk_matmul_output_mode", "found 1"});
  expect_input_error(infer_op("Attention", {q, k, k}, {{"softcap", -1.0f}}), {"softcap", "0 or more"});
  const auto flat = unknown(DType::f32, {1, 5, 16});
  expect_input_error(infer_op("Attention", {flat, flat, flat}, {{"q_num_heads", std::int64_t{4}}}),
                     {"kv_num_heads", "divisor of 16", "found 0"});
}

}  // namespace
}  // namespace ctk::graph::test

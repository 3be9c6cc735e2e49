#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

// A quarter turn takes (a, b) to (-b, a).
TEST(RotaryEmbedding, TurnsElementsHalfAHeadApart) {
  // Pair (1, 3) by a quarter, pair (2, 4) not at all.
  expect_f32(
      run_one("RotaryEmbedding", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), f32({1, 1, 2}, {0, 1}), f32({1, 1, 2}, {1, 0})}),
      {1, 1, 1, 4}, {-3, 2, 1, 4});
}

TEST(RotaryEmbedding, InterleavedTurnsNeighbours) {
  // Pair (1, 2) by a quarter, pair (3, 4) not at all.
  expect_f32(
      run_one("RotaryEmbedding", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), f32({1, 1, 2}, {0, 1}), f32({1, 1, 2}, {1, 0})},
              {{"interleaved", std::int64_t{1}}}),
      {1, 1, 1, 4}, {-2, 1, 3, 4});
}

TEST(RotaryEmbedding, TakesThePositionsRowForAllHeadsOfAToken) {
  // Two heads of size 2; row 0 turns not at all, row 1 by a quarter; token 0 is at position 1, token 1 at 0.
  expect_f32(
      run_one("RotaryEmbedding",
              {f32({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), f32({2, 1}, {1, 0}), f32({2, 1}, {0, 1}), i64({1, 2}, {1, 0})},
              {{"num_heads", std::int64_t{2}}}),
      {1, 2, 4}, {-2, 1, -4, 3, 5, 6, 7, 8});
}

TEST(RotaryEmbedding, FourDimensionsHaveHeadsBeforeTokens) {
  // As above, the same numbers as [batch, heads, tokens, size].
  expect_f32(run_one("RotaryEmbedding", {f32({1, 2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8}), f32({2, 1}, {1, 0}),
                                         f32({2, 1}, {0, 1}), i64({1, 2}, {1, 0})}),
             {1, 2, 2, 2}, {-2, 1, 5, 6, -4, 3, 7, 8});
}

TEST(RotaryEmbedding, LeavesWhatLiesBehindTheRotaryPart) {
  expect_f32(run_one("RotaryEmbedding", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), f32({1, 1, 1}, {0}), f32({1, 1, 1}, {1})},
                     {{"rotary_embedding_dim", std::int64_t{2}}}),
             {1, 1, 1, 4}, {-2, 1, 3, 4});
}

TEST(RotaryEmbedding, RefusesPositionsPastTheTable) {
  for (const std::int64_t position : {std::int64_t{2}, std::int64_t{-1}}) {
    expect_input_error(run_op("RotaryEmbedding", {f32({1, 1, 1, 2}, {1, 2}), f32({2, 1}, {1, 0}), f32({2, 1}, {0, 1}),
                                                  i64({1, 1}, {position})}),
                       {"position_ids", "below 2", "found " + std::to_string(position)});
  }
}

TEST(RotaryEmbedding, RefusesShapesThatDoNotFit) {
  const auto x = unknown(DType::f32, {1, 5, 12});
  const auto table = unknown(DType::f32, {8, 3});
  const auto ids = unknown(DType::i64, {1, 5});
  expect_input_error(infer_op("RotaryEmbedding", {x, table, table, ids}), {"num_heads", "divisor of 12", "found 0"});
  expect_input_error(infer_op("RotaryEmbedding", {x, table, table, ids}, {{"num_heads", std::int64_t{5}}}),
                     {"num_heads", "found 5"});
  expect_input_error(infer_op("RotaryEmbedding", {x, table, table, ids}, {{"num_heads", std::int64_t{3}}}),
                     {"cos_cache", "[8,2]", "found [8,3]"});
  expect_input_error(infer_op("RotaryEmbedding", {x, table, table, ids}, {{"num_heads", std::int64_t{4}}}),
                     {"rotary_embedding_dim", "even", "found 3"});
  expect_input_error(
      infer_op("RotaryEmbedding", {x, table, table, unknown(DType::i64, {1, 4})}, {{"num_heads", std::int64_t{2}}}),
      {"position_ids", "[1,5]", "found [1,4]"});
}

}  // namespace
}  // namespace ctk::graph::test

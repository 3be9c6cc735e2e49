#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(PRelu, SlopeRunsOverChannels) {
  expect_f32(run_one("PRelu", {f32({1, 2, 2}, {-1, 2, -3, 4}), f32({2, 1}, {0.5f, 10})}), {1, 2, 2},
             {-0.5f, 2, -30, 4});
}

TEST(PRelu, OneSlopeServesAll) {
  expect_f32(run_one("PRelu", {f32({2, 2}, {-1, 2, -3, 4}), f32({1}, {2})}), {2, 2}, {-2, 2, -6, 4});
}

TEST(PRelu, RefusesSlopeThatWouldGrowTheOutput) {
  expect_input_error(infer_op("PRelu", {unknown(DType::f32, {2, 1}), unknown(DType::f32, {2, 3})}),
                     {"slope", "[2,1]", "found [2,3]"});
}

}  // namespace
}  // namespace ctk::graph::test

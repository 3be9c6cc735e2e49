#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Relu, CutsNegativesAndKeepsNaN) {
  expect_f32(run_one("Relu", {f32({5}, {-2, 0, 3, -kInfinity, kNaN})}), {5}, {0, 0, 3, 0, kNaN});
}

TEST(Relu, KnownInputGivesKnownOutput) {
  const auto infos = infer_op("Relu", {known(f32({2}, {-1, 2}))});
  ASSERT_TRUE(infos.has_value());
  ASSERT_TRUE((*infos)[0].constant.has_value());
  expect_f32(*(*infos)[0].constant, {2}, {0, 2});
}

TEST(Relu, DoesNotFollowLargeContents) {
  const auto infos = infer_op("Relu", {known(filled({1025}, 1.0f))});
  ASSERT_TRUE(infos.has_value());
  EXPECT_FALSE((*infos)[0].constant.has_value());
}

TEST(Relu, RefusesHalfPrecisionAndMissingInput) {
  expect_input_error(infer_op("Relu", {unknown(DType::f16, {2})}), {"expected f32, found f16"});
  expect_input_error(infer_op("Relu", {}), {"input 0 missing"});
}

}  // namespace
}  // namespace ctk::graph::test

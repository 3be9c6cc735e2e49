#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Clip, LimitsToBothBounds) {
  expect_f32(run_one("Clip", {f32({4}, {-1, 3, 7, kNaN}), f32({}, {0}), f32({}, {6})}), {4}, {0, 3, 6, kNaN});
}

TEST(Clip, EitherBoundMayBeOmitted) {
  const Tensor x = f32({3}, {-1, 3, 7});
  expect_f32(run_one("Clip", {x}), {3}, {-1, 3, 7});
  expect_f32(run_one("Clip", {x, f32({}, {0})}), {3}, {0, 3, 7});
  expect_f32(run_one("Clip", {x, kOmitted, f32({}, {6})}), {3}, {-1, 3, 6});
}

TEST(Clip, MaximumWinsOverALargerMinimum) {
  expect_f32(run_one("Clip", {f32({3}, {0, 4, 9}), f32({}, {5}), f32({}, {2})}), {3}, {2, 2, 2});
}

TEST(Clip, LimitsIntegers) {
  EXPECT_EQ(values_of<std::int64_t>(run_one("Clip", {i64({3}, {-5, 0, 5}), i64({}, {-1}), i64({}, {1})})),
            (Ints{-1, 0, 1}));
}

TEST(Clip, RefusesBoundsThatAreNoScalars) {
  expect_input_error(infer_op("Clip", {unknown(DType::f32, {2}), unknown(DType::f32, {2})}), {"min", "scalar", "[2]"});
  expect_input_error(infer_op("Clip", {unknown(DType::f32, {2}), InferInput{}, unknown(DType::i64, {})}),
                     {"max", "expected f32, found i64"});
}

}  // namespace
}  // namespace ctk::graph::test

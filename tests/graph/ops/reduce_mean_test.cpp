#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(ReduceMean, AveragesOverAnyAxes) {
  const Tensor x = counting({2, 3, 2});  // rows (1 2)(3 4)(5 6) and (7 8)(9 10)(11 12)
  expect_f32(run_one("ReduceMean", {x, i64({1}, {1})}), {2, 1, 2}, {3, 4, 9, 10});
  expect_f32(run_one("ReduceMean", {x, i64({2}, {0, -1})}), {1, 3, 1}, {4.5f, 6.5f, 8.5f});
  expect_f32(run_one("ReduceMean", {x, i64({1}, {-1})}, {{"keepdims", std::int64_t{0}}}), {2, 3},
             {1.5f, 3.5f, 5.5f, 7.5f, 9.5f, 11.5f});
}

TEST(ReduceMean, NoAxesMeansAllOrNone) {
  const Tensor x = counting({2, 2});
  const AttributeList none = {{"noop_with_empty_axes", std::int64_t{1}}};
  expect_f32(run_one("ReduceMean", {x}), {1, 1}, {2.5f});
  expect_f32(run_one("ReduceMean", {x}, {{"keepdims", std::int64_t{0}}}), {}, {2.5f});
  expect_f32(run_one("ReduceMean", {x, i64({0}, {})}), {1, 1}, {2.5f});
  expect_f32(run_one("ReduceMean", {x}, none), {2, 2}, {1, 2, 3, 4});
  expect_f32(run_one("ReduceMean", {x, i64({0}, {})}, none), {2, 2}, {1, 2, 3, 4});
}

TEST(ReduceMean, RepeatedAxesCountOnce) {
  expect_f32(run_one("ReduceMean", {counting({2, 2}), i64({2}, {1, -1})}), {2, 1}, {1.5f, 3.5f});
}

TEST(ReduceMean, RefusesUnknownOrForeignAxesAndEmptyMeans) {
  const auto x = unknown(DType::f32, {2, 2});
  expect_input_error(infer_op("ReduceMean", {x, unknown(DType::i64, {1})}), {"axes", "known before the run"});
  expect_input_error(infer_op("ReduceMean", {x, known(i64({1}, {2}))}), {"axis", "found 2"});
  expect_input_error(infer_op("ReduceMean", {unknown(DType::f32, {2, 0})}), {"[2,0]"});
}

}  // namespace
}  // namespace ctk::graph::test

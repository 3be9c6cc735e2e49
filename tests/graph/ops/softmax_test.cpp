#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Softmax, DefaultsToTheLastAxis) {
  // exp(0) : exp(ln 3) = 1 : 3
  const float ln3 = 1.0986122887f;
  expect_f32(run_one("Softmax", {f32({2, 2}, {0, ln3, ln3, 0})}), {2, 2}, {0.25f, 0.75f, 0.75f, 0.25f}, 1e-6f);
}

TEST(Softmax, RunsAlongAnyAxis) {
  const float ln3 = 1.0986122887f;
  expect_f32(run_one("Softmax", {f32({2, 2}, {0, ln3, ln3, ln3})}, {{"axis", std::int64_t{0}}}), {2, 2},
             {0.25f, 0.5f, 0.75f, 0.5f}, 1e-6f);
  expect_f32(run_one("Softmax", {f32({2, 2}, {0, ln3, ln3, ln3})}, {{"axis", std::int64_t{-2}}}), {2, 2},
             {0.25f, 0.5f, 0.75f, 0.5f}, 1e-6f);
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  expect_f32(run_one("Softmax", {f32({3}, {1000, 1000, -1000})}), {3}, {0.5f, 0.5f, 0});
}

TEST(Softmax, RefusesAxisOutsideTheRank) {
  expect_input_error(infer_op("Softmax", {unknown(DType::f32, {2, 2})}, {{"axis", std::int64_t{2}}}),
                     {"axis", "found 2"});
}

}  // namespace
}  // namespace ctk::graph::test

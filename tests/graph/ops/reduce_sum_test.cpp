#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(ReduceSum, SumsOverAnyAxes) {
  const Tensor x = counting({2, 3});
  expect_f32(run_one("ReduceSum", {x, i64({1}, {0})}), {1, 3}, {5, 7, 9});
  expect_f32(run_one("ReduceSum", {x, i64({1}, {1})}, {{"keepdims", std::int64_t{0}}}), {2}, {6, 15});
  expect_f32(run_one("ReduceSum", {x}), {1, 1}, {21});
}

TEST(ReduceSum, SumsIntegersAndFollowsShapes) {
  EXPECT_EQ(values_of<std::int64_t>(run_one("ReduceSum", {i64({3}, {1, 2, 3}), i64({1}, {0})})), (Ints{6}));
  const auto infos = infer_op("ReduceSum", {known(i64({3}, {1, 2, 3}))}, {{"keepdims", std::int64_t{0}}});
  ASSERT_TRUE(infos.has_value());
  ASSERT_TRUE((*infos)[0].constant.has_value());
  EXPECT_EQ(values_of<std::int64_t>(*(*infos)[0].constant), (Ints{6}));
}

TEST(ReduceSum, SumOverNothingIsZero) {
  expect_f32(run_one("ReduceSum", {f32({2, 0}, {}), i64({1}, {1})}), {2, 1}, {0, 0});
}

TEST(ReduceSum, AgreesWithDirectIndexingOverEveryAxisSet) {
  const Shape shape = {2, 3, 1, 4};
  const Tensor x = counting(shape);
  for (unsigned mask = 1; mask < 16; ++mask) {
    Ints axes;
    Shape out = shape;
    for (unsigned d = 0; d < 4; ++d) {
      if ((mask >> d & 1) == 0) continue;
      axes.push_back(d);
      out[d] = 1;
    }
    std::vector<float> expected(elements(out), 0.0f);
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::size_t rest = i, at = 0, size = 1;
      for (std::size_t d = 4; d-- > 0;) {
        at += out[d] == 1 ? 0 : rest % static_cast<std::size_t>(shape[d]) * size;
        size *= static_cast<std::size_t>(out[d]);
        rest /= static_cast<std::size_t>(shape[d]);
      }
      expected[at] += x.values<float>()[i];
    }
    const auto count = static_cast<std::int64_t>(axes.size());
    expect_f32(run_one("ReduceSum", {x, i64({count}, axes)}), out, expected);
  }
}

}  // namespace
}  // namespace ctk::graph::test

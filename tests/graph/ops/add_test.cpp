#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Add, BroadcastsInEveryDirection) {
  // [1 2 3; 4 5 6] plus a row, a column, a scalar, and a column plus a row.
  const Tensor matrix = counting({2, 3}), row = f32({3}, {10, 20, 30}), column = f32({2, 1}, {100, 200});
  expect_f32(run_one("Add", {matrix, matrix}), {2, 3}, {2, 4, 6, 8, 10, 12});
  expect_f32(run_one("Add", {matrix, row}), {2, 3}, {11, 22, 33, 14, 25, 36});
  expect_f32(run_one("Add", {row, matrix}), {2, 3}, {11, 22, 33, 14, 25, 36});
  expect_f32(run_one("Add", {matrix, column}), {2, 3}, {101, 102, 103, 204, 205, 206});
  expect_f32(run_one("Add", {matrix, f32({}, {1})}), {2, 3}, {2, 3, 4, 5, 6, 7});
  expect_f32(run_one("Add", {f32({1, 1, 1}, {1}), f32({}, {2})}), {1, 1, 1}, {3});
  expect_f32(run_one("Add", {column, row}), {2, 3}, {110, 120, 130, 210, 220, 230});
}

TEST(Add, BroadcastsInsideAndOutside) {
  // [2, 1, 2] + [1, 2, 1]: out[i][j][k] = a[i][k] + b[j]
  expect_f32(run_one("Add", {f32({2, 1, 2}, {1, 2, 3, 4}), f32({1, 2, 1}, {10, 20})}), {2, 2, 2},
             {11, 12, 21, 22, 13, 14, 23, 24});
}

TEST(Add, AgreesWithDirectIndexingOverRandomBroadcasts) {
  // Every way to set dimensions of [2, 3, 1, 2, 2] to one, on either side, against indexing by hand.
  const Shape full = {2, 3, 1, 2, 2};
  for (unsigned mask_a = 0; mask_a < 32; ++mask_a) {
    for (unsigned mask_b = 0; mask_b < 32; ++mask_b) {
      Shape a = full, b = full, out = full;
      for (unsigned d = 0; d < 5; ++d) {
        if (mask_a >> d & 1) a[d] = 1;
        if (mask_b >> d & 1) b[d] = 1;
        out[d] = std::max(a[d], b[d]);
      }
      const Tensor x = counting(a), y = counting(b);
      std::vector<float> expected(elements(out));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        std::size_t rest = i, at_a = 0, at_b = 0, size_a = 1, size_b = 1;
        for (std::size_t d = 5; d-- > 0;) {
          const std::size_t index = rest % static_cast<std::size_t>(out[d]);
          rest /= static_cast<std::size_t>(out[d]);
          at_a += (a[d] == 1 ? 0 : index) * size_a;
          at_b += (b[d] == 1 ? 0 : index) * size_b;
          size_a *= static_cast<std::size_t>(a[d]);
          size_b *= static_cast<std::size_t>(b[d]);
        }
        expected[i] = x.values<float>()[at_a] + 1000 * y.values<float>()[at_b];
      }
      std::vector<float> scaled(y.values<float>().begin(), y.values<float>().end());
      for (float& value : scaled) value *= 1000;
      expect_f32(run_one("Add", {x, f32(b, scaled)}), out, expected);
    }
  }
}

TEST(Add, EmptyBroadcastsToEmpty) {
  expect_f32(run_one("Add", {f32({0, 3}, {}), f32({1, 3}, {1, 2, 3})}), {0, 3}, {});
  expect_f32(run_one("Add", {f32({0}, {}), f32({1}, {1})}), {0}, {});
}

TEST(Add, FollowsShapeArithmetic) {
  const auto infos = infer_op("Add", {known(i64({2}, {3, -1})), known(i64({}, {4}))});
  ASSERT_TRUE(infos.has_value()) << infos.error().message;
  ASSERT_TRUE((*infos)[0].constant.has_value());
  EXPECT_EQ(values_of<std::int64_t>(*(*infos)[0].constant), (Ints{7, 3}));
}

TEST(Add, IntegersWrapAround) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(values_of<std::int64_t>(run_one("Add", {i64({1}, {most}), i64({1}, {1})})),
            (Ints{std::numeric_limits<std::int64_t>::min()}));
}

TEST(Add, RefusesMixedTypesAndShapesThatDoNotBroadcast) {
  expect_input_error(infer_op("Add", {unknown(DType::f32, {2}), unknown(DType::i64, {2})}), {"f32 and i64", "Cast"});
  expect_input_error(infer_op("Add", {unknown(DType::f32, {2}), unknown(DType::f32, {3})}), {"[2]", "[3]"});
  expect_input_error(infer_op("Add", {unknown(DType::f32, Shape(9, 1)), unknown(DType::f32, {1})}),
                     {"0 to 8 dimensions"});
  const std::int64_t large = std::int64_t{1} << 30;
  expect_input_error(infer_op("Add", {unknown(DType::f32, {large, 1}), unknown(DType::f32, {1, large})}), {"2^48"});
}

}  // namespace
}  // namespace ctk::graph::test

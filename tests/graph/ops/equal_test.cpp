#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Equal, ComparesEveryTypeItTakes) {
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(bytes_of(run_one("Equal", {f32({3}, {1, 2, kNaN}), f32({3}, {1, 3, kNaN})})), (Bytes{1, 0, 0}));
  EXPECT_EQ(bytes_of(run_one("Equal", {i64({2}, {1, 2}), i64({}, {2})})), (Bytes{0, 1}));
  EXPECT_EQ(bytes_of(run_one("Equal", {i32({2}, {1, 2}), i32({}, {2})})), (Bytes{0, 1}));
  EXPECT_EQ(bytes_of(run_one("Equal", {booleans({2, 1}, {0, 1}), booleans({2}, {0, 1})})), (Bytes{1, 0, 0, 1}));
}

TEST(Equal, FollowsShapeArithmetic) {
  const auto infos = infer_op("Equal", {known(i64({2}, {-1, 4})), known(i64({}, {-1}))});
  ASSERT_TRUE(infos.has_value());
  EXPECT_EQ((*infos)[0].dtype, DType::boolean);
  ASSERT_TRUE((*infos)[0].constant.has_value());
  EXPECT_EQ(bytes_of(*(*infos)[0].constant), (std::vector<std::uint8_t>{1, 0}));
}

}  // namespace
}  // namespace ctk::graph::test

#include "core/shape.h"

#include <gtest/gtest.h>

namespace ctk {
namespace {

TEST(ElementCount, MultipliesDimensions) {
  EXPECT_EQ(*element_count({}), 1u);
  EXPECT_EQ(*element_count({2, 3, 4}), 24u);
  EXPECT_EQ(*element_count({2, 0, 4}), 0u);
}

TEST(ElementCount, RefusesWhatWouldOverflow) {
  const std::int64_t big = std::int64_t{1} << 62;
  EXPECT_EQ(*element_count({std::int64_t{1} << 24, std::int64_t{1} << 24}), std::size_t{1} << 48);
  for (const Shape& shape :
       {Shape{big, big}, Shape{big, 4}, Shape{(std::int64_t{1} << 48) + 1}, Shape{65536, 65536, 65537}}) {
    const auto count = element_count(shape);
    ASSERT_FALSE(count.has_value());
    EXPECT_EQ(count.error().code, ErrorCode::input);
    EXPECT_NE(count.error().message.find("2^48"), std::string::npos);
  }
  EXPECT_EQ(*element_count({big, big, 0}), 0u);  // empty, however large the others are
}

TEST(ElementCount, RefusesNegativeDimensionsEvenBesideAZero) {
  ASSERT_FALSE(element_count({2, -1}).has_value());
  ASSERT_FALSE(element_count({0, -1}).has_value());
  EXPECT_NE(element_count({2, -1}).error().message.find("[2,-1]"), std::string::npos);
}

TEST(ByteSize, RoundsFourBitTypesUp) {
  EXPECT_EQ(byte_size(DType::f32, 3), 12u);
  EXPECT_EQ(byte_size(DType::i4, 3), 2u);
  EXPECT_EQ(byte_size(DType::u4, 0), 0u);
  EXPECT_EQ(byte_size(DType::f64, std::size_t{1} << 48), std::size_t{1} << 51);
}

TEST(Broadcast, FollowsNumpy) {
  EXPECT_EQ(*broadcast({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(*broadcast({4, 1, 3}, {5, 1}), (Shape{4, 5, 3}));
  EXPECT_EQ(*broadcast({}, {2, 2}), (Shape{2, 2}));
  EXPECT_EQ(*broadcast({0, 3}, {1, 3}), (Shape{0, 3}));
  EXPECT_EQ(*broadcast({1}, {0}), (Shape{0}));
}

TEST(Broadcast, NamesBothShapesWhenTheyDoNotFit) {
  for (const Shape& other : {Shape{2}, Shape{3, 2}, Shape{0}}) {
    const auto shape = broadcast({4, 3}, other);
    ASSERT_FALSE(shape.has_value());
    EXPECT_NE(shape.error().message.find("[4,3]"), std::string::npos);
    EXPECT_NE(shape.error().message.find(to_string(other)), std::string::npos);
  }
}

}  // namespace
}  // namespace ctk

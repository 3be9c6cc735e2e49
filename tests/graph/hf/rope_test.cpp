#include "graph/hf/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ctk::graph::hf::test {
namespace {

TEST(Rope, FrequenciesFallGeometrically) {
  // theta 10000, size 8: 10000^0, ^-1/4, ^-2/4, ^-3/4.
  const auto f = rope_frequencies({}, 8);
  ASSERT_EQ(f.size(), 4u);
  EXPECT_FLOAT_EQ(f[0], 1.0f);
  EXPECT_FLOAT_EQ(f[1], 0.1f);
  EXPECT_FLOAT_EQ(f[2], 0.01f);
  EXPECT_FLOAT_EQ(f[3], 0.001f);
}

TEST(Rope, TablesHoldCosineAndSineOfPositionTimesFrequency) {
  const auto tables = rope_tables({}, 4, 3);  // frequencies 1, 0.01
  ASSERT_TRUE(tables.has_value());
  EXPECT_EQ(tables->cosines.shape(), (Shape{3, 2}));
  EXPECT_EQ(tables->cosines.values<float>()[0], 1.0f);
  EXPECT_EQ(tables->sines.values<float>()[1], 0.0f);
  EXPECT_FLOAT_EQ(tables->cosines.values<float>()[4], -0.41614684f);  // cos 2
  EXPECT_FLOAT_EQ(tables->sines.values<float>()[5], 0.01999867f);     // sin 0.02
}

TEST(Rope, LinearDividesEveryFrequency) {
  RopeConfig c;
  c.type = RopeType::linear;
  c.factor = 4.0;
  const auto f = rope_frequencies(c, 4);
  EXPECT_FLOAT_EQ(f[0], 0.25f);
  EXPECT_FLOAT_EQ(f[1], 0.0025f);
}

TEST(Rope, Llama3KeepsFastSlowsSlowAndBlendsBetween) {
  // Context 200, bounds 200 / 4 = 50 and 200 / 1 = 200 positions a turn. theta 10000, size 8: wavelengths 2 pi = 6.28
  // (kept), 62.83 (between), 628 and 6283 (divided by 8).
  // Between: smooth = (200 / 62.83185 - 1) / 3 = 0.7276996; 0.2723004 * 0.1 / 8 + 0.7276996 * 0.1 = 0.07617372.
  RopeConfig c;
  c.type = RopeType::llama3;
  c.factor = 8.0;
  c.original_max_positions = 200;
  const auto f = rope_frequencies(c, 8);
  EXPECT_FLOAT_EQ(f[0], 1.0f);
  EXPECT_NEAR(f[1], 0.07617372f, 1e-7f);
  EXPECT_FLOAT_EQ(f[2], 0.01f / 8);
  EXPECT_FLOAT_EQ(f[3], 0.001f / 8);
}

TEST(Rope, YarnBlendsOverPairsAndScalesBothTables) {
  // Context 2048 and theta 10000, size 8: pair = 8 ln(2048 / (2 pi r)) / (2 ln 10000): r = 32 gives 1.0080 -> 1,
  // r = 1 gives 2.5132 -> 3. Ramp of pairs 0..3: 0, 0, 1/2, 1. Factor 4: a kept frequency is divided by 4 at ramp 1;
  // at 1/2: 0.01 * (1/2 / 4 + 1/2) = 0.00625. The factor of both tables: 0.1 ln 4 + 1 = 1.1386294.
  RopeConfig c;
  c.type = RopeType::yarn;
  c.factor = 4.0;
  c.original_max_positions = 2048;
  const auto f = rope_frequencies(c, 8);
  EXPECT_FLOAT_EQ(f[0], 1.0f);
  EXPECT_FLOAT_EQ(f[1], 0.1f);
  EXPECT_FLOAT_EQ(f[2], 0.00625f);
  EXPECT_FLOAT_EQ(f[3], 0.00025f);
  EXPECT_FLOAT_EQ(rope_tables(c, 8, 1)->cosines.values<float>()[0], 1.1386294f);
  c.attention_factor = 2.0;
  EXPECT_FLOAT_EQ(rope_tables(c, 8, 1)->cosines.values<float>()[0], 2.0f);
}

TEST(Rope, DividesByFactorsOfTheFile) {
  RopeConfig c;
  c.frequency_factors = {1.0f, 8.0f};
  const auto f = rope_frequencies(c, 4);
  EXPECT_FLOAT_EQ(f[0], 1.0f);
  EXPECT_FLOAT_EQ(f[1], 0.01f / 8);
}

}  // namespace
}  // namespace ctk::graph::hf::test

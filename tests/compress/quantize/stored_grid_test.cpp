// Weights made on a grid by hand are found and kept; random ones are never taken for a grid.
#include "compress/quantize/stored_grid.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/dtype.h"
#include "core/random.h"
#include "tests/support/seed.h"

namespace ctk::quantization {
namespace {

constexpr std::size_t kRows = 24, kColumns = 256;

enum class Held { f32, f16, bf16 };

float as(float value, Held held) {
  if (held == Held::f16) return half_to_float(float_to_half(value));
  return held == Held::bf16 ? bfloat_to_float(float_to_bfloat(value)) : value;
}

// (code - zero) * step + minimum, steps fp16 numbers that differ from group to group.
std::vector<float> on_grid(int bits, std::size_t group, bool is_symmetric, bool has_float_minimum, Held held) {
  Random random(3, "grid");
  std::vector<float> weights(kRows * kColumns);
  float step = 0, minimum = 0;
  int zero = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (i % group == 0) {
      step = half_to_float(float_to_half(0.01f + 0.02f * static_cast<float>(random.uniform())));
      zero = is_symmetric ? 1 << (bits - 1) : static_cast<int>(random.below(1u << bits));
      minimum = has_float_minimum ? half_to_float(float_to_half(-0.3f * step)) : 0.0f;
    }
    const int code = static_cast<int>(random.below(1u << bits));
    weights[i] = as(static_cast<float>(code - zero) * step + minimum, held);
  }
  return weights;
}

WeightRequest request_for(const std::vector<float>& weights, const std::string& scheme) {
  WeightRequest request;
  request.weight = Tensor::of<float>({kRows, kColumns}, std::span<const float>(weights));
  request.scheme = parse_scheme(scheme).value();
  return request;
}

TEST(StoredGrid, FindsBitsAndGroupsOfWeightsMadeOnOne) {
  for (const std::size_t group : {16, 32, 64, 128, 256}) {
    for (const int bits : {2, 3, 4}) {
      for (const bool is_symmetric : {true, false}) {
        const auto grid = find_stored_grid(on_grid(bits, group, is_symmetric, false, Held::f32), kRows, kColumns);
        ASSERT_TRUE(grid.has_value()) << bits << " bits, groups of " << group;
        EXPECT_EQ(grid->bits, bits);
        EXPECT_EQ(grid->group_size, group == 256 ? 0 : group);
        EXPECT_TRUE(grid->has_zero);
      }
      const auto floats = find_stored_grid(on_grid(bits, group, false, true, Held::f32), kRows, kColumns);
      ASSERT_TRUE(floats.has_value());
      EXPECT_EQ(floats->bits, bits);
      EXPECT_FALSE(floats->has_zero);
    }
  }
}

TEST(StoredGrid, FindsItThroughTheRoundingOfSixteenBits) {
  for (const Held held : {Held::f16, Held::bf16}) {
    const auto grid = find_stored_grid(on_grid(4, 32, true, false, held), kRows, kColumns);
    ASSERT_TRUE(grid.has_value());
    EXPECT_EQ(grid->bits, 4);
    EXPECT_EQ(grid->group_size, 32u);
  }
}

TEST(StoredGrid, KeepsTheNumbersWhereTheSchemeHoldsThem) {
  for (const std::size_t group : {32, 64, 256}) {
    const std::string size = group == 256 ? "c" : "g" + std::to_string(group);
    for (const Held held : {Held::f32, Held::f16, Held::bf16}) {
      for (const bool is_symmetric : {true, false}) {
        const std::vector<float> weights = on_grid(4, group, is_symmetric, false, held);
        const auto kept = keep_stored_grid(request_for(weights, "w4a16_" + size + (is_symmetric ? "" : "_affine")));
        if (!is_symmetric && held == Held::bf16) continue;  // 15 steps from 0: bf16 cannot tell them apart for sure
        ASSERT_TRUE(kept.has_value()) << size << " " << is_symmetric << " " << static_cast<int>(held);
        EXPECT_EQ(kept->tensor.method, "kept");
        const Tensor back = dequantize(kept->tensor);
        for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_EQ(as(back.values<float>()[i], held), weights[i]);
      }
    }
  }
}

TEST(StoredGrid, AFinerSchemeHoldsACoarserGrid) {
  const std::vector<float> weights = on_grid(4, 256, true, false, Held::f32);
  EXPECT_TRUE(keep_stored_grid(request_for(weights, "w4a16_g32")).has_value());
  EXPECT_TRUE(keep_stored_grid(request_for(weights, "w5a16_g32")).has_value());
  EXPECT_FALSE(keep_stored_grid(request_for(weights, "w3a16_g32")).has_value());
  EXPECT_FALSE(keep_stored_grid(request_for(on_grid(4, 32, true, false, Held::f32), "w4a16_c")).has_value());
}

TEST(StoredGrid, NoSchemeHoldsFloatMinima) {
  const std::vector<float> weights = on_grid(4, 32, false, true, Held::f32);
  for (const char* scheme : {"w4a16_g32", "w4a16_g32_affine", "w5a16_g32_affine", "w8a16_g32_affine"})
    EXPECT_FALSE(keep_stored_grid(request_for(weights, scheme)).has_value()) << scheme;
}

TEST(StoredGrid, RandomWeightsAreNone) {
  Random random(test::test_seed(), "no grid");
  for (int trial = 0; trial < 200; ++trial) {
    const Held held = static_cast<Held>(trial % 3);
    std::vector<float> weights(16 * 32);  // small ones are the hardest to refuse
    for (float& w : weights) w = as(static_cast<float>(0.02 * random.normal()), held);
    EXPECT_FALSE(find_stored_grid(weights, 16, 32).has_value()) << "trial " << trial;
    WeightRequest request;
    request.weight = Tensor::of<float>({16, 32}, std::span<const float>(weights));
    for (const char* scheme : {"w4a16_g32", "w4a16_g32_affine", "w4a16_g16", "w8a16_c"}) {
      request.scheme = parse_scheme(scheme).value();
      EXPECT_FALSE(keep_stored_grid(request).has_value()) << "trial " << trial << " " << scheme;
    }
  }
}

TEST(StoredGrid, ZerosAndConstantsTellNothing) {
  EXPECT_FALSE(find_stored_grid(std::vector<float>(1024, 0.0f), 32, 32).has_value());
  EXPECT_FALSE(find_stored_grid(std::vector<float>(1024, 0.7f), 32, 32).has_value());
  EXPECT_FALSE(keep_stored_grid(request_for(std::vector<float>(kRows * kColumns, 0.0f), "w4a16_g32")).has_value());
}

}  // namespace
}  // namespace ctk::quantization

// The cache of attention: where append_kv() puts what, and how it rounds.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "tests/kernels/attention_cases.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using test::AttentionCase;
using test::FilledCache;

AttentionCase numbered_case(CacheForm form) {
  // 2 heads, keys of 3 elements, values of 2, 18 tokens; element d of head h, token t is 100 h + t + d / 4.
  AttentionCase c;
  c.form = form;
  c.kv_heads = 2;
  c.key_size = 3;
  c.value_size = 2;
  c.context = 18;
  for (std::size_t t = 0; t < 18; ++t) {
    for (std::size_t h = 0; h < 2; ++h) {
      const float base = static_cast<float>(100 * h + t);
      for (float d : {0.0f, 0.25f, 0.5f}) c.keys.push_back(base + d);
      for (float d : {0.0f, 0.25f}) c.values.push_back(base + d);
    }
  }
  return c;
}

template <class Body>
void for_each_row(Body&& body) {
  ctk::test::for_each_row(attention_rows(), body);
}

TEST(AttentionCache, LaysKeysOutByBlocksOf16AndValuesByToken) {
  for_each_row([](const AttentionRow& row) {
    FilledCache cache(row, numbered_case(CacheForm::f32), 5);
    const float* keys = reinterpret_cast<const float*>(cache.keys.data());
    const float* values = reinterpret_cast<const float*>(cache.values.data());
    // Capacity 32: head 1 starts after 2 blocks of 3 x 16 elements, values after 32 tokens of pitch 8.
    EXPECT_EQ(keys[0 * 16 + 7], 7.0f);
    EXPECT_EQ(keys[2 * 16 + 7], 7.5f);
    EXPECT_EQ(keys[48 + 1 * 16 + 1], 17.25f);       // token 17: second block, column 1
    EXPECT_EQ(keys[96 + 48 + 2 * 16 + 0], 116.5f);  // head 1, token 16
    EXPECT_EQ(values[7 * 8 + 1], 7.25f);
    EXPECT_EQ(values[7 * 8 + 2], 0.0f);  // past the size
    EXPECT_EQ(values[32 * 8 + 17 * 8], 117.0f);
    FilledCache halves(row, numbered_case(CacheForm::f16), 5);
    const std::uint16_t* half = reinterpret_cast<const std::uint16_t*>(halves.keys.data());
    EXPECT_EQ(half_to_float(half[96 + 48 + 2 * 16 + 0]), 116.5f);
    EXPECT_EQ(half_to_float(reinterpret_cast<const std::uint16_t*>(halves.values.data())[7 * 8 + 1]), 7.25f);
  });
}

TEST(AttentionCache, LaysInt8OutInPairs) {
  for_each_row([](const AttentionRow& row) {
    FilledCache cache(row, numbered_case(CacheForm::i8), 5);
    const char* keys = cache.keys.data();
    const char* values = cache.values.data();
    // Token 7 of head 0: keys 7, 7.25, 7.5; scale 7.5 / 127; 7 * 127 / 7.5 = 118.53 -> 119, 122.77 -> 123, 127.
    EXPECT_FLOAT_EQ(cache.key_scales.floats()[7], 7.5f / 127);
    EXPECT_EQ(keys[7 * 2], 119);
    EXPECT_EQ(keys[7 * 2 + 1], 123);
    EXPECT_EQ(keys[32 + 7 * 2], 127);
    EXPECT_EQ(keys[32 + 7 * 2 + 1], 0);  // past the size
    // Values 7 and 7.25: 7 * 127 / 7.25 = 122.62 -> 123, 127. Tokens 6 and 7 are a pair: token 7 is the second.
    EXPECT_FLOAT_EQ(cache.value_scales.floats()[7], 7.25f / 127);
    EXPECT_EQ(values[3 * 16 + 0 * 2 + 1], 123);
    EXPECT_EQ(values[3 * 16 + 1 * 2 + 1], 127);
    EXPECT_EQ(values[3 * 16 + 2 * 2 + 1], 0);
    // Head 1, token 16: keys 116, 116.25, 116.5, the largest 127. Capacity 32, pitch 4: head 1 starts at byte 128.
    EXPECT_FLOAT_EQ(cache.key_scales.floats()[32 + 16], 116.5f / 127);
    EXPECT_EQ(keys[128 + 64 + 32 + 0], 127);
  });
}

// char has no sign on ARM.
int code_at(const char* codes, std::size_t index) {
  return static_cast<std::int8_t>(codes[index]);
}

TEST(AttentionCache, RoundsHalvesAndCodesToNearestWithTiesToEven) {
  AttentionCase c;
  c.key_size = 8;
  c.value_size = 2;
  c.context = 1;
  c.keys = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127.0f, 126.5f};
  c.values = {1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f};  // half way between halves
  for_each_row([&](const AttentionRow& row) {
    c.form = CacheForm::i8;
    FilledCache codes(row, c, 0);
    const int want[] = {127, 0, 2, 2, 0, -2, -127, 126};
    for (std::size_t d = 0; d < 8; ++d) EXPECT_EQ(code_at(codes.keys.data(), d / 2 * 32 + d % 2), want[d]) << d;
    c.form = CacheForm::f16;
    FilledCache halves(row, c, 0);
    const std::uint16_t* values = reinterpret_cast<const std::uint16_t*>(halves.values.data());
    EXPECT_EQ(values[0], 0x3c00);
    EXPECT_EQ(values[1], 0x3c02);
  });
}

TEST(AttentionCache, GivesZeroTinyAndUnfiniteTokensTheirScales) {
  const float infinity = std::numeric_limits<float>::infinity();
  AttentionCase c;
  c.form = CacheForm::i8;
  c.key_size = 9;
  c.value_size = 1;
  c.context = 4;
  c.keys.assign(36, 1.0f);
  std::fill_n(c.keys.begin(), 9, 0.0f);
  std::fill_n(c.keys.begin() + 9, 9, 1e-35f);
  c.keys[18 + 8] = infinity;
  c.values = {std::numeric_limits<float>::quiet_NaN(), 0.0f, -3.0f, std::numeric_limits<float>::max()};
  for_each_row([&](const AttentionRow& row) {
    FilledCache cache(row, c, 0);
    EXPECT_EQ(cache.key_scales.floats()[0], 0.0f);
    EXPECT_EQ(cache.key_scales.floats()[1], 0.0f);
    EXPECT_TRUE(std::isnan(cache.key_scales.floats()[2]));
    for (std::size_t t = 0; t < 3; ++t) {
      for (std::size_t d = 0; d < 10; ++d) EXPECT_EQ(cache.keys.data()[d / 2 * 32 + t * 2 + d % 2], 0) << t << " " << d;
    }
    EXPECT_TRUE(std::isnan(cache.value_scales.floats()[0]));
    EXPECT_EQ(cache.values.data()[0], 0);
    EXPECT_EQ(code_at(cache.values.data(), 16), -127);  // token 2
    EXPECT_EQ(code_at(cache.values.data(), 17), 127);
    EXPECT_TRUE(std::isfinite(cache.value_scales.floats()[3]));
  });
}

TEST(AttentionCache, HoldsTheSameBytesWhateverRowWritesItOnRandomShapes) {
  Random random(ctk::test::test_seed(), "attention cache");
  const int cases = ctk::test::cases(1000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    AttentionCase c;
    c.form = static_cast<CacheForm>(random.below(3));
    c.kv_heads = 1 + random.below(3);
    c.key_size = 1 + random.below(70);
    c.value_size = 1 + random.below(70);
    c.context = 16 * (1 + random.below(4));  // whole blocks: every byte is written
    fill(random, c);
    FilledCache want(attention_rows().front(), c, 0);
    for_each_row([&](const AttentionRow& row) {
      FilledCache got(row, c, random.below(c.context + 1));
      EXPECT_EQ(std::memcmp(got.keys.data(), want.keys.data(), want.shape.key_bytes()), 0) << c.what();
      EXPECT_EQ(std::memcmp(got.values.data(), want.values.data(), want.shape.value_bytes()), 0) << c.what();
      const std::size_t scales = want.shape.scale_count() * sizeof(float);
      EXPECT_EQ(std::memcmp(got.key_scales.data(), want.key_scales.data(), scales), 0) << c.what();
      EXPECT_EQ(std::memcmp(got.value_scales.data(), want.value_scales.data(), scales), 0) << c.what();
    });
  }
}

TEST(AttentionCache, CountsItsBytes) {
  // 3 heads of 64 + 64 elements, 1024 tokens: 2 * 3 * 64 * 1024 bytes a byte of an element.
  for (std::size_t bytes : {4, 2, 1}) {
    const CacheForm form = bytes == 4 ? CacheForm::f32 : bytes == 2 ? CacheForm::f16 : CacheForm::i8;
    const CacheShape shape{form, 3, 64, 64, 1024};
    EXPECT_EQ(shape.key_bytes() + shape.value_bytes(), 393216 * bytes);
    EXPECT_EQ(shape.scale_count(), bytes == 1 ? 3072u : 0u);
    EXPECT_TRUE(shape.is_supported());
  }
  EXPECT_FALSE((CacheShape{CacheForm::i8, 1, 513, 8, 16}.is_supported()));
  EXPECT_FALSE((CacheShape{CacheForm::i8, 1, 8, 8, 17}.is_supported()));
  EXPECT_FALSE((CacheShape{CacheForm::i8, 1, 0, 8, 16}.is_supported()));
}

}  // namespace
}  // namespace ctk::kernels

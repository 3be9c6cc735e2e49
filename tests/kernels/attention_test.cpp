#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "tests/kernels/attention_cases.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace test {
// emulated_attention_x86_*_test.cpp; null where the emulation's headers (libsimde-dev) are missing.
const AttentionRow* emulated_attention_avxvnni();
const AttentionRow* emulated_attention_avx512vnni();
}  // namespace test

namespace {

using ctk::test::AttentionCase;
using ctk::test::computed;

constexpr CacheForm kForms[] = {CacheForm::f32, CacheForm::f16, CacheForm::i8};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Body>
void for_each_row(Body&& body) {
  ctk::test::for_each_row(attention_rows(), body);
}

// The same, then those emulated instruction by instruction.
template <class Body>
void for_each_row_and_emulated(Body&& body) {
  for_each_row(body);
  for (const AttentionRow* row : {test::emulated_attention_avxvnni(), test::emulated_attention_avx512vnni()}) {
    if (row == nullptr) continue;
    SCOPED_TRACE(std::string(row->name) + " (emulated)");
    body(*row);
  }
}

// NaN equals NaN here, and -0 is not 0.
void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want[i]))
          << "element " << i << ": " << got[i] << ", expected " << want[i];
    }
  }
}

void compare_rows(const AttentionCase& c, const std::vector<int>& teams = {1}) {
  SCOPED_TRACE(c.what());
  const std::vector<float> want = computed(attention_rows().front(), c);
  for_each_row_and_emulated([&](const AttentionRow& row) {
    for (int team : teams) {
      if (team == 1 && row.isa == Isa::scalar) continue;
      set_threads(team);
      const std::vector<float> got = computed(row, c, c.context / 3);
      set_threads(1);
      expect_same_bits(got, want);
    }
  });
}

AttentionCase random_case(Random& random, std::size_t most_context) {
  constexpr std::size_t kSizes[] = {8, 16, 24, 32, 64, 80, 96, 128};
  AttentionCase c;
  c.form = kForms[random.below(3)];
  c.kv_heads = 1 + random.below(3);
  c.group = 1 + random.below(7);
  c.key_size = random.below(2) == 0 ? 1 + random.below(40) : kSizes[random.below(std::size(kSizes))];
  c.value_size = random.below(2) == 0 ? c.key_size : 1 + random.below(70);
  c.context = 1 + random.below(most_context);
  c.queries = random.below(2) == 0 ? 1 : 1 + random.below(std::min<std::size_t>(c.context, 12));
  c.is_causal = random.below(3) != 0;
  c.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.key_size)));
  c.has_mask = random.below(4) == 0;
  c.has_mask_per_head = c.has_mask && random.below(2) == 0;
  c.q_gap = random.below(2) * random.below(5);
  c.y_gap = random.below(2) * random.below(5);
  fill(random, c);
  return c;
}

TEST(AttentionKernel, RowsEqualTheReferenceOnRandomShapes) {
  Random random(ctk::test::test_seed(), "attention");
  const int cases = ctk::test::cases(1000);
  for (int i = 0; i < cases && !HasFatalFailure(); ++i) {
    compare_rows(random_case(random, i % 50 == 0 ? 600 : 30), i % 100 == 0 ? std::vector{1, 2, 4} : std::vector{1});
  }
}

TEST(AttentionKernel, RowsEqualTheReferenceAtEveryTailOfABlockAndAChunk) {
  Random random(ctk::test::test_seed(), "attention tails");
  for (CacheForm form : kForms) {
    for (std::size_t context : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 255, 256, 257, 271, 513}) {
      for (std::size_t group : {1, 2, 3, 4, 5, 6, 7}) {
        AttentionCase c;
        c.form = form;
        c.group = group;
        c.key_size = 1 + random.below(20);
        c.value_size = 1 + random.below(80);
        c.context = context;
        c.scale = 0.3f;
        fill(random, c);
        compare_rows(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(AttentionKernel, GivesTheSameBitsForAnyThreadCountAndWayOfCutting) {
  Random random(ctk::test::test_seed(), "attention threads");
  // Few lines and long contexts are cut by keys, many lines by lines.
  const std::size_t shapes[][3] = {{1, 3, 1300}, {4, 4, 600}, {40, 3, 300}, {260, 1, 260}};
  for (CacheForm form : kForms) {
    for (const auto& s : shapes) {
      AttentionCase c;
      c.form = form;
      c.kv_heads = 2;
      c.queries = s[0];
      c.group = s[1];
      c.context = s[2];
      c.key_size = 8;
      c.value_size = 9;
      c.is_causal = true;
      c.scale = 0.25f;
      fill(random, c);
      compare_rows(c, {1, 2, 5});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AttentionKernel, GivesPrefillTheBitsOfDecodingTokenByToken) {
  Random random(ctk::test::test_seed(), "attention prefill");
  for (CacheForm form : kForms) {
    AttentionCase all;
    all.form = form;
    all.kv_heads = 2;
    all.group = 3;
    all.key_size = all.value_size = 20;
    all.queries = all.context = 300;
    all.is_causal = true;
    all.scale = 0.2f;
    fill(random, all);
    for_each_row([&](const AttentionRow& row) {
      const std::vector<float> want = computed(row, all);
      for (std::size_t token : {0, 1, 15, 16, 17, 200, 255, 256, 299}) {
        AttentionCase one = all;
        one.queries = 1;
        one.context = token + 1;
        one.q.assign(all.q.begin() + static_cast<std::ptrdiff_t>(token * all.q_stride()),
                     all.q.begin() + static_cast<std::ptrdiff_t>((token + 1) * all.q_stride()));
        one.keys.resize(one.context * one.kv_heads * one.key_size);
        one.values.resize(one.context * one.kv_heads * one.value_size);
        const auto at = want.begin() + static_cast<std::ptrdiff_t>(token * all.y_stride());
        expect_same_bits(computed(row, one), {at, at + static_cast<std::ptrdiff_t>(all.y_stride())});
      }
    });
  }
}

TEST(AttentionKernel, StaysWithinTheStatedErrorOfTheExactAnswer) {
  Random random(ctk::test::test_seed(), "attention error");
  double worst[3] = {};
  for (int i = 0; i < 200; ++i) {
    const AttentionCase c = random_case(random, i % 20 == 0 ? 600 : 50);
    for_each_row([&](const AttentionRow& row) {
      const std::vector<float> y = computed(row, c);
      for (std::size_t query = 0; query < c.queries; ++query) {
        for (std::size_t head = 0; head < c.heads(); ++head) {
          const ctk::test::ExactLine exact = exact_line(c, query, head);
          for (std::size_t d = 0; d < c.value_size; ++d) {
            const double got = y[query * c.y_stride() + head * c.value_size + d];
            ASSERT_NEAR(got, exact.y[d], exact.bound[d]) << c.what() << " query " << query << " head " << head;
            double& off = worst[static_cast<int>(c.form)];
            off = std::max(off, std::fabs(got - exact.y[d]));
          }
        }
      }
    });
  }
  // What the bounds come to on normal noise. Keys, queries and values have magnitudes of 1 to 4 here.
  EXPECT_LT(worst[0], 3e-6);
  EXPECT_LT(worst[1], 2e-3);
  EXPECT_LT(worst[2], 4e-2);
}

// One head, sizes of 1: y of queries and keys given as plain numbers.
float answer(const AttentionRow& row, CacheForm form, float q, std::vector<float> keys, std::vector<float> values,
             std::vector<float> mask = {}) {
  AttentionCase c;
  c.form = form;
  c.key_size = c.value_size = 1;
  c.context = keys.size();
  c.q = {q};
  c.keys = std::move(keys);
  c.values = std::move(values);
  c.has_mask = !mask.empty();
  c.mask = std::move(mask);
  return computed(row, c)[0];
}

TEST(AttentionKernel, WeighsTwoKeysByTheLogisticOfTheirDistance) {
  // Values 1 and 0, scores 0 and -x: y = 1 / (1 + exp(-x)), which holds exp to 2 units in the last place.
  for_each_row([](const AttentionRow& row) {
    for (int i = 0; i <= 290; ++i) {
      const float x = static_cast<float>(i) * 0.3f;
      const double exponential = std::exp(-static_cast<double>(x));
      const double other = answer(row, CacheForm::f32, 1.0f, {0.0f, -x}, {0.0f, 1.0f});
      EXPECT_NEAR(other, exponential / (1 + exponential), 3e-7 * exponential) << x;
    }
    EXPECT_EQ(answer(row, CacheForm::f32, 1.0f, {0.0f, -88.0f}, {0.0f, 1.0f}), 0.0f);  // below the least exponent
  });
}

TEST(AttentionKernel, TakesScoresWhoseExponentialsOverflow) {
  for (CacheForm form : kForms) {
    for_each_row([&](const AttentionRow& row) {
      // Scores 30000, 20000, -30000: all weight on the first.
      EXPECT_NEAR(answer(row, form, 100.0f, {300.0f, 200.0f, -300.0f}, {2.0f, 3.0f, 4.0f}), 2.0f, 1e-3f);
      // Two equal: the mean, exactly. Beyond the first chunk, too.
      std::vector<float> keys(400, -300.0f), values(400, 7.0f);
      keys[3] = keys[399] = 300.0f;
      values[3] = 2.0f;
      values[399] = 4.0f;
      EXPECT_NEAR(answer(row, form, 100.0f, keys, values), 3.0f, 1e-3f);
    });
  }
}

TEST(AttentionKernel, AveragesTheValuesOfEqualKeys) {
  // 600 equal keys, values 0..599 / 600: their mean is 599 / 1200.
  std::vector<float> values(600);
  for (std::size_t i = 0; i < 600; ++i) values[i] = static_cast<float>(i) / 600.0f;
  for_each_row([&](const AttentionRow& row) {
    EXPECT_NEAR(answer(row, CacheForm::f32, 3.0f, std::vector<float>(600, 5.0f), values), 599.0 / 1200, 1e-5);
    EXPECT_NEAR(answer(row, CacheForm::f16, 3.0f, std::vector<float>(600, 5.0f), values), 599.0 / 1200, 3e-4);
    EXPECT_NEAR(answer(row, CacheForm::i8, 3.0f, std::vector<float>(600, 5.0f), values), 599.0 / 1200, 1e-4);
  });
}

TEST(AttentionKernel, GivesZerosWhereEverythingIsMaskedOrNothingIsThere) {
  for (CacheForm form : kForms) {
    for_each_row([&](const AttentionRow& row) {
      EXPECT_EQ(answer(row, form, 1.0f, {1.0f, 2.0f}, {3.0f, 4.0f}, {-kInfinity, -kInfinity}), 0.0f);
      EXPECT_EQ(answer(row, form, 1.0f, {}, {}), 0.0f);
      // All but one; then a whole chunk masked before the one that is not, and after.
      EXPECT_NEAR(answer(row, form, 1.0f, {1.0f, 2.0f}, {3.0f, 4.0f}, {0.0f, -kInfinity}), 3.0f, 1e-3f);
      for (std::size_t seen : {0, 299, 599}) {
        std::vector<float> mask(600, -kInfinity), values(600, 9.0f);
        mask[seen] = -5.0f;
        values[seen] = 4.0f;
        EXPECT_NEAR(answer(row, form, 1.0f, std::vector<float>(600, 2.0f), values, mask), 4.0f, 1e-3f) << seen;
      }
    });
  }
}

TEST(AttentionKernel, KeepsWhatIsNotFiniteInTheLinesThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Random random(7);
  for (CacheForm form : kForms) {
    for (float bad : {nan, kInfinity}) {
      for (bool in_keys : {true, false}) {
        AttentionCase c;
        c.form = form;
        c.group = 2;
        c.key_size = c.value_size = 11;
        c.queries = c.context = 20;
        c.is_causal = true;
        fill(random, c);
        for (std::size_t i = 4; i < c.q.size(); i += 11) c.q[i] = 1.0f;  // so that infinity is not minus infinity
        (in_keys ? c.keys : c.values)[13 * 11 + 4] = bad;
        for_each_row([&](const AttentionRow& row) {
          const std::vector<float> y = computed(row, c);
          for (std::size_t query = 0; query < 13; ++query) {
            for (std::size_t i = 0; i < 22; ++i) EXPECT_TRUE(std::isfinite(y[query * 22 + i])) << query;
          }
          EXPECT_FALSE(std::isfinite(y[19 * 22 + 4]) && std::isfinite(y[19 * 22 + 15]));
        });
        compare_rows(c);
      }
    }
    AttentionCase c;
    c.form = form;
    c.context = 5;
    fill(random, c);
    c.q[3] = nan;
    for_each_row([&](const AttentionRow& row) { EXPECT_TRUE(std::isnan(computed(row, c)[0])); });
  }
}

TEST(AttentionKernel, TakesNoQueries) {
  AttentionCase c;
  c.queries = 0;
  c.context = 4;
  Random random(3);
  fill(random, c);
  for_each_row([&](const AttentionRow& row) { EXPECT_TRUE(computed(row, c).empty()); });
}

TEST(AttentionKernel, NeedsNoMoreScratchForLongerContextsInPrefill) {
  for_each_row([](const AttentionRow& row) {
    Attention a;
    a.cache.shape = {CacheForm::f32, 3, 64, 64, 1 << 20};
    a.heads = 9;
    a.queries = 512;
    a.context = 512;
    const std::size_t bytes = attention_scratch_bytes(row, a);
    a.context = 1 << 20;
    a.queries = 4096;
    EXPECT_EQ(attention_scratch_bytes(row, a), bytes);
    EXPECT_LT(bytes, 200000u);
  });
}

}  // namespace
}  // namespace ctk::kernels

#include "kernels/lookup/lookup.h"

#include <gtest/gtest.h>

#include "tests/support/hostile_memory.h"
#include "tests/support/rows.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using test::FencedArray;

TEST(Lookup, MapsEveryCode) {
  std::vector<std::uint8_t> squares(256), all(256);
  for (std::size_t i = 0; i < 256; ++i) {
    all[i] = static_cast<std::uint8_t>(i);
    squares[i] = static_cast<std::uint8_t>(i * i);
  }
  test::for_each_row(lookup_rows(), [&](const LookupRow& row) {
    FencedArray<std::uint8_t> table(squares), x(all), y(256);
    row.u8(table.data(), x.data(), y.data(), 256);
    EXPECT_EQ(y.values(), squares);
  });
}

TEST(Lookup, TakesEveryLengthAndItsInputAsOutput) {
  Random random(test::test_seed(), "lookup");
  test::for_each_row(lookup_rows(), [&](const LookupRow& row) {
    for (std::size_t count = 0; count <= 100; ++count) {
      const auto entries = test::random_codes(random, 256), codes = test::random_codes(random, count);
      std::vector<std::uint8_t> expected;
      for (std::uint8_t code : codes) expected.push_back(entries[code]);
      FencedArray<std::uint8_t> table(entries), x(codes);
      row.u8(table.data(), x.data(), x.data(), count);
      ASSERT_EQ(x.values(), expected);
    }
  });
}

TEST(Lookup, MapsCodesByTheTableOnRandomLengths) {
  Random random(test::test_seed(), "lookup lengths");
  const int cases = test::cases(10000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const auto entries = test::random_codes(random, 256), codes = test::random_codes(random, random.below(200));
    std::vector<std::uint8_t> expected;
    for (std::uint8_t code : codes) expected.push_back(entries[code]);
    test::for_each_row(lookup_rows(), [&](const LookupRow& row) {
      FencedArray<std::uint8_t> table(entries), x(codes), y(codes.size());
      row.u8(table.data(), x.data(), y.data(), codes.size());
      ASSERT_EQ(y.values(), expected);
    });
  }
}

}  // namespace
}  // namespace ctk::kernels

#include "compress/units.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compress/gate.h"

namespace ctk::pipeline {
namespace {

TEST(Units, SizesCountInThousandsOrIn1024s) {
  EXPECT_DOUBLE_EQ(parse_size("60 kB")->value, 60000);
  EXPECT_DOUBLE_EQ(parse_size("60kB")->value, 60000);
  EXPECT_DOUBLE_EQ(parse_size("1.5 KiB")->value, 1536);
  EXPECT_DOUBLE_EQ(parse_size("2 MiB")->value, 2097152);
  EXPECT_DOUBLE_EQ(parse_size("103.6 MB")->value, 103600000);
  EXPECT_DOUBLE_EQ(parse_size("512 B")->value, 512);
  EXPECT_TRUE(parse_size("20 %")->is_share);
  EXPECT_DOUBLE_EQ(parse_size("20 %")->absolute(500), 100);
}

TEST(Units, TimesBecomeMicroseconds) {
  EXPECT_DOUBLE_EQ(parse_latency("0.20 ms")->value, 200);
  EXPECT_DOUBLE_EQ(parse_latency("350 us")->value, 350);
  EXPECT_DOUBLE_EQ(parse_latency("1.5 s")->value, 1500000);
}

TEST(Units, RefuseWhatHasNoUnitOrNoSense) {
  for (const char* text :
       {"60", "60 kb", "kB", "", "-1 kB", "0 B", "inf B", "nan B", "1e400 B", "1e308 GB", "60 kB x", "6 0 kB"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
  for (const char* text : {"0.2", "0.2 m", "-1 ms", "0 s"}) EXPECT_FALSE(parse_latency(text)) << text;
  for (const char* text : {"1", "-1 pt", "1 points", "pt"}) EXPECT_FALSE(parse_drop(text)) << text;
}

TEST(Units, CanonicalTextReadsBack) {
  for (const char* text : {"60 kB", "0.1 KiB", "33.3 %"}) {
    const Limit limit = *parse_size(text);
    EXPECT_EQ(*parse_size(to_text(limit, "B")), limit) << text;
  }
  for (const char* text : {"1.0 pt", "0.7 %", "0 pt"})
    EXPECT_EQ(*parse_drop(to_text(*parse_drop(text))), *parse_drop(text));
}

// FAULTS B074: which way is worse, what a relative drop is relative to, and what 0 means.
TEST(Gate, NegativeMetricWhereHigherIsBetter) {
  // -10 dB -> -11 dB: 1 / |-10| = 10 % worse
  const auto verdict = hold_gate({0.01, true}, "sqnr_db", -10, -11);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_NEAR(verdict->drop, 0.1, 1e-12);
  EXPECT_FALSE(verdict->is_met);
}

TEST(Gate, LowerIsBetterCountsTheOtherWay) {
  EXPECT_FALSE(hold_gate({0.05, true}, "kl", 10, 12)->is_met);  // 20 % worse
  EXPECT_TRUE(hold_gate({0.05, true}, "kl", 10, 8)->is_met);    // better
}

TEST(Gate, ZeroBaselineAndNonFiniteFiguresNeverPass) {
  const auto relative = hold_gate({0.01, true}, "kl", 0.0, 0.0036);
  ASSERT_FALSE(relative);
  EXPECT_EQ(relative.error().code, ErrorCode::config);
  EXPECT_NE(relative.error().message.find("Use points"), std::string::npos) << relative.error().message;
  EXPECT_FALSE(hold_gate({0.01, true}, "top1", 0.0, 0.0));
  EXPECT_TRUE(hold_gate({0.01, false}, "kl", 0.0, 0.0036)->is_met);  // in points: 0.0036 <= 0.01
  EXPECT_FALSE(hold_gate({1, false}, "top1", 0.9, std::nan("")));
  EXPECT_FALSE(hold_gate({1, false}, "top1", INFINITY, 0.9));
  EXPECT_FALSE(hold_gate({1, false}, "no_such_metric", 0.9, 0.9));
}

TEST(Gate, APointOfAShareIsAHundredth) {
  EXPECT_TRUE(hold_gate({1.0, false}, "top1", 0.90, 0.89)->is_met);
  EXPECT_FALSE(hold_gate({1.0, false}, "top1", 0.90, 0.8898)->is_met);
  EXPECT_EQ(hold_gate({0.5, false}, "top1", 0.8733, 0.8705)->text, "top1 0.8733 -> 0.8705: drop 0.28 pt, limit 0.5 pt");
}

}  // namespace
}  // namespace ctk::pipeline

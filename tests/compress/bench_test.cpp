#include "compress/bench.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "compress/bench_suites/suites.h"

namespace ctk::pipeline {
namespace {

TEST(BenchSuites, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const BenchSuite& suite : bench_suites()) {
    EXPECT_TRUE(names.insert(suite.name).second) << suite.name;
    EXPECT_FALSE(suite.what.empty()) << suite.name;
  }
  EXPECT_TRUE(names.contains("w4"));
  EXPECT_TRUE(names.contains("attn"));
}

TEST(BenchSuites, RefuseAnUnknownNameAndListTheKnown) {
  BenchOptions options;
  options.suite = "w5";
  const Status status = run_bench(options, [](const BenchRow&) { FAIL() << "measured something"; });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::config);
  EXPECT_NE(status.error().message.find("expected one of w4"), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().message.find("found \"w5\""), std::string::npos) << status.error().message;
}

TEST(BenchSuites, CountWhatAttentionReadsAndDoes) {
  BenchOptions options;
  options.suite = "attn";
  options.quick = true;
  options.seconds = 0.0;
  std::map<std::string, BenchRow> rows;
  ASSERT_TRUE(run_bench(options, [&](const BenchRow& row) { rows[row.row + " " + row.variant] = row; }).has_value());
  // 1024 tokens of 3 heads, 64 elements each of key and value; int8 adds a float scale to each of the 2 x 3072.
  EXPECT_EQ(rows["attn.decode.H9kv3d64.ctx1024 fp32-cache"].bytes, 1572864);
  EXPECT_EQ(rows["attn.decode.H9kv3d64.ctx1024 fp16-cache"].bytes, 786432);
  EXPECT_EQ(rows["attn.decode.H9kv3d64.ctx1024 int8-cache"].bytes, 393216 + 24576);
  EXPECT_EQ(rows["attn.decode.H9kv3d64.ctx1024 fp32-cache"].ops, 2359296);
  // A prompt: 4 * 9 * 64 for each of 512 * 513 / 2 pairs.
  EXPECT_EQ(rows["attn.prefill.H9kv3d64.n512 fp32-cache"].ops, 302579712);
  for (const auto& [name, row] : rows) EXPECT_GT(row.min_us, 0.0) << name;
  EXPECT_EQ(rows.size(), 9u);
}

}  // namespace
}  // namespace ctk::pipeline

#include "compress/bench.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ctk::pipeline

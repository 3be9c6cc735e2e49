#include "compress/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compress/final_table.h"

namespace ctk::pipeline {
namespace {

TEST(Progress, WritesALineAtStartEndAndEveryTenthOffATerminal) {
  std::string text;
  const auto progress = make_progress([&text](const std::string& piece) { text += piece; }, false);
  progress->stage_begin("calibrate", 1000);
  for (int done = 1; done <= 1000; ++done) progress->advance(done);
  progress->note("found something");
  progress->stage_end("calibrate", 2.5, false);
  progress->stage_begin("quantize", 0);
  progress->stage_end("quantize", 0, true);
  // start, 10 % to 90 %, note, end; start, end
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 9 + 1 + 1 + 2);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("calibrate 50 %\n"), std::string::npos) << text;
  EXPECT_NE(text.find("calibrate done in 2.5 s\n"), std::string::npos);
  EXPECT_NE(text.find("quantize done before\n"), std::string::npos);
}

TEST(Progress, DoesNotCallAStoppedStageDone) {
  std::string text;
  const auto progress = make_progress([&text](const std::string& piece) { text += piece; }, false);
  progress->stage_begin("calibrate", 10);
  progress->stage_stopped("calibrate", 2.5, "interrupted");
  EXPECT_EQ(text, "calibrate ...\ncalibrate interrupted after 2.5 s\n");
}

TEST(Progress, KeepsOneLineOnATerminalAndLeavesItClean) {
  std::string text;
  {
    const auto progress = make_progress([&text](const std::string& piece) { text += piece; }, true);
    progress->stage_begin("calibrate", 10);
    progress->advance(10);
    progress->advance(99);
  }
  EXPECT_EQ(std::ranges::count(text, '\n'), 0);
  EXPECT_NE(text.find("100 %"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\033[K"));
}

TEST(FinalTable, SaysBeforeAfterBudgetAndWhereTheFilesLie) {
  exporter::Report report;
  report.metric = exporter::MetricPart{"top1", true, 0.998, 0.996, 0.002, 0.002};
  report.size = {143221, 40000};
  report.budget = {{"size", "bytes", 36000, {}, 40000, false, {}}};
  report.files = {{"model.bundle", "bundle", 40000, ""}};
  report.output = "out/quickstart";
  const std::string text = summary_table(report);
  for (const char* words :
       {"99.80 %", "143.2 kB", "40.0 kB", "at most 36.0 kB", "NO", "Files in out/quickstart:", "model.bundle"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

}  // namespace
}  // namespace ctk::pipeline

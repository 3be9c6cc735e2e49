#include "tests/compress/config_text.h"

namespace ctk::pipeline {
namespace {

using namespace test;

TEST(ConfigRules, RefusesABudgetThatNoStageMeasures) {
  const std::string text =
      "model: net.onnx\noutput: out\ndata: {calibrate: {path: a.npz}, evaluate: {path: b.npz}}\n"
      "budget: {latency: 1 ms}\nstages:\n  - calibrate: {method: mse}\n  - quantize: {scheme: w8a8_c}\n";
  EXPECT_SAYS(refusal(text), "edge.yaml:4: budget.latency: expected a stage \"search\" or \"validate\"");
  for (const char* other : {"peak_memory: 1 MB", "metric_drop: 1 pt", "size: 1 MB"}) {
    EXPECT_SAYS(refusal(replaced(text, "latency: 1 ms", other)), "expected a stage");
  }
  EXPECT_TRUE(parsed(text + "  - export: {formats: [bundle]}\n  - validate: {}\n"));
}

TEST(ConfigRules, RefusesOptionsOfQuantizeThatWouldDoNothing) {
  EXPECT_SAYS(refusal(with_quantize("{method: rtn, scheme: w8a8_c, damp_percent: 2}")), "expected method gptq");
  EXPECT_SAYS(refusal(with_quantize("{scheme: w4a8_c, reduce_range: true}")), "expected a scheme with 8-bit weights");
  EXPECT_TRUE(parsed(with_quantize("{scheme: w8a8_c, reduce_range: true, bias_correction: true}")));
  EXPECT_SAYS(refusal(replaced(with_quantize("{scheme: w4a16_g32, bias_correction: true}"),
                               "  - calibrate: {method: mse}\n", "")),
              "expected a stage \"calibrate\", whose means");
}

TEST(ConfigRules, ASelectSplitNeedsAStageThatComparesOnIt) {
  const std::string text = replaced(kGood, "  evaluate:", "  select: {path: c.npz}\n  evaluate:");
  const std::string without_floor = replaced(text, ", metric_drop: 1.0 pt}\n", "}\n");
  EXPECT_SAYS(refusal(without_floor), "data.select: expected a stage that compares on it");
  EXPECT_TRUE(parsed(text));  // the floor is held on it
  EXPECT_TRUE(parsed(replaced(without_floor, "solver: ilp", "finalists: 3")));
}

TEST(ConfigRules, KnowsMetricsWhoseDropCannotBeRelative) {
  const std::string text = replaced(kGood, "labels: y, metric: top1", "metric: kl");
  EXPECT_SAYS(refusal(replaced(text, "metric_drop: 1.0 pt}\n", "metric_drop: 1 %}\n")), "Use points");
  EXPECT_TRUE(parsed(text));
  EXPECT_SAYS(refusal(replaced(text, "metric: kl", "metric: sqnr_db")), "infinite for the float network");
}

TEST(ConfigRules, RefusesAPercentileThatLeavesNoRange) {
  const std::string text =
      replaced(kGood, "calibrate: {method: mse}", "calibrate: {method: percentile, percentile: 50}");
  EXPECT_SAYS(refusal(text), "edge.yaml:8: stages[0].calibrate.percentile: expected a number above 50, found \"50\"");
  EXPECT_TRUE(parsed(replaced(text, "percentile: 50", "percentile: 50.5")));
}

}  // namespace
}  // namespace ctk::pipeline

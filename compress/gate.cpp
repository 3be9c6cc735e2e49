#include "compress/gate.h"

#include <cmath>
#include <cstdio>

#include "compress/names.h"
#include "data/metric.h"

namespace ctk::pipeline {
namespace {

// A drop of exactly the limit passes although 0.9 - 0.89 is a little more than 0.01 in floating point.
constexpr double kRounding = 1e-9;

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

Result<GateVerdict> hold_gate(const MetricDrop& limit, std::string_view metric, double baseline, double final) {
  CTK_TRY(const data::MetricInfo* info, data::find_metric(metric));
  if (limit.is_relative && !std::isfinite(1 / baseline) && std::isfinite(baseline)) {
    return config_error("expected a limit that fits " + std::string(metric) + " of the float network, found \"" +
                        to_text(limit) + "\" of a baseline of " + number(baseline) +
                        ", which is no amount. Use points, an absolute limit: \"1.0 pt\"");
  }
  CTK_TRY(const data::Drop drop, data::drop_of(baseline, final, info->better, limit.is_relative));
  GateVerdict verdict;
  verdict.limit = limit.value;
  verdict.drop = limit.is_relative ? drop.value : drop.value / point_of_metric(metric);
  verdict.is_met = verdict.drop <= verdict.limit + kRounding;
  const double shown = limit.is_relative ? verdict.drop * 100 : verdict.drop;
  verdict.text = std::string(metric) + " " + number(baseline) + " -> " + number(final) + ": drop " + number(shown) +
                 (limit.is_relative ? " %" : " pt") + ", limit " + to_text(limit);
  return verdict;
}

}  // namespace ctk::pipeline

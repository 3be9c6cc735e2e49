#include "compress/floor.h"

#include <cmath>

#include "compress/contest.h"
#include "compress/gate.h"
#include "compress/names.h"
#include "compress/select_metric.h"
#include "data/metric.h"

namespace ctk::pipeline {

Result<std::optional<Floor>> Floor::open(const Session& session) {
  const auto& limit = session.config.budget.metric_drop;
  if (!limit || !session.splits.select || !session.config.evaluate) return std::optional<Floor>{};
  const std::string& asked = session.config.evaluate->spec.metric;
  const std::string metric = asked.empty() ? "agreement" : asked;
  CTK_TRY(const data::MetricInfo* info, data::find_metric(metric));
  if (!fits_select(session, *info)) return std::optional<Floor>{};
  CTK_TRY(data::Split split, compared_part(session));
  Floor floor(std::move(split), session.output + "/.cache");
  floor.limit_ = *limit;
  floor.metric_ = metric;
  CTK_TRY(floor.reference_, collect_outputs(session.float_graph(), floor.split_, session.output + "/.cache"));
  if (info->needs_reference) {
    floor.baseline_ = metric == "agreement" ? 1.0 : 0.0;
  } else {
    CTK_TRY(const Evaluation baseline, evaluate(session.float_graph(), floor.split_, metric));
    floor.baseline_ = baseline.metric.value;
  }
  return std::optional<Floor>(std::move(floor));
}

Result<Floor::Verdict> Floor::hold(const graph::Graph& graph) {
  ++evaluations_;
  CTK_TRY(const Evaluation found, evaluate(graph, split_, metric_, &reference_));
  CTK_TRY(const GateVerdict verdict, hold_gate(limit_, metric_, baseline_, found.metric.value));
  Verdict out;
  out.metric = found.metric.value;
  out.kl = found.kl.value;
  out.drop = verdict.drop;
  out.is_within = verdict.is_met;
  out.text = verdict.text;
  const double error = limit_.is_relative ? found.metric.standard_error / std::abs(baseline_)
                                          : found.metric.standard_error / point_of_metric(metric_);
  out.is_clearly_broken = !verdict.is_met && verdict.drop - 2 * error > verdict.limit;
  return out;
}

}  // namespace ctk::pipeline

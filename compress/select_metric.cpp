#include "compress/select_metric.h"

#include <optional>

namespace ctk::pipeline {
namespace {

std::string wanted_metric(const Session& session) {
  const auto named = [](const std::optional<SourceConfig>& source) { return source ? source->spec.metric : ""; };
  if (const std::string own = named(session.config.select); !own.empty()) return own;
  if (const std::string evaluate = named(session.config.evaluate); !evaluate.empty()) return evaluate;
  return usual_metric(session);
}

}  // namespace

bool fits_select(const Session& session, const data::MetricInfo& metric) {
  if (!metric.needs_labels) return true;
  return session.splits.select->source->has_labels() && (!metric.is_of_pairs || session.config.select);
}

std::string usual_metric(const Session& session) {
  const data::Source& source = *session.splits.select->source;
  return source.has_labels() && !source.spec().text ? "top1" : "agreement";  // labels of a text are of pairs
}

Result<SelectMetric> SelectMetric::open(const Session& session) {
  if (!session.splits.select) {
    return input_error(
        "data.select: expected samples to compare networks on, found none. Give data.select, or a data.train or "
        "data.calibrate with samples to spare");
  }
  SelectMetric metric(*session.splits.select, session.output + "/.cache");
  metric.name_ = wanted_metric(session);
  CTK_TRY(const data::MetricInfo* info, data::find_metric(metric.name_));
  if (!fits_select(session, *info)) {
    metric.name_ = info->is_of_pairs ? "cosine" : "agreement";
    CTK_TRY(info, data::find_metric(metric.name_));
  }
  metric.higher_is_better_ = info->better == data::Better::higher;
  metric.compares_ = info->needs_reference;
  if (metric.compares_) {
    CTK_TRY(metric.reference_, collect_outputs(session.float_graph(), *metric.split_, session.output + "/.cache"));
  }
  return metric;
}

Result<double> SelectMetric::of(const graph::Graph& graph) const {
  CTK_TRY(const Evaluation found, evaluate(graph, *split_, name_, compares_ ? &reference_ : nullptr));
  return found.metric.value;
}

}  // namespace ctk::pipeline

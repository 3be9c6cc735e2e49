// The calibrate stage: runs the float network over the calibration split and turns what it sees into ranges.
#include <nlohmann/json.hpp>
#include <set>

#include "compress/quantize/notes.h"
#include "compress/session.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

// Mean per channel (dimension 1) of the inputs of layers, for bias correction. Sums in double, in sample order.
class MeanCollector {
 public:
  explicit MeanCollector(const graph::Graph& graph) : graph_(graph) {
    for (const graph::Layer& layer : graph::layers_of(graph)) wanted_.insert(layer.input);
  }

  void observe(graph::ValueId id, const TensorView& data, bool channels_last) {
    if (!wanted_.contains(id) || data.shape.size() < 2) return;
    const auto channels = static_cast<std::size_t>(channels_last ? data.shape.back() : data.shape[1]);
    auto& sums = sums_[graph_.value(id).name];
    sums.resize(channels, 0.0);
    const auto values = data.values<float>();
    std::size_t inner = 1;
    if (!channels_last) {
      for (std::size_t d = 2; d < data.shape.size(); ++d) inner *= static_cast<std::size_t>(data.shape[d]);
    }
    for (std::size_t i = 0; i < values.size(); ++i) sums[i / inner % channels] += static_cast<double>(values[i]);
    counts_[graph_.value(id).name] += values.size() / std::max<std::size_t>(channels, 1);
  }

  json to_json() const {
    json means = json::object();
    for (const auto& [name, sums] : sums_) {
      std::vector<double> mean = sums;
      for (double& m : mean) m /= static_cast<double>(std::max<std::uint64_t>(counts_.at(name), 1));
      means[name] = mean;
    }
    return means;
  }

 private:
  const graph::Graph& graph_;
  std::set<graph::ValueId> wanted_;
  std::map<std::string, std::vector<double>> sums_;
  std::map<std::string, std::uint64_t> counts_;
};

Result<std::string> collect(Session& session) {
  const graph::Graph& graph = session.model.graph;
  const data::Split& split = *session.splits.calibrate;
  CTK_TRY(const std::vector<graph::ValueId> values,
          quantization::values_to_observe(graph, session.model.sample_shapes));
  std::vector<std::string> names;
  std::map<graph::ValueId, std::size_t> index_of;
  for (graph::ValueId id : values) {
    index_of[id] = names.size();
    names.push_back(graph.value(id).name);
  }
  calibrate::ObserverOptions options;
  options.method = session.config.calibrate->method;
  options.percentile = session.config.calibrate->percentile;
  CTK_TRY(calibrate::RangeCollector collector, calibrate::RangeCollector::create(options, names));
  MeanCollector means(graph);
  const int passes = collector.passes();
  for (int pass = 0; pass < passes; ++pass) {
    CTK_CHECK(collector.begin_pass(pass));
    std::size_t first = 0;  // of the batch that is being observed
    const auto observe = [&](graph::ValueId id, const TensorView& data, bool channels_last) -> Status {
      if (pass == 0) means.observe(id, data, channels_last);
      const auto samples = data.shape.empty() ? std::size_t{1} : static_cast<std::size_t>(data.shape[0]);
      return collector.observe(index_of.at(id), data.values<float>(), first, samples);
    };
    CTK_CHECK(for_each_batch(
        graph, split, observe, values,
        [&](const std::vector<Tensor>&, const data::Batch& batch, std::size_t at) -> Status {
          first = at + (batch.inputs.empty() ? 0 : static_cast<std::size_t>(batch.inputs[0].shape()[0]));
          session.advance((static_cast<std::int64_t>(first) + pass * static_cast<std::int64_t>(split.count())) /
                          passes);
          return {};
        }));
  }
  CTK_TRY(const std::vector<calibrate::Range> ranges, collector.finish());
  json rows = json::array();
  for (const calibrate::Range& range : ranges) {
    rows.push_back({{"value", range.value},
                    {"low", range.low},
                    {"high", range.high},
                    {"count", range.count},
                    {"method", range.method},
                    {"source", range.note.empty() ? range.source : range.source + "; " + range.note}});
  }
  return json{{"ranges", rows}, {"means", means.to_json()}}.dump(1);
}

Status restore(Session& session, const std::string& text) {
  const json artifact = json::parse(text, nullptr, false);
  if (artifact.is_discarded()) return internal_error("the calibrate artifact is not JSON");
  session.report.ranges.clear();
  for (const json& row : artifact["ranges"]) {
    calibrate::Range range;
    range.value = row["value"];
    range.low = row["low"];
    range.high = row["high"];
    range.count = row["count"];
    range.method = row["method"];
    range.source = row["source"];
    session.report.ranges.push_back(
        {range.value, range.low, range.high, static_cast<std::int64_t>(range.count), range.source});
    session.ranges[range.value] = range;
  }
  for (const auto& [name, mean] : artifact["means"].items())
    session.input_means[name] = mean.get<std::vector<double>>();
  return {};
}

}  // namespace

Status run_calibrate(Session& session, bool& cached) {
  if (!session.splits.calibrate) return input_error("calibrate: there is no calibration data. Give data.calibrate");
  session.fingerprint = stage_fingerprint(session, "calibrate", {session.splits.calibrate->fingerprint});
  auto artifact = session.cache.get("calibrate", session.fingerprint);
  cached = artifact.has_value();
  if (!cached) {
    CTK_TRY(artifact, collect(session));
    CTK_CHECK(session.cache.put("calibrate", session.fingerprint, *artifact));
  }
  return restore(session, *artifact);
}

}  // namespace ctk::pipeline

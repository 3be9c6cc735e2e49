// The calibrate stage: runs the float network over the calibration split and turns what it sees into ranges.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "compress/channel_means.h"
#include "compress/observer_choice.h"
#include "compress/quantize/notes.h"
#include "compress/session.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

// A sample that gives NaN or Inf inside the network.
struct BadSample {
  std::string value, reason;
};
using BadSamples = std::map<std::size_t, BadSample>;  // by position in the split

// Where observed values go, and which of their elements belong to which sample.
struct Observed {
  const graph::Graph& graph;
  std::vector<graph::ValueId> values;
  std::map<graph::ValueId, std::size_t> index_of;
  std::size_t batch = 1;  // samples at a time

  // Samples of a value in a batch of `count`: outer dimensions may be folded into the first, [N * tokens, features].
  std::size_t samples_in(const TensorView& data, std::size_t count) const {
    const auto outer = data.shape.empty() ? std::size_t{1} : static_cast<std::size_t>(data.shape[0]);
    return outer % count == 0 ? count : outer;
  }
};

// One walk over the split that finds every sample with NaN or Inf in an observed value. Errors: input (a bad value
// that belongs to no single sample).
Result<BadSamples> find_bad_samples(const Observed& observed, const data::Split& split) {
  BadSamples bad;
  std::size_t first = 0;
  const auto observe = [&](graph::ValueId id, const TensorView& data, bool) -> Status {
    const std::size_t count = std::min(observed.batch, split.count() - first);
    const auto values = data.values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) continue;
      const std::string& name = observed.graph.value(id).name;
      if (observed.samples_in(data, count) != count) {
        return input_error("value \"" + name + "\": expected finite numbers, found " + std::to_string(values[i]) +
                           ", which belongs to no single sample of the batch that could be skipped. Repair the data");
      }
      const std::size_t each = values.size() / count;
      bad.emplace(first + i / each, BadSample{name, "element " + std::to_string(i % each) + " is " +
                                                        (std::isnan(values[i]) ? "NaN" : "infinite")});
      i = (i / each + 1) * each - 1;  // on to the next sample
    }
    return {};
  };
  CTK_CHECK(for_each_batch(observed.graph, split, observe, observed.values,
                           [&](const std::vector<Tensor>&, const data::Batch&, std::size_t at) -> Status {
                             first = at + observed.batch;
                             return {};
                           }));
  return bad;
}

// Takes the bad samples out of the split and tells of them.
json leave_out(const BadSamples& bad, data::Split& split) {
  json rows = json::array();
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < split.indices.size(); ++i) {
    const auto found = bad.find(i);
    if (found == bad.end()) {
      kept.push_back(split.indices[i]);
      continue;
    }
    rows.push_back({{"position", i},
                    {"index", split.source->row(split.indices[i])},
                    {"sample", split.source->where(split.indices[i])},
                    {"tensor", found->second.value},
                    {"reason", found->second.reason}});
  }
  split.indices = std::move(kept);
  return rows;
}

Result<std::vector<calibrate::Range>> collect_ranges(Session& session, const Observed& observed,
                                                     const data::Split& split, ChannelMeans& means) {
  std::vector<std::string> names;
  for (graph::ValueId id : observed.values) names.push_back(observed.graph.value(id).name);
  calibrate::ObserverOptions options;
  const bool is_auto = session.config.calibrate->method == kAutoObserver;
  options.method = is_auto ? "mse" : session.config.calibrate->method;  // a histogram serves every observer
  options.percentile = session.config.calibrate->percentile;
  CTK_TRY(calibrate::RangeCollector collector, calibrate::RangeCollector::create(options, names));
  // This rank's run of blocks.
  Ranks& ranks = session.ranks();
  const SampleBlocks blocks{split.count(), observed.batch};
  const Share share = share_of(blocks.count(), ranks.rank(), ranks.size());
  const std::size_t begin = blocks.begin(share.begin), end = blocks.begin(share.end);
  data::Split mine = split;
  mine.indices.assign(split.indices.begin() + static_cast<std::ptrdiff_t>(begin),
                      split.indices.begin() + static_cast<std::ptrdiff_t>(end));
  const int passes = collector.passes();
  for (int pass = 0; pass < passes; ++pass) {
    CTK_CHECK(collector.begin_pass(pass));
    std::size_t first = begin;  // of the batch that is being observed
    const auto observe = [&](graph::ValueId id, const TensorView& data, bool channels_last) -> Status {
      if (pass == 0) means.observe(id, data, channels_last, blocks.of(first));
      const std::size_t count = std::min(observed.batch, end - first);
      return collector.observe(observed.index_of.at(id), data.values<float>(), first, observed.samples_in(data, count));
    };
    const auto each = [&](const std::vector<Tensor>&, const data::Batch& batch, std::size_t at) -> Status {
      const std::size_t done = at + (batch.inputs.empty() ? 0 : static_cast<std::size_t>(batch.inputs[0].shape()[0]));
      first = begin + done;
      const std::size_t seen = done * split.count() / (end - begin);  // as if all ranks were as far
      session.advance(static_cast<std::int64_t>(seen + static_cast<std::size_t>(pass) * split.count()) / passes);
      return {};
    };
    const Status status = for_each_batch(observed.graph, mine, observe, observed.values, each, observed.batch);
    if (ranks.is_alone()) {
      CTK_CHECK(status);
      continue;
    }
    // A sample that cannot be used is everybody's error, the first one in the split: all go the same way from here.
    const Result<std::string> shared = status ? Result<std::string>(collector.seen()) : status.error();
    CTK_TRY(const auto seen, ranks.gather_results("calibrate", shared));
    CTK_CHECK(collector.take(seen));
    if (pass > 0) continue;
    CTK_TRY(const auto sums, ranks.gather_results("calibrate means", means.seen()));
    CTK_CHECK(means.take(sums));
  }
  if (!is_auto) return collector.finish();
  std::vector<std::vector<calibrate::Range>> by_observer;
  for (const calibrate::Observer& observer : calibrate::observers()) {
    CTK_TRY(by_observer.emplace_back(), collector.finish_by(observer.name));
  }
  return choose_observers(session, by_observer);
}

Result<std::string> collect(Session& session) {
  const graph::Graph& graph = session.model.graph;
  CTK_TRY(std::vector<graph::ValueId> values, quantization::values_to_observe(graph, session.model.sample_shapes));
  Observed observed{graph, std::move(values), {}, 1};
  for (graph::ValueId id : observed.values) observed.index_of.emplace(id, observed.index_of.size());
  data::Split split = *session.splits.calibrate;
  observed.batch = batch_size(graph, split);
  json skipped = json::array();
  ChannelMeans means(graph, !session.ranks().is_alone());
  auto ranges = collect_ranges(session, observed, split, means);
  const bool may_skip = split.source->spec().on_bad_sample == data::BadSample::skip;
  if (!ranges && ranges.error().code == ErrorCode::input && may_skip) {
    CTK_TRY(const BadSamples bad, find_bad_samples(observed, split));
    if (bad.empty()) return std::move(ranges).error();
    if (bad.size() == split.count()) {
      return input_error(split.path() + ": expected samples that can be used, found none: all " +
                         std::to_string(bad.size()) + " were skipped, the first because value \"" +
                         bad.begin()->second.value + "\": " + bad.begin()->second.reason +
                         ". Repair the data or the model");
    }
    skipped = leave_out(bad, split);
    observed.batch = batch_size(graph, split);
    means = ChannelMeans(graph, !session.ranks().is_alone());
    ranges = collect_ranges(session, observed, split, means);
  }
  if (!ranges) return std::move(ranges).error();
  json rows = json::array();
  for (const calibrate::Range& range : *ranges) {
    rows.push_back({{"value", range.value},
                    {"low", range.low},
                    {"high", range.high},
                    {"count", range.count},
                    {"method", range.method},
                    {"source", range.note.empty() ? range.source : range.source + "; " + range.note}});
  }
  return json{{"ranges", rows}, {"means", means.to_json()}, {"skipped", skipped}}.dump(1);
}

// The split without the samples that were left out, so that what is counted later is what was seen.
Status restore_skipped(Session& session, const json& rows) {
  if (rows.empty()) return {};
  data::Split& split = *session.splits.calibrate;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const auto position = (*row)["position"].get<std::size_t>();
    if (position >= split.indices.size()) return internal_error("the calibrate artifact skips a sample there is not");
    split.indices.erase(split.indices.begin() + static_cast<std::ptrdiff_t>(position));
  }
  for (const json& row : rows) {
    session.report.skipped_samples.push_back({"calibrate", row["index"], row["sample"], row["tensor"], row["reason"]});
  }
  for (exporter::SplitRow& row : session.report.splits) {
    if (row.name == "calibrate") row.count = static_cast<std::int64_t>(split.count());
  }
  session.warn("samples_skipped", "calibrate: " + std::to_string(rows.size()) + " bad samples skipped, the first " +
                                      rows[0]["sample"].get<std::string>() + ", value \"" +
                                      rows[0]["tensor"].get<std::string>() +
                                      "\": " + rows[0]["reason"].get<std::string>());
  return {};
}

void take_figures(Session& session, const json& artifact) {
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
}

Status restore(Session& session, const std::string& text) {
  const json artifact = json::parse(text, nullptr, false);
  if (artifact.is_discarded()) return internal_error("the calibrate artifact is not JSON");
  take_figures(session, artifact);
  return restore_skipped(session, artifact["skipped"]);
}

}  // namespace

Status measure_ranges(Session& session) {
  CTK_TRY(const std::string found, collect(session));
  const json artifact = json::parse(found, nullptr, false);
  session.ranges.clear();
  session.input_means.clear();
  take_figures(session, artifact);
  return {};
}

Status run_calibrate(Session& session, bool& cached) {
  if (!session.splits.calibrate) return input_error("expected calibration data, found none. Give data.calibrate");
  std::vector<std::string> extra{session.splits.calibrate->fingerprint};
  if (session.config.calibrate->method == kAutoObserver && session.splits.score)
    extra.push_back(session.splits.score->fingerprint);
  session.fingerprint = stage_fingerprint(session, "calibrate", extra);
  auto artifact = session.cache.get("calibrate", session.fingerprint);
  cached = artifact.has_value();
  if (!cached) {
    CTK_TRY(artifact, collect(session));
    CTK_CHECK(session.cache.put("calibrate", session.fingerprint, *artifact));
  }
  return restore(session, *artifact);
}

}  // namespace ctk::pipeline

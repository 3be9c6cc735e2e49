// The sensitivity stage: what each layer costs under each scheme, by the metric of the pipeline file
// (sensitivity/metrics.h). Layers are scored alone, everything else float.
#include <nlohmann/json.hpp>

#include <filesystem>

#include "compress/patterns.h"
#include "compress/sensitivity/curves.h"
#include "compress/sensitivity/metrics.h"
#include "compress/sensitivity/score_store.h"
#include "compress/session.h"
#include "compress/summary.h"
#include "core/file.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

// Layers go to ranks by turns, each with all its candidates.
Result<std::vector<Score>> score_by_layers(const SensitivityMetric& metric, Session& session,
                                           const std::vector<Candidate>& candidates, ScoreStore& store) {
  Ranks& ranks = session.ranks();
  if (ranks.is_alone() || metric.divides) return metric.score({session, candidates, store});
  const auto size = static_cast<std::size_t>(ranks.size());
  std::vector<Candidate> mine;
  std::vector<std::size_t> rank_of;  // by candidate
  std::size_t layer = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i > 0 && candidates[i].address != candidates[i - 1].address) ++layer;
    rank_of.push_back(layer % size);
    if (rank_of.back() == static_cast<std::size_t>(ranks.rank())) mine.push_back(candidates[i]);
  }
  const auto score = [&]() -> Result<std::string> {
    if (mine.empty()) return encode({});
    CTK_TRY(const std::vector<Score> scores, metric.score({session, mine, store}));
    return encode(scores);
  };
  CTK_TRY(const auto parts, ranks.gather_results("sensitivity", score()));
  std::vector<std::vector<Score>> found;
  for (const std::string& part : parts) {
    CTK_TRY(std::vector<Score> scores, decode(part));
    found.push_back(std::move(scores));
  }
  std::vector<Score> all;
  std::vector<std::size_t> taken(size, 0);
  for (const std::size_t rank : rank_of) all.push_back(found[rank][taken[rank]++]);
  return all;
}

std::vector<Candidate> candidates_of(const Session& session, const std::vector<std::string>& addresses,
                                     const std::vector<bool>& is_free) {
  const graph::Graph& graph = session.model.graph;
  const std::vector<graph::Layer> layers = graph::layers_of(graph);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const QuantScheme& scheme : allowed_schemes(session.config)) {
      if (!is_free[i] || scheme == QuantScheme{} || !quantization::infeasible_reason(graph, layers[i], scheme).empty())
        continue;
      candidates.push_back({layers[i], addresses[i], scheme});
    }
  }
  return candidates;
}

Result<std::string> score_all(Session& session, const std::vector<Candidate>& candidates, ScoreStore& store) {
  CTK_TRY(const SensitivityMetric* metric, find_sensitivity_metric(session.config.sensitivity->metric));
  json rows = json::array();
  if (!candidates.empty()) {
    CTK_TRY(const std::vector<Score> scores, score_by_layers(*metric, session, candidates, store));
    for (const Score& score : scores) rows.push_back(row_of(score));
  }
  return json{{"metric", metric->name}, {"formula", metric->formula}, {"scores", rows}}.dump(1);
}

Status restore(Session& session, const std::string& text) {
  const json artifact = json::parse(text, nullptr, false);
  if (artifact.is_discarded()) return internal_error("the sensitivity artifact is not JSON");
  session.scores.clear();
  for (const json& row : artifact["scores"]) session.scores.push_back(score_of(row));
  return {};
}

Status write_curves(Session& session, const std::vector<Candidate>& candidates, ScoreStore& store) {
  const std::string path = session.output + "/sensitivity_curves.json";
  if (!session.config.sensitivity->curves) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return {};
  }
  auto curves = session.cache.get("curves", session.fingerprint);
  if (!curves) {
    CTK_TRY(curves, sensitivity_curves({session, candidates, store}));
    CTK_CHECK(session.cache.put("curves", session.fingerprint, *curves));
  }
  return write_file(path, *curves);
}

}  // namespace

Status run_sensitivity(Session& session, bool& cached) {
  if (!session.splits.score)
    return input_error("expected samples to score on, found none. Give data.calibrate or data.score");
  std::vector<std::string> addresses;
  for (const graph::Layer& layer : graph::layers_of(session.model.graph))
    addresses.push_back(session.model.graph.address(layer.node));
  const QuantizeConfig quantize = session.config.quantize.value_or(QuantizeConfig{});
  CTK_TRY(const std::vector<bool> is_free, select_layers(quantize.targets, quantize.ignore, addresses));
  std::vector<std::string> extra{session.splits.score->fingerprint};
  if (quantize.reduce_range) extra.push_back("reduce_range");
  ScoreStore store(session.cache, stage_fingerprint(session, "sensitivity", extra));
  for (const QuantScheme& scheme : allowed_schemes(session.config)) extra.push_back(to_string(scheme));
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (!is_free[i]) extra.push_back("without " + addresses[i]);
  }
  session.fingerprint = stage_fingerprint(session, "sensitivity", extra);
  const std::vector<Candidate> candidates = candidates_of(session, addresses, is_free);
  auto artifact = session.cache.get("sensitivity", session.fingerprint);
  cached = artifact.has_value();
  if (!cached) {
    CTK_TRY(artifact, score_all(session, candidates, store));
    CTK_CHECK(session.cache.put("sensitivity", session.fingerprint, *artifact));
  }
  CTK_CHECK(restore(session, *artifact));
  CTK_CHECK(write_curves(session, candidates, store));
  return write_file(session.output + "/scores.json", *artifact);
}

}  // namespace ctk::pipeline

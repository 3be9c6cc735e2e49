// The sensitivity stage: how much the outputs move when one layer alone takes one scheme.
// loss(layer, scheme) = mean over score samples of KL(softmax(float outputs) || softmax(outputs)), in nats.
// Cost: layers x schemes passes over the score split, with the integer kernels that will run the result. What is scored
// is kept at once, so that a stopped run goes on at the next layer.
#include <nlohmann/json.hpp>

#include <chrono>
#include <map>

#include "compress/patterns.h"
#include "compress/session.h"
#include "compress/summary.h"
#include "core/file.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

// Scores of this fingerprint that are known already, by (layer, scheme): a run that was stopped, or one that left other
// layers out, has them. Kept on disk while the stage works.
class ScoreStore {
 public:
  ScoreStore(const ArtifactCache& cache, std::string fingerprint)
      : cache_(cache), fingerprint_(std::move(fingerprint)), saved_(Clock::now()) {
    const auto text = cache_.get("scores", fingerprint_);
    const json rows = text ? json::parse(*text, nullptr, false) : json::array();
    for (const json& row : rows.is_array() ? rows : json::array()) rows_[{row["layer"], row["scheme"]}] = row;
  }

  const json* find(const std::string& layer, const std::string& scheme) const {
    const auto found = rows_.find({layer, scheme});
    return found == rows_.end() ? nullptr : &found->second;
  }

  Status add(const std::string& layer, const std::string& scheme, json row) {
    rows_[{layer, scheme}] = std::move(row);
    return Clock::now() - saved_ < std::chrono::seconds(2) ? Status() : save();
  }

  Status save() {
    saved_ = Clock::now();
    json rows = json::array();
    for (const auto& [key, row] : rows_) rows.push_back(row);
    return cache_.put("scores", fingerprint_, rows.dump());
  }

 private:
  using Clock = std::chrono::steady_clock;
  const ArtifactCache& cache_;
  std::string fingerprint_;
  std::map<std::pair<std::string, std::string>, json> rows_;
  Clock::time_point saved_;
};

Result<json> score_one(Session& session, const std::string& address, const QuantScheme& scheme,
                       const OutputCache& reference) {
  graph::Graph candidate = session.model.graph.clone();
  CTK_TRY(const auto applied,
          quantization::apply_schemes(candidate, {{address, scheme}}, session.ranges, session.plain_options()));
  CTK_TRY(const Evaluation result, evaluate(candidate, *session.splits.score, "", &reference));
  return json{{"layer", address},
              {"scheme", to_string(scheme)},
              {"loss", result.kl.value},
              {"standard_error", result.kl.standard_error}};
}

Result<std::string> score_all(Session& session, const std::vector<std::string>& addresses,
                              const std::vector<bool>& is_free, ScoreStore& store) {
  const graph::Graph& graph = session.model.graph;
  const std::vector<graph::Layer> layers = graph::layers_of(graph);
  std::optional<OutputCache> reference;
  json rows = json::array();
  std::int64_t done = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const QuantScheme& scheme : allowed_schemes(session.config)) {
      session.advance(++done);
      if (!is_free[i] || scheme == QuantScheme{} || !quantization::infeasible_reason(graph, layers[i], scheme).empty())
        continue;
      const std::string name = to_string(scheme);
      if (store.find(addresses[i], name) == nullptr) {
        if (!reference) {
          CTK_TRY(reference, collect_outputs(graph, *session.splits.score, session.output + "/.cache"));
        }
        CTK_TRY(json row, score_one(session, addresses[i], scheme, *reference));
        CTK_CHECK(store.add(addresses[i], name, std::move(row)));
      }
      rows.push_back(*store.find(addresses[i], name));
    }
  }
  if (reference) CTK_CHECK(store.save());
  return json{{"metric", "kl"},
              {"formula", "mean over samples of KL(softmax(float) || softmax(quantized)), nats"},
              {"scores", rows}}
      .dump(1);
}

Status restore(Session& session, const std::string& text) {
  const json artifact = json::parse(text, nullptr, false);
  if (artifact.is_discarded()) return internal_error("the sensitivity artifact is not JSON");
  session.scores.clear();
  for (const json& row : artifact["scores"]) {
    session.scores.push_back({row["layer"], row["scheme"], row["loss"], row["standard_error"]});
  }
  return {};
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
  auto artifact = session.cache.get("sensitivity", session.fingerprint);
  cached = artifact.has_value();
  if (!cached) {
    CTK_TRY(artifact, score_all(session, addresses, is_free, store));
    CTK_CHECK(session.cache.put("sensitivity", session.fingerprint, *artifact));
  }
  CTK_CHECK(restore(session, *artifact));
  return write_file(session.output + "/scores.json", *artifact);
}

}  // namespace ctk::pipeline

// The sensitivity stage: how much the outputs move when one layer alone takes one scheme.
// loss(layer, scheme) = mean over score samples of KL(softmax(float outputs) || softmax(outputs)), in nats.
// Cost: layers x schemes passes over the score split, with the integer kernels that will run the result.
#include <nlohmann/json.hpp>

#include "compress/session.h"
#include "compress/summary.h"
#include "core/file.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

Result<std::string> score_all(Session& session) {
  const graph::Graph& graph = session.model.graph;
  const data::Split& split = *session.splits.score;
  CTK_TRY(const OutputCache reference, collect_outputs(graph, split));
  json rows = json::array();
  std::int64_t done = 0;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    const std::string address = graph.address(layer.node);
    for (const QuantScheme& scheme : allowed_schemes(session.config)) {
      session.advance(++done);
      if (scheme == QuantScheme{} || !quantization::infeasible_reason(graph, layer, scheme).empty()) continue;
      graph::Graph candidate = graph.clone();
      CTK_TRY(const auto applied,
              quantization::apply_schemes(candidate, {{address, scheme}}, session.ranges, session.plain_options()));
      CTK_TRY(const Evaluation result, evaluate(candidate, split, "", &reference));
      rows.push_back({{"layer", address},
                      {"scheme", to_string(scheme)},
                      {"loss", result.kl.value},
                      {"standard_error", result.kl.standard_error}});
    }
  }
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
  std::vector<std::string> extra{session.splits.score->fingerprint};
  for (const QuantScheme& scheme : allowed_schemes(session.config)) extra.push_back(to_string(scheme));
  session.fingerprint = stage_fingerprint(session, "sensitivity", extra);
  auto artifact = session.cache.get("sensitivity", session.fingerprint);
  cached = artifact.has_value();
  if (!cached) {
    CTK_TRY(artifact, score_all(session));
    CTK_CHECK(session.cache.put("sensitivity", session.fingerprint, *artifact));
  }
  CTK_CHECK(restore(session, *artifact));
  return write_file(session.output + "/scores.json", *artifact);
}

}  // namespace ctk::pipeline

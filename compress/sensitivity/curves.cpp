// Minimises nothing: KL(softmax(float) || softmax(changed)), mean over score samples, nats, of networks that differ in
// which layers have a scheme. In: candidates. Out: five figures each, as JSON.
// Cost: up to five passes over the score split a candidate.
// Source: per-layer analysis as AIMET's QuantAnalyzer draws it (one on, one off). Differs: KL of outputs, standard
// errors, the accumulated view, and parts of weights and activations.
#include "compress/sensitivity/curves.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "compress/interrupt.h"
#include "compress/summary.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;
using nlohmann::json;
using quantization::SchemeMap;

class Curves {
 public:
  Curves(const ScoreTask& task, OutputCache reference) : task_(task), reference_(std::move(reference)) {}

  Result<json> row(std::size_t which) {
    const Candidate& candidate = task_.candidates[which];
    json line{{"layer", candidate.address}, {"scheme", to_string(candidate.scheme)}};
    CTK_TRY(line["on"], of({{candidate.address, candidate.scheme}}));
    const QuantScheme& scheme = candidate.scheme;
    const bool rounds_as_it_runs = scheme.granularity == Granularity::per_group && scheme.activation_bits == 8;
    if (!scheme.is_integer_activation() && !rounds_as_it_runs) {
      line["weights"] = line["on"];
      line["activations"] = {{"loss", 0.0}, {"standard_error", 0.0}};
    } else {
      CTK_TRY(line["weights"], weights_of(candidate));
      line["activations"] = json();
      if (!rounds_as_it_runs) {
        CTK_TRY(line["activations"], activations_of(candidate));
      }
    }
    SchemeMap others, first;
    for (std::size_t i = 0; i < task_.candidates.size(); ++i) {
      const Candidate& other = task_.candidates[i];
      if (!(other.scheme == scheme)) continue;
      if (i != which) others[other.address] = scheme;
      if (i <= which) first[other.address] = scheme;
    }
    CTK_TRY(line["off"], of(others));
    CTK_TRY(line["accumulated"], of(first));
    return line;
  }

 private:
  Result<json> measure(const Graph& changed) {
    CTK_CHECK(check_interrupt());
    CTK_TRY(const Evaluation found, evaluate(changed, *task_.session.splits.score, "", &reference_));
    return json{{"loss", found.kl.value}, {"standard_error", found.kl.standard_error}};
  }

  Result<Graph> coded(const SchemeMap& schemes) const {
    Graph changed = task_.session.model.graph.clone();
    CTK_CHECK(quantization::apply_schemes(changed, schemes, task_.session.ranges, task_.session.plain_options()));
    return changed;
  }

  Result<json> of(const SchemeMap& schemes) {
    CTK_TRY(const Graph changed, coded(schemes));
    return measure(changed);
  }

  // The float network with the numbers that the codes stand for.
  Result<json> weights_of(const Candidate& candidate) {
    CTK_TRY(const Graph changed, coded({{candidate.address, candidate.scheme}}));
    const graph::Value& weight = changed.value(changed.node(candidate.layer.node).inputs[1]);
    Graph plain = task_.session.model.graph.clone();
    plain.set_input(candidate.layer.node, 1,
                    plain.add_constant(plain.unique_name(weight.name + "_rounded"), dequantize(*weight.quantized)));
    return measure(plain);
  }

  // The coded network with the float weight.
  Result<json> activations_of(const Candidate& candidate) {
    CTK_TRY(Graph changed, coded({{candidate.address, candidate.scheme}}));
    const graph::Value& weight = task_.session.model.graph.value(candidate.layer.weight);
    changed.set_input(candidate.layer.node, 1,
                      changed.add_constant(changed.unique_name(weight.name + "_float"), *weight.constant));
    changed.node(candidate.layer.node).scheme = {};
    return measure(changed);
  }

  const ScoreTask& task_;
  OutputCache reference_;
};

}  // namespace

Result<std::string> sensitivity_curves(const ScoreTask& task) {
  const data::Split& split = *task.session.splits.score;
  CTK_TRY(OutputCache reference, collect_outputs(task.session.model.graph, split, task.session.output + "/.cache"));
  Curves curves(task, std::move(reference));
  // Scheme after scheme: each is a curve over layers.
  std::vector<std::size_t> order(task.candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const std::vector<QuantScheme> schemes = allowed_schemes(task.session.config);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::ranges::find(schemes, task.candidates[i].scheme) - schemes.begin();
  });
  json rows = json::array();
  for (std::size_t i : order) {
    CTK_TRY(json line, curves.row(i));
    rows.push_back(std::move(line));
  }
  return json{{"unit", "nats"}, {"samples", split.count()}, {"curves", std::move(rows)}}.dump(1) + "\n";
}

}  // namespace ctk::pipeline

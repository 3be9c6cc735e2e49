// The transform stage: the float network made easier to code, method after method; one that makes the coded network
// worse on the select split is dropped.
#include <nlohmann/json.hpp>

#include "compress/contest.h"
#include "compress/network_stage.h"
#include "compress/summary.h"
#include "compress/transform/methods.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

json figure(const exporter::Figure& value) {
  return value ? json(*value) : json();
}
exporter::Figure figure_of(const json& value) {
  return value.is_number() ? exporter::Figure(value.get<double>()) : exporter::Figure{};
}

// The scheme each layer is judged by: quantize's own, or the fewest bits the search may give it.
Result<quantization::SchemeMap> judged_schemes(Session& session) {
  const QuantizeConfig& config = *session.config.quantize;
  const graph::Graph& graph = session.model.graph;
  CTK_TRY(const auto layers, session.target_layers(config.targets, config.ignore));
  quantization::SchemeMap schemes;
  for (const graph::Layer& layer : layers) {
    const bool is_embedding = std::ranges::any_of(graph.value(layer.weight).consumers, [&](graph::NodeId reader) {
      return graph.node(reader).op == graph::Op::Gather;
    });
    std::vector<QuantScheme> choices = allowed_schemes(session.config, graph.address(layer.node));
    std::ranges::stable_sort(choices, {}, [](const QuantScheme& scheme) { return scheme.weight_bits; });
    for (const QuantScheme& scheme : choices) {
      if (!scheme.is_integer_weight() || (is_embedding && !scheme.is_integer_activation())) continue;
      if (!quantization::infeasible_reason(graph, layer, scheme).empty()) continue;
      schemes.emplace(graph.address(layer.node), scheme);
      break;
    }
  }
  if (schemes.empty()) return no_layer_error(session, session.report.skipped);
  return schemes;
}

// Networks are judged as the pipeline codes them, each from ranges and inputs of its own.
class Judge {
 public:
  static Result<Judge> open(Session& session, const quantization::SchemeMap& schemes) {
    Judge judge(session, schemes);
    if (!session.splits.select) return judge;
    CTK_TRY(judge.split_, compared_part(session));
    CTK_TRY(judge.reference_, collect_outputs(session.model.graph, *judge.split_, session.output + "/.cache"));
    return judge;
  }

  bool can_judge() const { return split_.has_value(); }

  Result<exporter::TransformTrialRow> measure(const std::string& methods, const graph::Graph& graph) const {
    graph::Graph original = std::exchange(session_->model.graph, graph.clone());
    auto coded = code();
    session_->model.graph = std::move(original);
    if (!coded) return std::move(coded).error();
    CTK_TRY(const Evaluation found, evaluate(*coded, *split_, "", &*reference_));
    return exporter::TransformTrialRow{methods, found.kl.value, found.kl.standard_error, false};
  }

 private:
  Judge(Session& session, const quantization::SchemeMap& schemes) : session_(&session), schemes_(&schemes) {}

  // The session's network, coded; what coding leaves in the session is undone.
  Result<graph::Graph> code() const {
    Session& session = *session_;
    exporter::Report report = session.report;
    std::vector<Finalist> finalists = std::exchange(session.finalists, {{*schemes_, {}, "transformed", {}, {}}});
    auto coded = [&]() -> Result<graph::Graph> {
      if (session.config.calibrate) CTK_CHECK(measure_ranges(session));
      CTK_TRY(Contest contest, hold_contest(session));
      return std::move(contest.taken.graph);
    }();
    session.report = std::move(report);
    session.finalists = std::move(finalists);
    session.ranges.clear();
    session.input_means.clear();
    return coded;
  }

  Session* session_;
  const quantization::SchemeMap* schemes_;
  std::optional<data::Split> split_;
  std::optional<OutputCache> reference_;
};

json to_json(const std::vector<exporter::TransformRow>& rows, const std::vector<exporter::TransformTrialRow>& trials) {
  json notes{{"rows", json::array()}, {"trials", json::array()}};
  for (const exporter::TransformRow& row : rows) {
    notes["rows"].push_back({{"method", row.method},
                             {"layers", row.layers},
                             {"where", row.where},
                             {"strength", figure(row.strength)},
                             {"before", figure(row.error_before)},
                             {"after", figure(row.error_after)},
                             {"reason", row.reason}});
  }
  for (const exporter::TransformTrialRow& row : trials) {
    notes["trials"].push_back({{"methods", row.methods},
                               {"measured", figure(row.measured)},
                               {"standard_error", figure(row.standard_error)},
                               {"kept", row.is_kept}});
  }
  return notes;
}

// Formats whose files name an architecture have no place for a Mul of our own.
bool writes_a_fixed_form(const PipelineConfig& config) {
  return config.exports && std::ranges::any_of(config.exports->formats, [](const std::string& format) {
           return format == "gguf" || format == "safetensors";
         });
}

transform::Request request_for(const Session& session, const graph::Graph& graph,
                               const quantization::SchemeMap& schemes) {
  const TransformConfig& config = *session.config.transform;
  transform::Request request{graph, session.model.sample_shapes, schemes, &*session.splits.calibrate, {}, {}};
  if (session.config.calibrate) {
    request.observer.method = session.config.calibrate->method;
    request.observer.percentile = session.config.calibrate->percentile;
  }
  request.strength = config.strength;
  request.insert_mul = config.insert_mul && !writes_a_fixed_form(session.config);
  request.fits_by_inputs = quantization::needs_inputs(session.config.quantize->method);
  request.seed = session.config.seed;
  return request;
}

Result<ChangedNetwork> change(Session& session) {
  const std::vector<std::string>& methods = session.config.transform->methods;
  CTK_TRY(const auto schemes, judged_schemes(session));
  CTK_TRY(const Judge judge, Judge::open(session, schemes));
  std::vector<exporter::TransformRow> rows;
  std::vector<exporter::TransformTrialRow> trials;
  std::size_t best = 0;
  if (judge.can_judge()) {
    CTK_TRY(auto trial, judge.measure("none", session.model.graph));
    trials.push_back(std::move(trial));
  }
  graph::Graph network = session.model.graph.clone();
  std::string kept;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    transform::Request request = request_for(session, network, schemes);
    const auto work = static_cast<std::int64_t>(100);
    request.progress = [&](std::size_t done, std::size_t total) {
      session.advance(static_cast<std::int64_t>(i) * work +
                      work * static_cast<std::int64_t>(done) / static_cast<std::int64_t>(total));
    };
    CTK_TRY(transform::Transformed found, transform::find_method(methods[i])->run(request));
    rows.insert(rows.end(), found.rows.begin(), found.rows.end());
    const std::string together = (kept.empty() ? "" : kept + " + ") + methods[i];
    if (judge.can_judge()) {
      CTK_TRY(auto trial, judge.measure(together, found.graph));
      trials.push_back(std::move(trial));
      if (!(*trials.back().measured < *trials[best].measured)) continue;
      best = trials.size() - 1;
    }
    kept = together;
    network = std::move(found.graph);
  }
  if (!trials.empty()) trials[best].is_kept = true;
  return ChangedNetwork{std::move(network), to_json(rows, trials).dump()};
}

Status report_notes(Session& session, const std::string& text) {
  const json notes = json::parse(text, nullptr, false);
  if (notes.is_discarded()) return internal_error("the notes of transform are not JSON");
  for (const json& row : notes["rows"]) {
    session.report.transforms.push_back({row["method"], row["layers"], row["where"], figure_of(row["strength"]),
                                         figure_of(row["before"]), figure_of(row["after"]), row["reason"]});
  }
  std::string kept;
  for (const json& row : notes["trials"]) {
    session.report.transform_trials.push_back(
        {row["methods"], figure_of(row["measured"]), figure_of(row["standard_error"]), row["kept"]});
    if (row["kept"]) kept = row["methods"];
  }
  if (notes["trials"].empty()) return {};
  for (const std::string& method : session.config.transform->methods) {
    if ((" + " + kept + " + ").find(" + " + method + " + ") != std::string::npos) continue;
    session.warn("transform_dropped", "on the select split the coded network is not better with " + method +
                                          ", which was dropped; the rows under transform_trials say by how much");
  }
  return {};
}

}  // namespace

std::int64_t transform_work(const Session& session) {
  return 100 * static_cast<std::int64_t>(session.config.transform->methods.size());
}

Status prepare_transform(const Session& session) {
  if (!session.config.transform || !session.config.has_stage("transform")) return {};
  for (const std::string& method : session.config.transform->methods) {
    const std::string why = transform::find_method(method)->refusal(session.model.graph);
    if (!why.empty()) return config_error("stages.transform.methods: " + method + ": " + why);
  }
  return {};
}

Status run_transform(Session& session, bool& cached) {
  std::string notes;
  const std::vector<std::string> extra{
      std::to_string(session.config.seed),
      session.config.fingerprint_of({"stages.quantize", "stages.search.schemes", "stages.calibrate"}),
      writes_a_fixed_form(session.config) ? "fixed form" : ""};
  const Status status = run_network_stage(
      session, "transform", extra, {}, [&] { return change(session); }, cached, notes);
  if (!notes.empty()) CTK_CHECK(report_notes(session, notes));
  return status;
}

}  // namespace ctk::pipeline

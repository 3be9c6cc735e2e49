// The quantize stage: applies the scheme of every layer and keeps the coded graph as an artifact.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "compress/assignment.h"
#include "compress/contest.h"
#include "compress/mapped_artifact.h"
#include "compress/quantize/tune_blocks.h"
#include "compress/revert.h"
#include "compress/session.h"
#include "core/file.h"
#include "core/hash.h"
#include "export/bundle.h"
#include "graph/layer.h"
#include "runtime/bundle.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

// The schemes to apply: what search chose, or the stage's own scheme for every layer it can be used on.
Status choose_schemes(Session& session) {
  const QuantizeConfig& config = *session.config.quantize;
  const std::vector<exporter::SkippedRow> told = session.report.skipped;  // what search found out about schemes
  CTK_TRY(const std::vector<graph::Layer> layers, session.target_layers(config.targets, config.ignore));
  if (!config.has_schemes()) {
    std::vector<exporter::SkippedRow>& skipped = session.report.skipped;
    std::ranges::copy_if(told, std::back_inserter(skipped), [&skipped](const exporter::SkippedRow& row) {
      return std::ranges::none_of(skipped, [&row](const exporter::SkippedRow& other) { return row == other; });
    });
  }
  if (config.scheme) {
    session.schemes.clear();
    session.reasons.clear();
    for (const graph::Layer& layer : layers) {
      const std::string address = session.model.graph.address(layer.node);
      std::string reason = quantization::infeasible_reason(session.model.graph, layer, *config.scheme);
      const bool keeps_floats = config.scheme->is_integer_weight() && !config.scheme->is_integer_activation();
      if (reason.empty() && keeps_floats && config.targets.empty() && is_embedding_too(session.model.graph, layer)) {
        reason =
            "its weight is the embedding too, which few bits harm most; name it in stages.quantize.targets to code "
            "both";
      }
      if (reason.empty()) {
        session.schemes[address] = *config.scheme;
        session.reasons[address] = "the scheme asked for";
      } else {
        session.report.skipped.push_back({address, session.model.graph.node(layer.node).op_type, reason});
      }
    }
  }
  if (!config.assignment.empty()) CTK_CHECK(take_assignment(session, layers));
  if (session.schemes.empty()) {
    return no_layer_error(session, session.report.skipped);
  }
  bool is_integer = false;
  for (const auto& [address, scheme] : session.schemes) is_integer = is_integer || scheme.is_integer_activation();
  if (is_integer && session.ranges.empty()) {
    return config_error(
        "stages.quantize: integer activations need ranges, found no calibrate stage before it. Add one");
  }
  return {};
}

// Layers that rounding served better than the method asked for, or that no sample reached.
void warn_of_fallbacks(Session& session, const json& layers) {
  std::string fallen, unseen;
  for (const json& row : layers) {
    if (row.value("fell_back", false)) fallen += (fallen.empty() ? "" : ", ") + row["layer"].get<std::string>();
    if (row.contains("rows") && row["rows"] == 0)
      unseen += (unseen.empty() ? "" : ", ") + row["layer"].get<std::string>();
  }
  const char* start = quantization::tunes_blocks(session.config.quantize->method) ? "where it started" : "rounding";
  if (!fallen.empty())
    session.warn("fell_back", std::string("on held-out samples ") + start + " was better than " +
                                  session.config.quantize->method + " for these layers, which keep it: " + fallen);
  if (!unseen.empty()) session.warn("unreached", "no calibration sample reached these layers: " + unseen);
}

json row_of(const exporter::FinalistRow& row) {
  const auto figure = [](const exporter::Figure& value) { return value ? json(*value) : json(); };
  return {{"name", row.name},
          {"method", row.method},
          {"predicted", figure(row.predicted)},
          {"measured", figure(row.measured)},
          {"standard_error", figure(row.standard_error)},
          {"metric", figure(row.metric)},
          {"chosen", row.is_chosen},
          {"codes", row.codes}};
}

exporter::FinalistRow row_from(const json& line) {
  const auto figure = [&](const char* key) {
    return line[key].is_null() ? exporter::Figure{} : exporter::Figure{line[key].get<double>()};
  };
  return {line["name"],     line["method"], figure("predicted"), figure("measured"), figure("standard_error"),
          figure("metric"), line["chosen"], line["codes"]};
}

json describe(const Reverted& reverted) {
  const exporter::FloorPart& part = reverted.part;
  json layers = json::array(), schemes = json::object();
  for (const exporter::RevertRow& row : part.layers) {
    layers.push_back({{"name", row.name},
                      {"from", row.from},
                      {"to", row.to},
                      {"benefit", row.benefit ? json(*row.benefit) : json()},
                      {"bytes", row.bytes},
                      {"kept", row.is_kept}});
  }
  for (const auto& [layer, scheme] : reverted.schemes) schemes[layer] = to_string(scheme);
  return {{"metric", part.metric},
          {"limit", part.limit},
          {"drop_before", *part.drop_before},
          {"drop_after", *part.drop_after},
          {"kl_before", *part.kl_before},
          {"kl_after", *part.kl_after},
          {"evaluations", part.evaluations},
          {"most_evaluations", part.most_evaluations},
          {"layers", layers},
          {"schemes", schemes}};
}

// What losses were put right by, and the networks found so.
json describe_rounds(const Contest& contest) {
  json rounds = json::array(), further = json::array(), gains = json::array();
  for (const exporter::LossRoundRow& row : contest.rounds) {
    rounds.push_back({{"predicted", *row.predicted},
                      {"measured", *row.measured},
                      {"scale", row.scale},
                      {"changed", row.changed},
                      {"result", row.result}});
  }
  for (const Finalist& finalist : contest.further) {
    json schemes = json::object();
    for (const auto& [layer, scheme] : finalist.schemes) schemes[layer] = to_string(scheme);
    further.push_back({{"schemes", schemes},
                       {"reasons", finalist.reasons},
                       {"origin", finalist.origin},
                       {"loss", *finalist.predicted_loss},
                       {"predicted", finalist.predicted}});
  }
  json line{{"rounds", rounds}, {"finalists", further}};
  if (!contest.correction) return line;
  for (const auto& [key, gain] : contest.correction->gains)
    gains.push_back({{"layer", key.first}, {"scheme", key.second}, {"gain", gain}});
  line["correction"] = {{"scale", contest.correction->scale}, {"layers", gains}};
  return line;
}

// Its networks join the session's; what they put right goes beside the search's files.
Status take_rounds(Session& session, const json& line) {
  for (const json& row : line["finalists"]) {
    Finalist finalist;
    finalist.reasons = row["reasons"].get<std::map<std::string, std::string>>();
    finalist.origin = row["origin"];
    finalist.predicted_loss = row["loss"].get<double>();
    finalist.predicted = row["predicted"].get<std::map<std::string, double>>();
    for (const auto& [layer, scheme] : row["schemes"].items()) {
      CTK_TRY(finalist.schemes[layer], parse_scheme(scheme.get<std::string>()));
    }
    session.finalists.push_back(std::move(finalist));
  }
  if (!session.report.certificate) return {};
  session.report.certificate->rounds.clear();
  for (const json& row : line["rounds"]) {
    session.report.certificate->rounds.push_back(
        {row["predicted"].get<double>(), row["measured"].get<double>(), row["scale"], row["changed"], row["result"]});
  }
  if (!line.contains("correction")) return {};
  return write_file(session.output + "/search/corrections.json", line["correction"].dump(1) + "\n");
}

// The network that came back within the floor is the session's.
Status take_reverted(Session& session, const json& line) {
  exporter::FloorPart part{line["metric"],
                           line["limit"],
                           line["drop_before"].get<double>(),
                           line["drop_after"].get<double>(),
                           line["kl_before"].get<double>(),
                           line["kl_after"].get<double>(),
                           line["evaluations"],
                           line["most_evaluations"],
                           {}};
  std::string kept;
  for (const json& row : line["layers"]) {
    exporter::RevertRow found{row["name"], row["from"], row["to"], {}, row["bytes"], row["kept"]};
    if (row["benefit"].is_number()) found.benefit = row["benefit"].get<double>();
    if (found.is_kept) {
      kept += (kept.empty() ? "" : ", ") + found.name + " " + found.from + " -> " + found.to;
      session.reasons[found.name] = "given back precision (" + found.from + " -> " + found.to +
                                    ") to keep budget.metric_drop on the select split";
    }
    part.layers.push_back(std::move(found));
  }
  for (const auto& [layer, scheme] : line["schemes"].items()) {
    CTK_TRY(session.schemes[layer], parse_scheme(scheme.get<std::string>()));
  }
  // Of the network as it was before.
  for (const char* name : {"size", "latency", "peak_memory", "bits", "loss", "latency.decode", "latency.prefill"})
    session.predicted.erase(name);
  session.warn("precision_returned",
               "on the select split the network broke budget.metric_drop; given back precision: " + kept);
  session.report.floor = std::move(part);
  return {};
}

std::string describe(const Contest& contest, const std::optional<Reverted>& reverted) {
  const quantization::ApplyOutcome& outcome = contest.taken.outcome;
  json layers = json::array();
  for (const quantization::LayerOutcome& l : outcome.layers) {
    json row{{"layer", l.address},
             {"scheme", to_string(l.scheme)},
             {"method", l.method},
             {"error_rtn", l.error_rtn},
             {"error_method", l.error_method},
             {"raised", l.raised_scales},
             {"bias_corrected", l.bias_corrected}};
    if (l.receipt) {
      row["rows"] = l.receipt->rows;
      row["held_out_rows"] = l.receipt->held_out_rows;
      row["damping"] = l.receipt->damping;
      row["damping_raises"] = l.receipt->damping_raises;
      row["error_rtn"] = l.receipt->error_rounding;
      row["error_method"] = l.receipt->error;
      row["fell_back"] = l.receipt->fell_back;
    }
    layers.push_back(std::move(row));
  }
  json warnings = json::array();
  for (const quantization::ApplyWarning& w : outcome.warnings) warnings.push_back({{"code", w.code}, {"text", w.text}});
  json rows = json::array();
  for (const exporter::FinalistRow& row : contest.rows) rows.push_back(row_of(row));
  json all{{"layers", layers}, {"warnings", warnings}, {"finalist", contest.finalist}, {"finalists", rows}};
  all["corrected"] = describe_rounds(contest);
  if (reverted) all["floor"] = describe(*reverted);
  for (const exporter::TransformRow& row : contest.taken.corrections) {
    all["corrections"].push_back({{"layer", row.layers},
                                  {"where", row.where},
                                  {"before", row.error_before ? json(*row.error_before) : json()},
                                  {"after", row.error_after ? json(*row.error_after) : json()},
                                  {"reason", row.reason}});
  }
  return all.dump(1);
}

// The network that was taken: from here on its schemes are the session's.
Status take_finalist(Session& session, const json& outcome) {
  const Finalist& taken = session.finalists[outcome["finalist"].get<std::size_t>()];
  session.schemes = taken.schemes;
  session.reasons = taken.reasons;
  for (const auto& [name, value] : taken.predicted) session.predicted[name] = value;
  if (outcome.contains("floor")) CTK_CHECK(take_reverted(session, outcome["floor"]));
  list_losses(session);
  if (session.config.search) {  // the stage left that of the first finalist
    json assignment = json::object();
    for (const auto& [layer, scheme] : session.schemes) assignment[layer] = to_string(scheme);
    CTK_CHECK(write_file(session.output + "/search/assignment.json", assignment.dump(1) + "\n"));
  }
  exporter::Report& report = session.report;
  for (const json& line : outcome["finalists"]) report.finalists.push_back(row_from(line));
  const auto chosen = std::ranges::find_if(report.finalists, &exporter::FinalistRow::is_chosen);
  if (chosen == report.finalists.end()) return {};
  if (report.certificate && chosen->predicted && *chosen->predicted > 0)
    report.certificate->loss_scale = *chosen->measured / *chosen->predicted;
  const std::string& asked = session.config.quantize->method;
  if (chosen->method == asked) return {};
  const std::string better = chosen->method == "rtn" ? "rounded to nearest" : "by " + chosen->method;
  session.warn("method_replaced", "on the select split the network " + better + " is better than by " + asked + " (" +
                                      chosen->method + " was kept); the rows under finalists say by how much");
  return {};
}

// The codes of the layer with this address; null when it stayed float.
std::shared_ptr<const QuantTensor> stored_weight(const graph::Graph& graph, const std::string& address) {
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    if (graph.address(layer.node) == address) return graph.value(layer.weight).quantized;
  }
  return nullptr;
}

void fill_report(Session& session, const json& outcome) {
  exporter::Report& report = session.report;
  std::map<std::string, json> by_layer;
  for (const json& row : outcome["layers"]) by_layer[row["layer"]] = row;
  for (exporter::LayerRow& line : report.layers) {
    const auto reason = session.reasons.find(line.name);
    if (reason != session.reasons.end()) line.reason = reason->second;
    const auto found = by_layer.find(line.name);
    if (found == by_layer.end()) {  // float: because it was left out, or by choice of the search
      for (const exporter::SkippedRow& row : report.skipped) {
        if (row.name == line.name) line.reason = row.reason;
      }
      continue;
    }
    line.scheme = found->second["scheme"];
    line.method = found->second["method"];
    line.error_rtn = found->second["error_rtn"].get<double>();
    line.error_method = found->second["error_method"].get<double>();
    if (const auto stored = stored_weight(*session.quantized, line.name)) {
      line.bytes = static_cast<std::int64_t>(stored_bytes(*stored));
      line.weight_bits = 8.0 * static_cast<double>(line.bytes) / static_cast<double>(stored->codes.size());
    }
    if (found->second.contains("rows")) {
      line.rows_seen = found->second["rows"].get<std::int64_t>();
      continue;
    }
    line.rows_seen = session.splits.calibrate ? static_cast<std::int64_t>(session.splits.calibrate->count()) : 0;
  }
  const json corrections = outcome.value("corrections", json::array());
  for (const json& row : corrections) {
    const auto figure = [&](const char* key) {
      return row[key].is_null() ? exporter::Figure{} : exporter::Figure{row[key].get<double>()};
    };
    report.transforms.push_back(
        {"low_rank", row["layer"], row["where"], {}, figure("before"), figure("after"), row["reason"]});
  }
  warn_of_fallbacks(session, outcome["layers"]);
  for (const json& w : outcome["warnings"]) session.warn(w["code"].get<std::string>(), w["text"].get<std::string>());
}

}  // namespace

bool is_embedding_too(const graph::Graph& graph, const graph::Layer& layer) {
  return std::ranges::any_of(graph.value(layer.weight).consumers,
                             [&](graph::NodeId id) { return graph.node(id).op == graph::Op::Gather; });
}

std::int64_t quantize_work(const Session& session) {
  return static_cast<std::int64_t>(graph::layers_of(session.model.graph).size());
}

Status run_quantize(Session& session, bool& cached) {
  CTK_CHECK(choose_schemes(session));
  const bool has_file = !session.config.quantize->assignment.empty();
  if (session.config.quantize->has_schemes()) session.finalists.clear();
  if (session.finalists.empty())
    session.finalists.push_back(
        {session.schemes, session.reasons, has_file ? "the assignment asked for" : "the scheme asked for", {}, {}});
  const std::size_t asked = session.finalists.size();
  std::vector<std::string> extra{session.config.fingerprint_of({"stages.search.corrections"})};
  for (const Finalist& finalist : session.finalists) {
    for (const auto& [address, scheme] : finalist.schemes) extra.push_back(address + "=" + to_string(scheme));
  }
  if (quantization::tunes_blocks(session.config.quantize->method)) extra.push_back(std::to_string(session.config.seed));
  const bool holds_floor = session.config.budget.metric_drop && session.splits.select;
  if (needs_contest(session) || holds_floor) extra.push_back(session.splits.select->fingerprint);
  if (holds_floor) extra.push_back(session.config.fingerprint_of({"budget", "data.evaluate.metric"}));
  session.fingerprint = stage_fingerprint(session, "quantize", extra);
  auto outcome = session.cache.get("quantize", session.fingerprint);
  auto bundle = map_artifact(session.cache, "quantized", session.fingerprint);
  cached = outcome.has_value() && bundle.has_value();
  if (!cached) {
    CTK_TRY(Contest contest, hold_contest(session));
    session.finalists.insert(session.finalists.end(), contest.further.begin(), contest.further.end());
    std::optional<Reverted> reverted;
    CTK_TRY(auto floor, Floor::open(session));
    if (floor) {
      CTK_TRY(reverted, revert_to_floor(session, *floor, contest));
    }
    if (reverted) contest.taken = std::move(reverted->network);
    outcome = describe(contest, reverted);
    std::string bytes = exporter::bundle_of(contest.taken.graph);
    CTK_CHECK(session.cache.put("quantized", session.fingerprint, bytes));
    CTK_CHECK(session.cache.put("quantize", session.fingerprint, *outcome));
    std::error_code ignored;  // what is left over is found by nobody
    std::filesystem::remove_all(codes_folder(session), ignored);
    bundle.reset();
    if (session.cache.is_shared()) {  // what training tuned may differ in last bits from rank to rank
      CTK_TRY(outcome, session.ranks().from_first("quantize", *outcome));
      CTK_TRY(bytes, session.ranks().from_first("quantized", bytes));
      bundle = held_artifact(std::move(bytes));
    }
  }
  // The graph is taken from the artifact either way, so that a resumed run cannot differ from a straight one.
  if (!bundle) bundle = map_artifact(session.cache, "quantized", session.fingerprint);
  if (!bundle) return internal_error("the quantized network cannot be read back");
  CTK_TRY(session.quantized, runtime::load_bundle_bytes(bundle->bytes, bundle->owner));
  const json parsed = json::parse(*outcome, nullptr, false);
  if (parsed.is_discarded()) return internal_error("the quantize artifact is not JSON");
  session.finalists.resize(asked);
  CTK_CHECK(take_rounds(session, parsed["corrected"]));
  CTK_CHECK(take_finalist(session, parsed));
  fill_report(session, parsed);
  return {};
}

}  // namespace ctk::pipeline

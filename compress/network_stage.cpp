#include "compress/network_stage.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "compress/gate.h"
#include "compress/names.h"
#include "compress/select_metric.h"
#include "compress/summary.h"
#include "export/bundle.h"
#include "graph/layer.h"
#include "runtime/bundle.h"
#include "runtime/measure.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

json figure(double value) {
  return std::isfinite(value) ? json(value) : json();
}
exporter::Figure figure(const json& value) {
  return value.is_number() ? exporter::Figure(value.get<double>()) : exporter::Figure{};
}

const graph::Graph& network_of(const Session& session, NetworkKind kind) {
  return kind == NetworkKind::coded ? *session.quantized : session.model.graph;
}

Status require_same_ports(const graph::Graph& before, std::string_view stage, const graph::Graph& changed) {
  const auto names = [](const graph::Graph& graph, const auto& ids) {
    std::string text;
    for (const graph::ValueId id : ids) text += graph.value(id).name + "\n";
    return text;
  };
  if (names(before, before.inputs()) == names(changed, changed.inputs()) &&
      names(before, before.outputs()) == names(changed, changed.outputs()))
    return {};
  return internal_error("stage " + std::string(stage) + " changed the inputs or outputs of the network");
}

std::int64_t weight_bytes(const graph::Graph& graph) {
  std::int64_t bytes = 0;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    const graph::Value& weight = graph.value(layer.weight);
    if (weight.quantized)
      bytes += static_cast<std::int64_t>(stored_bytes(*weight.quantized));
    else if (weight.constant)
      bytes += static_cast<std::int64_t>(4 * weight.constant->size());
  }
  return bytes;
}

Result<json> measure(Session& session, NetworkKind kind, graph::Graph& changed) {
  json row;
  if (session.splits.select) {
    CTK_TRY(const SelectMetric metric, SelectMetric::open(session));
    CTK_TRY(const double before, metric.of(network_of(session, kind)));
    CTK_TRY(const double after, metric.of(changed));
    row = {{"metric", metric.name()}, {"metric_before", figure(before)}, {"metric_after", figure(after)}};
  }
  const graph::Graph* const one[] = {&changed};
  CTK_TRY(const std::vector<double> times, median_times_us(session, one));
  row["latency_us"] = figure(times[0]);
  row["parameters"] = parameter_count(changed);
  row["weight_bytes"] = weight_bytes(changed);
  std::swap(session.model.graph, changed);  // multiply-adds are counted on the model
  row["macs"] = total_macs(session.model);
  std::swap(session.model.graph, changed);
  return row;
}

void state(Session& session, const json& row) {
  exporter::StageRow& line = session.stage_row;
  line.metric_before = figure(row.value("metric_before", json()));
  line.metric_after = figure(row.value("metric_after", json()));
  line.latency_us = figure(row["latency_us"]);
  line.parameters = figure(row["parameters"]);
  line.weight_bytes = figure(row["weight_bytes"]);
  line.macs = figure(row["macs"]);
}

// Nothing to say when met; the verdict's words when not.
Result<std::string> refusal(std::string_view stage, const GateConfig& gate, const json& row) {
  const std::string key = "stages." + std::string(stage) + "." + gate.key;
  if (!row.contains("metric")) {
    return input_error(key + ": expected a select split to hold it on, found none. Give data.select, or a data.train " +
                       "with samples to spare");
  }
  const auto value = [&](const char* name) { return figure(row[name]).value_or(NAN); };
  auto verdict =
      hold_gate(*gate.metric_drop, row["metric"].get<std::string>(), value("metric_before"), value("metric_after"));
  if (!verdict) return std::move(verdict).error().with_context(key);
  if (verdict->is_met) return std::string();
  return key + ": expected a drop of at most " + to_text(*gate.metric_drop) + " on the select split, found " +
         verdict->text;
}

bool is_last_change(const Session& session, std::string_view stage) {
  std::string last;
  for (const std::string& name : session.config.stages) {
    if (changes_network(name)) last = name;
  }
  return last == stage;
}

}  // namespace

Result<std::vector<Tensor>> first_sample(const Session& session, const graph::Graph& graph) {
  const auto splits = session.splits.all();
  if (splits.empty()) return std::vector<Tensor>{};
  CTK_TRY(data::Batch sample, splits[0]->read(0, std::min(splits[0]->count(), fixed_batch(graph, 1))));
  return std::move(sample.inputs);
}

Result<std::vector<double>> median_times_us(const Session& session, std::span<const graph::Graph* const> graphs) {
  std::vector<std::unique_ptr<runtime::CpuExecutor>> executors;
  std::vector<runtime::CpuExecutor*> turns;
  for (const graph::Graph* graph : graphs) {
    CTK_TRY(const std::vector<Tensor> inputs, first_sample(session, *graph));
    std::vector<Shape> shapes;
    for (const Tensor& input : inputs) shapes.push_back(input.shape());
    if (inputs.empty()) shapes = batch_shapes(session.model, static_cast<std::int64_t>(fixed_batch(*graph, 1)));
    CTK_TRY(auto executor, runtime::CpuExecutor::create(*graph, shapes));
    if (!inputs.empty()) CTK_CHECK(executor->run(inputs));
    turns.push_back(executor.get());
    executors.push_back(std::move(executor));
  }
  CTK_TRY(const auto figures, runtime::measure_interleaved(turns, {0.2, 10, 500, 3}));
  std::vector<double> times;
  for (const auto& figure : figures) times.push_back(figure.median_us);
  return times;
}

Status run_network_stage(Session& session, std::string_view stage, const std::vector<std::string>& extra,
                         const GateConfig& gate, const ChangeNetwork& change, bool& cached, std::string& notes,
                         NetworkKind kind) {
  const std::string name(stage);
  std::vector<std::string> depends = extra;
  for (const data::Split* split : session.splits.all()) {
    if (split->role == "train" || split->role == "calibrate" || split->role == "select")
      depends.push_back(split->role + "=" + split->fingerprint);
  }
  depends.push_back(session.config.fingerprint_of({"data.select.metric", "data.evaluate.metric"}));
  session.fingerprint = stage_fingerprint(session, stage, depends);
  auto row = session.cache.get(name, session.fingerprint);
  auto bundle = session.cache.get(name + "-network", session.fingerprint);
  cached = row.has_value() && bundle.has_value();
  if (!cached) {
    CTK_TRY(ChangedNetwork changed, change());
    CTK_CHECK(require_same_ports(network_of(session, kind), stage, changed.graph));
    CTK_TRY(row, session.first_does(name + " figures", [&]() -> Result<std::string> {
      CTK_TRY(json measured, measure(session, kind, changed.graph));
      measured["notes"] = changed.notes.empty() ? json() : json::parse(changed.notes, nullptr, false);
      return measured.dump(1);
    }));
    CTK_TRY(bundle, session.first_does(name + " network",
                                       [&]() -> Result<std::string> { return exporter::bundle_of(changed.graph); }));
    CTK_CHECK(session.cache.put(name + "-network", session.fingerprint, *bundle));
    CTK_CHECK(session.cache.put(name, session.fingerprint, *row));
  }
  const json parsed = json::parse(*row, nullptr, false);
  if (parsed.is_discarded()) return internal_error("the " + name + " artifact is not JSON");
  notes = parsed["notes"].is_null() ? std::string() : parsed["notes"].dump();
  state(session, parsed);
  if (gate.metric_drop) {
    CTK_TRY(const std::string why, refusal(stage, gate, parsed));
    session.stage_row.accepted = why.empty();
    if (!why.empty() && !gate.continues) {
      return Error{ErrorCode::gate_refused, why +
                                                ". Make the stage's change smaller, loosen the gate, or set "
                                                "on_refusal: continue to go on without it"};
    }
    if (!why.empty()) session.warn("stage_refused", why + "; the run went on with the network before it");
  }
  if (session.stage_row.accepted.value_or(true)) {
    if (kind == NetworkKind::real && !session.original) session.original = session.model.graph.clone();
    auto held = std::make_shared<std::string>(std::move(*bundle));
    const auto bytes = std::as_bytes(std::span(held->data(), held->size()));
    CTK_TRY(graph::Graph network, runtime::load_bundle_bytes(bytes, held));
    if (kind == NetworkKind::coded) {
      session.quantized = std::move(network);
      return {};
    }
    session.model.graph = std::move(network);
    CTK_CHECK(session.list_layers());
  }
  if (!is_last_change(session, stage)) return {};
  return require_budgets(session);
}

}  // namespace ctk::pipeline

// early_exit/exits.json and the stages beside it.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compress/early_exit/figures.h"
#include "compress/early_exit/sites.h"
#include "compress/early_exit/stage.h"
#include "compress/evaluate.h"
#include "compress/select_metric.h"
#include "core/file.h"
#include "export/formats.h"
#include "graph/shapes.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;
using nlohmann::json;

constexpr const char* kFolder = "early_exit/";
constexpr std::string_view kWhole = "model";  // what a format's file is called, up to its ending
constexpr std::array<std::string_view, 3> kOfStages{"bundle", "onnx", "onnx_qdq"};

// "model_qdq.onnx" -> "early_exit/stage_1_qdq.onnx"
std::string stage_file(const exporter::Format& format, std::size_t stage) {
  return kFolder + ("stage_" + std::to_string(stage + 1)) + std::string(format.file_name.substr(kWhole.size()));
}

std::vector<std::string> names_of(const Graph& graph, std::span<const graph::ValueId> ids) {
  std::vector<std::string> names;
  for (graph::ValueId id : ids) names.push_back(graph.value(id).name);
  return names;
}

struct SplitFigures {
  std::string split;
  exits::Leaving leaving;
  std::size_t samples = 0, right_alone = 0;  // by the network's own end
};

json share_of(std::size_t part, std::size_t whole) {
  return whole == 0 ? json() : json(static_cast<double>(part) / static_cast<double>(whole));
}

Result<std::vector<SplitFigures>> run_splits(Session& session, const exits::Exits& names,
                                             const std::vector<double>& cost, const std::string& metric) {
  std::vector<float> thresholds;
  for (const exits::Exit& exit : names.exits) thresholds.push_back(exit.threshold);
  std::vector<SplitFigures> rows;
  for (const auto* split : {&session.splits.select, &session.splits.test}) {
    if (!*split || (metric == "top1" && !(*split)->source->has_labels())) continue;
    CTK_TRY(const auto answers, exits::right_answers(session, **split, metric));
    CTK_TRY(const auto outcomes, exits::outcomes_of(session.final_graph(), names, **split, answers));
    rows.push_back({(*split)->role, exits::leave(outcomes, thresholds, cost), outcomes.samples(),
                    static_cast<std::size_t>(std::ranges::count(outcomes.is_right.back(), true))});
  }
  return rows;
}

json figures_json(const std::vector<SplitFigures>& rows, const std::vector<exits::StageCost>& costs, double macs) {
  json all = json::object();
  for (const SplitFigures& row : rows) {
    json shares = json::array();
    double mean_us = 0, until_us = 0;
    for (std::size_t i = 0; i < row.leaving.samples.size(); ++i) {
      until_us += costs[i].latency_us;
      mean_us += until_us * static_cast<double>(row.leaving.samples[i]) / static_cast<double>(row.samples);
      shares.push_back(share_of(row.leaving.samples[i], row.samples));
    }
    const double whole_us = costs.back().latency_us;
    all[row.split] = {{"samples", row.samples},
                      {"shares", shares},
                      {"metric_of_the_end", share_of(row.right_alone, row.samples)},
                      {"metric", share_of(row.leaving.right, row.samples)},
                      {"mean_macs", row.leaving.mean_cost},
                      {"saved_macs", macs > 0 ? json(1 - row.leaving.mean_cost / macs) : json()},
                      {"mean_latency_us", mean_us},
                      {"saved_time", whole_us > 0 ? json(1 - mean_us / whole_us) : json()}};
  }
  return all;
}

Status write_stages(Session& session, const std::vector<graph::Subgraph>& stages, json& rows) {
  for (const std::string& name : session.config.exports->formats) {
    if (std::ranges::count(kOfStages, name) == 0) continue;
    CTK_TRY(const exporter::Format* format, exporter::find_format(name));
    for (std::size_t i = 0; i < stages.size(); ++i) {
      CTK_TRY(const exporter::Written written, format->write(stages[i].graph, session.config.model));
      const std::string file = stage_file(*format, i);
      CTK_CHECK(write_file(session.output + "/" + file, written.files[0].bytes));
      CTK_TRY(exporter::FileRow row, exporter::describe_file(session.output, file, "early_exit"));
      session.report.files.push_back(std::move(row));
      rows[i]["files"][name] = file;
    }
  }
  return {};
}

}  // namespace

Status export_early_exit(Session& session) {
  std::error_code ignored;
  std::filesystem::remove_all(session.output + "/" + kFolder, ignored);
  const Graph& graph = session.final_graph();
  CTK_TRY(const exits::Exits names, exits::exits_of(graph));
  if (names.exits.empty() || !session.config.has_stage("early_exit")) return {};
  CTK_TRY(const auto infos, graph::infer_shapes(graph, batch_shapes(session.model, 1), true));
  CTK_TRY(const auto stages, exits::stages_of(graph, names, infos));
  // Beside the whole of it the network without heads, whose time and multiply-adds are what is saved from.
  CTK_TRY(const graph::Subgraph plain, graph::extract_between(graph, {}, {*graph.find_value(names.end)}, infos));
  CTK_TRY(const auto costs, exits::stage_costs(session, stages, infos, &plain.graph));
  CTK_TRY(const auto alone, exits::stage_costs(session, {{plain}}, infos));
  const std::vector<double> until = exits::macs_until(costs, stages.size());
  CTK_TRY(const SelectMetric metric, SelectMetric::open(session));
  CTK_TRY(const auto figures, run_splits(session, names, until, metric.name()));
  std::filesystem::create_directories(session.output + "/" + kFolder, ignored);
  json rows = json::array();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Graph& part = stages[i].graph;
    json row{{"inputs", names_of(part, part.inputs())},
             {"outputs", names_of(part, part.outputs())},
             {"macs", costs[i].macs},
             {"latency_us", costs[i].latency_us}};
    if (i < names.exits.size()) {
      row.update({{"logits", names.exits[i].logits},
                  {"confidence", names.exits[i].confidence},
                  {"threshold", names.exits[i].threshold}});
    } else {
      row["logits"] = names.end;
    }
    rows.push_back(std::move(row));
  }
  CTK_CHECK(write_stages(session, stages, rows));
  const json all{{"rule",
                  "run stages in order; a sample whose confidence is at least the threshold has its answer in "
                  "logits and needs no later stage"},
                 {"metric", metric.name()},
                 {"macs", alone[0].macs},
                 {"latency_us", costs.back().latency_us},
                 {"stages", rows},
                 {"splits", figures_json(figures, costs, alone[0].macs)}};
  const std::string file = std::string(kFolder) + "exits.json";
  CTK_CHECK(write_file(session.output + "/" + file, all.dump(1) + "\n"));
  CTK_TRY(exporter::FileRow row, exporter::describe_file(session.output, file, "early_exit"));
  session.report.files.push_back(std::move(row));
  return {};
}

void add_early_exit_names(const std::vector<std::string>& formats, std::vector<std::string>& names) {
  names.push_back(std::string(kFolder) + "exits.json");
  for (const std::string& name : formats) {
    const auto format = exporter::find_format(name);
    if (!format || std::ranges::count(kOfStages, name) == 0) continue;
    for (std::size_t i = 0; i <= exits::kMostExits; ++i) names.push_back(stage_file(**format, i));
  }
}

}  // namespace ctk::pipeline

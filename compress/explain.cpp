#include "compress/explain.h"

#include <algorithm>
#include <filesystem>

#include "compress/nearest_key.h"
#include "compress/search_files.h"
#include "core/file.h"
#include "core/printable.h"

namespace ctk::pipeline {
namespace {

using namespace search_table;

Status keep_layer(const std::string& folder, const std::string& layer, exporter::Report& report) {
  const auto found = std::ranges::find(report.layers, layer, &exporter::LayerRow::name);
  if (found == report.layers.end()) {
    std::vector<std::string_view> names;
    for (const exporter::LayerRow& row : report.layers) names.push_back(row.name);
    return input_error(folder + "/report.json: expected a layer of this run, found \"" + printable(layer) + "\"" +
                       did_you_mean(layer, names) + ". `compress explain " + folder + "` lists all");
  }
  report.layers = {*found};
  return {};
}

Status add_choices(const std::string& folder, const std::string& layer, ExplainedRun& run) {
  if (!std::filesystem::exists(folder + "/search/costs.json")) return {};
  std::vector<std::string> warnings;
  CTK_TRY(const SavedSearch saved, read_search_files(folder, warnings));
  const Table& table = saved.table;
  for (const Group& group : table.groups) {
    if (std::ranges::find(group.layers, layer) == group.layers.end()) continue;
    run.mates = group.layers;
    run.tie = group.tie;
    for (const QuantScheme& scheme : group.choices) {
      ExplainedChoice choice;
      choice.scheme = to_string(scheme);
      choice.is_chosen = choice.scheme == run.report.layers[0].scheme;
      choice.bytes = group_cost(table.bytes, group, scheme, false);
      if (scheme == QuantScheme{} || table.loss.contains({group.layers[0], choice.scheme}))
        choice.loss = group_cost(table.loss, group, scheme, true);
      if (table.loss_error.contains({group.layers[0], choice.scheme}))
        choice.loss_error = group_cost(table.loss_error, group, scheme, true);
      if (!saved.cpu.empty()) {
        choice.latency_us = group_cost(table.latency_us, group, scheme, true);
        choice.packed_bytes = group_cost(table.packed, group, scheme, true);
      }
      run.choices.push_back(std::move(choice));
    }
  }
  std::ranges::stable_sort(run.choices, {}, &ExplainedChoice::bytes);
  return {};
}

}  // namespace

Result<exporter::Report> read_run_report(const std::string& run) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(run, ignored);
  const std::string path = is_file ? run : run + "/report.json";
  auto text = read_text(path);
  if (!text) return std::move(text).error().with_context("expected the output folder of a finished run");
  auto report = exporter::parse_report(*text);
  if (!report) return std::move(report).error().with_context(printable(path));
  return report;
}

Result<ExplainedRun> explain_run(const std::string& folder, const std::string& layer) {
  ExplainedRun run;
  CTK_TRY(run.report, read_run_report(folder));
  if (layer.empty()) return run;
  CTK_CHECK(keep_layer(folder, layer, run.report));
  CTK_CHECK(add_choices(folder, layer, run));
  return run;
}

}  // namespace ctk::pipeline

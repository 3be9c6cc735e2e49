// compress compare: figures of finished runs side by side.
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "compress/cli/cli.h"
#include "compress/explain.h"
#include "core/printable.h"
#include "search/problem.h"

namespace ctk::cli {
namespace {

using exporter::Figure;
using exporter::Report;
using nlohmann::ordered_json;

struct FigureRow {
  const char* name;
  const char* unit;  // of format_amount(); empty: a plain number
  Figure (*of)(const Report& report);
};

Figure of_metric(const Report& report, Figure exporter::MetricPart::*part) {
  return report.metric ? (*report.metric).*part : Figure();
}

const FigureRow kFigures[] = {
    {"metric before", "", [](const Report& r) { return of_metric(r, &exporter::MetricPart::baseline); }},
    {"metric", "", [](const Report& r) { return of_metric(r, &exporter::MetricPart::final); }},
    {"drop", "", [](const Report& r) { return of_metric(r, &exporter::MetricPart::drop); }},
    {"size before", "B", [](const Report& r) { return r.size.before; }},
    {"size", "B", [](const Report& r) { return r.size.after; }},
    {"latency before", "us", [](const Report& r) { return r.latency.baseline.median; }},
    {"latency", "us", [](const Report& r) { return r.latency.final.median; }},
    {"peak memory before", "B", [](const Report& r) { return r.memory.baseline_peak; }},
    {"peak memory", "B", [](const Report& r) { return r.memory.final_peak; }},
};

// layer -> one scheme a run ("" where it has no such layer), those alone on which runs differ.
std::map<std::string, std::vector<std::string>> differing_layers(const std::vector<Report>& reports) {
  std::map<std::string, std::vector<std::string>> schemes;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    for (const auto& layer : reports[i].layers) {
      auto& row = schemes[layer.name];
      row.resize(reports.size());
      row[i] = layer.scheme + (layer.method.empty() ? "" : " " + layer.method);
    }
  }
  std::erase_if(schemes, [](const auto& row) { return std::set(row.second.begin(), row.second.end()).size() == 1; });
  return schemes;
}

// Runs of different kinds compare no metric.
std::vector<std::string> warnings_of(const std::vector<Report>& reports) {
  std::set<std::string> metrics, models, machines;
  std::set<int> threads;
  for (const Report& report : reports) {
    metrics.insert(report.metric ? report.metric->name : "none");
    models.insert(report.model.sha256);
    machines.insert(report.machine.cpu + " " + report.machine.isa);
    threads.insert(report.latency.threads);
  }
  std::vector<std::string> warnings;
  if (metrics.size() > 1) warnings.emplace_back("the runs were measured by different metrics");
  if (models.size() > 1) warnings.emplace_back("the runs started from different models");
  if (machines.size() > 1) warnings.emplace_back("times are of different machines");
  if (threads.size() > 1) warnings.emplace_back("times are of different numbers of threads");
  return warnings;
}

ordered_json figure_json(const Figure& figure) {
  return figure ? ordered_json(*figure) : ordered_json();
}

std::string as_json(const std::vector<std::string>& runs, const std::vector<Report>& reports) {
  ordered_json rows = ordered_json::array(), layers = ordered_json::object();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ordered_json row = {{"run", runs[i]},
                        {"metric_name", reports[i].metric ? ordered_json(reports[i].metric->name) : ordered_json()}};
    for (const FigureRow& figure : kFigures) {
      std::string key = figure.name;
      std::ranges::replace(key, ' ', '_');
      row[key] = figure_json(figure.of(reports[i]));
    }
    rows.push_back(std::move(row));
  }
  for (const auto& [layer, schemes] : differing_layers(reports)) layers[layer] = schemes;
  return ordered_json{{"runs", rows}, {"layers_that_differ", layers}, {"warnings", warnings_of(reports)}}.dump(2) +
         "\n";
}

std::string cell(const FigureRow& row, const Figure& figure) {
  if (!figure) return "-";
  if (row.unit[0] != '\0') return search::format_amount(*figure, row.unit);
  char text[40];
  std::snprintf(text, sizeof text, "%.5g", *figure);
  return text;
}

std::string as_text(const std::vector<std::string>& runs, const std::vector<Report>& reports) {
  std::vector<std::vector<std::string>> lines = {{""}};
  for (const std::string& run : runs) lines[0].push_back(printable(run));
  for (const FigureRow& figure : kFigures) {
    std::vector<std::string> line = {figure.name};
    for (const Report& report : reports) line.push_back(cell(figure, figure.of(report)));
    lines.push_back(std::move(line));
  }
  for (const auto& [layer, schemes] : differing_layers(reports)) {
    std::vector<std::string> line = {printable(layer)};
    for (const std::string& scheme : schemes) line.push_back(scheme.empty() ? "-" : scheme);
    lines.push_back(std::move(line));
  }
  std::vector<std::size_t> widths(runs.size() + 1, 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) row += line[i] + std::string(widths[i] - line[i].size() + 2, ' ');
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  for (const std::string& warning : warnings_of(reports)) text += "warning: " + warning + "\n";
  return text;
}

Status run(const Session& session, const std::vector<std::string>& runs) {
  if (runs.size() < 2) {
    return config_error("compare: expected at least two runs, found " + std::to_string(runs.size()) +
                        ". Name the output folders of finished runs");
  }
  std::vector<Report> reports;
  for (const std::string& path : runs) {
    CTK_TRY(Report report, pipeline::read_run_report(path));
    reports.push_back(std::move(report));
  }
  print(session.is_json ? as_json(runs, reports) : as_text(runs, reports));
  return {};
}

}  // namespace

void add_compare(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("compare", "Figures of finished runs side by side");
  const auto runs = std::make_shared<std::vector<std::string>>();
  verb->add_option("runs", *runs, "Output folders, or report.json files");
  add_json(*verb, session);
  verb->callback([&session, runs] { session.action = [&session, runs] { return run(session, *runs); }; });
}

}  // namespace ctk::cli

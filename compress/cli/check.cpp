// compress check: everything that can be found wrong without work.
#include <memory>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "compress/pipeline.h"
#include "core/printable.h"
#include "export/figures.h"

namespace ctk::cli {
namespace {

using nlohmann::ordered_json;

ordered_json figure(const exporter::Figure& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json as_json(const pipeline::CheckReport& report) {
  ordered_json layers = ordered_json::array(), carried = layers, budget = layers, warnings = layers;
  for (const pipeline::LayerCheck& layer : report.layers) {
    ordered_json schemes = ordered_json::array();
    for (const pipeline::SchemeCheck& scheme : layer.schemes) {
      schemes.push_back({{"scheme", scheme.scheme},
                         {"feasible", scheme.is_feasible},
                         {"reason", scheme.reason},
                         {"bytes", scheme.bytes}});
    }
    layers.push_back(
        {{"name", layer.name}, {"op", layer.op}, {"shape", layer.shape}, {"macs", layer.macs}, {"schemes", schemes}});
  }
  for (const pipeline::CarriedOp& op : report.carried)
    carried.push_back({{"name", op.name}, {"op", op.op}, {"reason", op.reason}});
  for (const exporter::BudgetRow& row : report.budget) {
    budget.push_back({{"name", row.name},
                      {"unit", row.unit},
                      {"limit", figure(row.limit)},
                      {"predicted", figure(row.predicted)},
                      {"met", row.met ? ordered_json(*row.met) : ordered_json(nullptr)}});
  }
  for (const exporter::WarningRow& row : report.warnings) warnings.push_back({{"code", row.code}, {"text", row.text}});
  return {
      {"model",
       {{"path", report.model_path},
        {"format", report.model_format},
        {"parameters", report.parameters},
        {"macs", report.macs}}},
      {"inputs", report.inputs},
      {"outputs", report.outputs},
      {"layers", layers},
      {"carried", carried},
      {"size", {{"float", report.float_bytes}, {"smallest", report.smallest_bytes}, {"largest", report.largest_bytes}}},
      {"budget", budget},
      {"warnings", warnings}};
}

std::string as_text(const pipeline::CheckReport& report) {
  std::string text = "model    " + report.model_path + " (" + report.model_format + "), " +
                     std::to_string(report.parameters) + " parameters, " + std::to_string(report.macs) +
                     " multiply-adds\n";
  for (const std::string& input : report.inputs) text += "input    " + input + "\n";
  for (const std::string& output : report.outputs) text += "output   " + output + "\n";
  for (const pipeline::CarriedOp& op : report.carried)
    text += "carried  " + printable(op.name) + " (" + op.op + "): " + op.reason + "\n";
  for (const pipeline::LayerCheck& layer : report.layers) {
    text += "layer    " + printable(layer.name) + " (" + layer.op + " " + layer.shape + "):";
    for (const pipeline::SchemeCheck& scheme : layer.schemes) {
      text += " " + scheme.scheme +
              (scheme.is_feasible ? " " + exporter::format_bytes(static_cast<double>(scheme.bytes))
                                  : " no (" + scheme.reason + ")") +
              ";";
    }
    if (text.ends_with(';')) text.pop_back();
    text += "\n";
  }
  const auto bytes = [](std::uint64_t count) { return exporter::format_bytes(static_cast<double>(count)); };
  text += "size     float " + bytes(report.float_bytes) + ", reachable " + bytes(report.smallest_bytes) + " to " +
          bytes(report.largest_bytes) + "\n";
  for (const exporter::BudgetRow& row : report.budget) {
    text += "budget   " + row.name + " at most " + exporter::format_budget_figure(row, row.limit);
    if (row.predicted) text += ", smallest reachable " + exporter::format_budget_figure(row, row.predicted);
    text += "\n";
  }
  for (const exporter::WarningRow& row : report.warnings) text += "warning  " + printable(row.text) + "\n";
  return text + "ok\n";
}

struct Arguments {
  ConfigArguments config;
  bool force = false;
};

Status check(const Session& session, const Arguments& arguments) {
  CTK_TRY(const pipeline::PipelineConfig config, load(arguments.config));
  CTK_CHECK(pipeline::require_available(config));
  CTK_TRY(const pipeline::CheckReport report, pipeline::check_pipeline(config, arguments.force));
  print(session.is_json ? as_json(report).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                        : as_text(report));
  return {};
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("check", "Find what is wrong with a pipeline without running it");
  const auto arguments = std::make_shared<Arguments>();
  add_config(*verb, arguments->config, true);
  add_json(*verb, session);
  verb->add_flag("--force", arguments->force, "As for run: the output folder may hold other files");
  verb->callback(
      [&session, arguments] { session.action = [&session, arguments] { return check(session, *arguments); }; });
}

}  // namespace ctk::cli

// compress explain: the certificate of a finished run, and why a layer has its scheme.
#include "compress/explain.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "core/printable.h"
#include "export/figures.h"
#include "search/problem.h"

namespace ctk::cli {
namespace {

using nlohmann::ordered_json;

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string shown(const exporter::Figure& figure, const std::string& unit) {
  return figure ? search::format_amount(*figure, unit) : "-";
}

std::string certificate_text(const exporter::CertificatePart& part) {
  std::string text = "answer   loss " + number(part.loss) +
                     " nats as a sum over layers; no answer within the limits has less than " + number(part.bound) +
                     " (gap " + number(part.gap) + (part.proved_optimal ? ", proved)" : ", not proved)") +
                     "; solved again " + std::to_string(part.corrections) + " times for what sums miss";
  if (part.loss_scale) text += "; measured KL " + number(*part.loss_scale) + " of the predicted on the select split";
  return text + "\n";
}

std::string budget_text(const exporter::BudgetRow& row) {
  const std::string unit = row.unit == "bytes" ? "B" : row.unit;
  std::string text = "budget   " + row.name + ": ";
  if (row.limit) text += "at most " + exporter::format_budget_figure(row, row.limit) + "; ";
  if (row.role == "objective") text += "made as small as the floor allows; ";
  text += "predicted " + exporter::format_budget_figure(row, row.predicted) + ", measured " +
          exporter::format_budget_figure(row, row.measured);
  char error[40];
  if (row.error) {
    std::snprintf(error, sizeof error, " (error %+.2f %%)", 100 * *row.error);
    text += error;
  }
  if (row.met) text += *row.met ? "; met" : "; NOT MET";
  if (row.price) {
    const bool is_thousand = unit == "B" || unit == "us";
    text += "; 1 " +
            std::string(unit == "B"    ? "kB"
                        : unit == "us" ? "ms"
                                       : unit) +
            " more buys " + number((is_thousand ? 1000 : 1) * *row.price) + " nats";
  }
  return text + "\n";
}

std::string floor_text(const exporter::FloorPart& part) {
  std::string text = "floor    " + part.metric + ": drop " + shown(part.drop_before, "") +
                     " on the select split, limit " + number(part.limit) + "; " + shown(part.drop_after, "") +
                     " after precision was given back (" + std::to_string(part.evaluations) + " of " +
                     std::to_string(part.most_evaluations) + " networks measured)\n";
  for (const exporter::RevertRow& row : part.layers) {
    text += "         " + printable(row.name) + " " + row.from + " -> " + row.to + ": " +
            (row.benefit ? "saves " + number(*row.benefit) + " nats alone" : std::string("not measured alone")) +
            " for " + search::format_amount(row.bytes, "B") + (row.is_kept ? "; kept" : "; taken back") + "\n";
  }
  return text;
}

std::string layer_text(const exporter::LayerRow& row) {
  std::string text = "layer    " + printable(row.name) + ": " + row.scheme;
  if (row.loss) text += ", loss " + number(*row.loss) + " nats";
  if (row.loss_error) text += " (standard error " + number(*row.loss_error) + ")";
  return text + "; " + row.reason + "\n";
}

std::string as_text(const pipeline::ExplainedRun& run) {
  std::string text = "run      " + printable(run.report.command) + "\n";
  if (run.report.certificate) text += certificate_text(*run.report.certificate);
  for (const exporter::BudgetRow& row : run.report.budget) text += budget_text(row);
  if (run.report.floor) text += floor_text(*run.report.floor);
  for (const exporter::LayerRow& row : run.report.layers) text += layer_text(row);
  if (run.mates.size() > 1) {
    text += "with     ";
    for (std::size_t i = 0; i < run.mates.size(); ++i) text += (i == 0 ? "" : ", ") + printable(run.mates[i]);
    text += " (they " + run.tie + "); figures below are of all\n";
  }
  for (const pipeline::ExplainedChoice& choice : run.choices) {
    text += "choice   " + choice.scheme + ": " + search::format_amount(choice.bytes, "B");
    if (choice.latency_us) text += ", " + search::format_amount(*choice.latency_us, "us");
    if (choice.packed_bytes) text += ", " + search::format_amount(*choice.packed_bytes, "B") + " packed";
    if (choice.loss) text += ", loss " + number(*choice.loss) + " nats";
    if (choice.loss_error) text += " (standard error " + number(*choice.loss_error) + ")";
    text += choice.is_chosen ? "; taken\n" : "\n";
  }
  return text;
}

ordered_json as_json(const pipeline::ExplainedRun& run) {
  const ordered_json report = ordered_json::parse(exporter::to_json(run.report), nullptr, false);
  const auto value = [](const exporter::Figure& figure) { return figure ? ordered_json(*figure) : ordered_json(); };
  ordered_json out;
  for (const char* key : {"command", "certificate", "budget", "floor", "search", "layers"}) {
    if (report.contains(key)) out[key] = report[key];
  }
  if (run.mates.empty()) return out;
  out["mates"] = run.mates;
  out["choices"] = ordered_json::array();
  for (const pipeline::ExplainedChoice& choice : run.choices) {
    out["choices"].push_back({{"scheme", choice.scheme},
                              {"loss", value(choice.loss)},
                              {"loss_error", value(choice.loss_error)},
                              {"bytes", choice.bytes},
                              {"latency_us", value(choice.latency_us)},
                              {"packed_bytes", value(choice.packed_bytes)},
                              {"chosen", choice.is_chosen}});
  }
  return out;
}

struct Arguments {
  std::string run, layer;
};

Status explain(const Session& session, const Arguments& arguments) {
  CTK_TRY(const pipeline::ExplainedRun run, pipeline::explain_run(arguments.run, arguments.layer));
  print(session.is_json ? as_json(run).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                        : as_text(run));
  return {};
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("explain", "Why a finished run ended with this answer");
  const auto arguments = std::make_shared<Arguments>();
  verb->add_option("run", arguments->run, "The output folder of a run")->required();
  verb->add_option("layer", arguments->layer, "One layer, with what it could have become");
  add_json(*verb, session);
  verb->callback(
      [&session, arguments] { session.action = [&session, arguments] { return explain(session, *arguments); }; });
}

}  // namespace ctk::cli

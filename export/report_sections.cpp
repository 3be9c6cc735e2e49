#include "export/report_sections.h"

#include <cmath>
#include <cstdio>

#include "core/shape.h"
#include "export/figures.h"

namespace ctk::exporter {
namespace {

std::string shown(const Figure& figure, std::string (*format)(double)) {
  return figure && std::isfinite(*figure) ? format(*figure) : "-";
}
std::string yes_no(const std::optional<bool>& value) {
  return value ? (*value ? "yes" : "no") : "-";
}
std::string per_cent(double share) {
  char text[40];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * share);
  return text;
}
std::string seconds(double value) {
  return format_number(value) + " s";
}
std::string bytes(std::int64_t value) {
  return format_bytes(static_cast<double>(value));
}

Section summary(const Report& report) {
  Section section{
      "Summary", "", {"", "before", "after", "change", "budget", "met"}, {}, {false, true, true, true, false, false}};
  for (const SummaryRow& row : summary_rows(report)) {
    section.rows.push_back(
        {row.what, row.before, row.after, row.change, row.asked, row.asked.empty() ? "" : yes_no(row.met)});
  }
  if (report.metric && report.metric->standard_error) {
    section.note = "One standard error of " + report.metric->name + " is " +
                   format_metric(report.metric->name, *report.metric->standard_error) + ".";
  }
  return section;
}

Section budgets(const Report& report) {
  Section section{"Budgets",
                  "Predicted: from sums over layers, before the whole was measured. Price: loss (nats) saved for each "
                  "byte or microsecond that the limit is raised.",
                  {"budget", "role", "limit", "predicted", "measured", "error", "met", "price"},
                  {},
                  {false, false, true, true, true, true, false, true}};
  for (const BudgetRow& row : report.budget) {
    section.rows.push_back({row.name, row.role, format_budget_figure(row, row.limit),
                            format_budget_figure(row, row.predicted), format_budget_figure(row, row.measured),
                            shown(row.error, per_cent), yes_no(row.met), shown(row.price, format_number)});
  }
  return section;
}

Section front(const Report& report) {
  Section section{"Front",
                  "Answers that no other one beats, by the scores and costs of this run. Price: nats saved for each kB "
                  "or ms more.",
                  {"size", "latency", "peak memory", "bits", "loss", "price of a kB", "price of a ms", "taken"},
                  {},
                  {true, true, true, true, true, true, true, false}};
  if (!report.search) return section;
  for (const FrontRow& row : report.search->front) {
    const auto by_thousand = [](const Figure& price) { return price ? format_number(1000 * *price) : "-"; };
    section.rows.push_back({shown(row.cost.size, format_bytes), shown(row.cost.latency, format_us),
                            shown(row.cost.peak_memory, format_bytes), shown(row.cost.bits, format_number),
                            format_number(row.loss), by_thousand(row.price.size), by_thousand(row.price.latency),
                            row.is_chosen ? "yes" : ""});
  }
  return section;
}

Section trials(const Report& report) {
  Section section{"Networks measured for the objective",
                  "On the select split, by growing limit of what was made small.",
                  {"limit", "as built", "predicted loss", "KL", "metric", "drop", "within the floor"},
                  {},
                  {true, true, true, true, true, true, false}};
  if (!report.search) return section;
  for (const TrialRow& row : report.search->trials) {
    section.rows.push_back({format_number(row.limit), shown(row.cost, format_number), format_number(row.loss),
                            shown(row.measured, format_number), shown(row.metric, format_number),
                            shown(row.drop, format_number), row.is_within ? "yes" : "no"});
  }
  return section;
}

Section floor_of(const Report& report) {
  Section section{"Layers given back precision",
                  "",
                  {"layer", "from", "to", "KL it saves alone", "bytes more", "kept"},
                  {},
                  {false, false, false, true, true, false}};
  if (!report.floor) return section;
  const FloorPart& part = *report.floor;
  section.note = "On the select split the drop of " + part.metric + " was " + shown(part.drop_before, format_number) +
                 ", the limit is " + format_number(part.limit) + ", and it is " +
                 shown(part.drop_after, format_number) + " with the layers kept; " + std::to_string(part.evaluations) +
                 " networks were measured, at most " + std::to_string(part.most_evaluations) + " allowed.";
  for (const RevertRow& row : part.layers) {
    section.rows.push_back({row.name, row.from, row.to, shown(row.benefit, format_number), format_bytes(row.bytes),
                            row.is_kept ? "yes" : "no"});
  }
  return section;
}

Section layers(const Report& report) {
  Section section{"Layers",
                  "Loss: of the network's outputs with only this layer changed. Error: relative squared weight error.",
                  {"layer", "op", "shape", "MACs", "scheme", "method", "loss", "time", "bytes", "error", "why"},
                  {},
                  {false, false, false, true, false, false, true, true, true, true, false}};
  for (const LayerRow& row : report.layers) {
    section.rows.push_back({row.name, row.op, to_string(row.shape), std::to_string(row.macs), row.scheme, row.method,
                            shown(row.loss, format_number), shown(row.latency_us, format_us), bytes(row.bytes),
                            shown(row.error_method ? row.error_method : row.error_rtn, format_number), row.reason});
  }
  return section;
}

Section finalists(const Report& report) {
  Section section{"Finalists",
                  "Whole networks measured on the select split; predicted: the sum of losses of layers alone, nats.",
                  {"network", "codes by", "predicted", "measured", "standard error", "metric", "taken", "codes"},
                  {},
                  {false, false, true, true, true, true, false, false}};
  for (const FinalistRow& row : report.finalists) {
    section.rows.push_back({row.name, row.method, shown(row.predicted, format_number),
                            shown(row.measured, format_number), shown(row.standard_error, format_number),
                            shown(row.metric, format_number), row.is_chosen ? "yes" : "no", row.codes});
  }
  return section;
}

Section certificate(const Report& report) {
  Section section{"Certificate",
                  "Loss: sum over layers of the answer; no assignment within the limits has less than the bound.",
                  {"loss", "bound", "gap", "proved", "corrections", "measured / predicted loss"},
                  {},
                  {true, true, true, false, true, true}};
  if (!report.certificate) return section;
  const CertificatePart& part = *report.certificate;
  section.rows.push_back({format_number(part.loss), format_number(part.bound), format_number(part.gap),
                          part.proved_optimal ? "yes" : "no", std::to_string(part.corrections),
                          shown(part.loss_scale, format_number)});
  return section;
}

Section loss_rounds(const Report& report) {
  Section section{
      "Losses put right",
      "Each round coded a network, held it against the sum of its losses on the select split, put the losses "
      "right by what the method gained layer by layer and by one scale, and solved again.",
      {"predicted", "measured", "scale", "layers changed", "result"},
      {},
      {true, true, true, true, false}};
  if (!report.certificate) return section;
  for (const LossRoundRow& row : report.certificate->rounds) {
    section.rows.push_back({shown(row.predicted, format_number), shown(row.measured, format_number),
                            format_number(row.scale), std::to_string(row.changed), row.result});
  }
  return section;
}

Section pairs(const Report& report) {
  Section section{"Neighbours measured together",
                  "KL on the score split, nats; the difference is what the programme adds where both are taken.",
                  {"first", "scheme", "second", "scheme", "sum of each alone", "together", "difference"},
                  {},
                  {false, false, false, false, true, true, true}};
  if (!report.search) return section;
  for (const PairRow& row : report.search->pairs) {
    section.rows.push_back({row.first, row.first_scheme, row.second, row.second_scheme, shown(row.sum, format_number),
                            shown(row.together, format_number), format_number(row.loss)});
  }
  return section;
}

Section skipped(const Report& report) {
  Section section{"Left in float", "", {"layer", "op", "reason"}, {}, {false, false, false}};
  for (const SkippedRow& row : report.skipped) section.rows.push_back({row.name, row.op, row.reason});
  return section;
}

Section pruned(const Report& report) {
  Section section{"Channels",
                  "Curve: loss (nats) at a width, with these channels alone cut.",
                  {"first layer", "units", "kept", "curve", "why they stay"},
                  {},
                  {false, true, true, false, false}};
  for (const PruneRow& row : report.pruned) {
    std::string curve;
    for (const CurvePointRow& point : row.curve) {
      curve += (curve.empty() ? "" : ", ") + std::to_string(point.width) + ": " + shown(point.loss, format_number);
    }
    section.rows.push_back({row.name, std::to_string(row.units), std::to_string(row.kept), curve, row.reason});
  }
  return section;
}

Section repaired(const Report& report) {
  Section section{"Repair after the cut",
                  "Squared error over the variance of what the layer should give, on samples no fit saw.",
                  {"layer", "error before", "error after"},
                  {},
                  {false, true, true}};
  for (const RepairRow& row : report.repaired) {
    section.rows.push_back({row.name, shown(row.error_before, format_number), shown(row.error_after, format_number)});
  }
  return section;
}

Section transforms(const Report& report) {
  Section section{"Network made easier to code",
                  "Squared error of outputs once coded, over the outputs', on samples of calibrate.",
                  {"method", "layers", "inverse in", "strength", "error before", "error after", "reason"},
                  {},
                  {false, false, false, true, true, true, false}};
  for (const TransformRow& row : report.transforms) {
    section.rows.push_back({row.method, row.layers, row.where.empty() ? "-" : row.where,
                            shown(row.strength, format_number), shown(row.error_before, format_number),
                            shown(row.error_after, format_number), row.reason});
  }
  return section;
}

Section transform_trials(const Report& report) {
  Section section{"Transforms compared",
                  "Coded as the pipeline codes, on the select split.",
                  {"transforms", "KL to float", "standard error", "kept"},
                  {},
                  {false, true, true, false}};
  for (const TransformTrialRow& row : report.transform_trials) {
    section.rows.push_back({row.methods, shown(row.measured, format_number), shown(row.standard_error, format_number),
                            row.is_kept ? "yes" : "no"});
  }
  return section;
}

Section splits(const Report& report) {
  Section section{"Data",
                  "No sample of test is in another split.",
                  {"split", "samples", "source", "fingerprint"},
                  {},
                  {false, true, false, false}};
  for (const SplitRow& row : report.splits) {
    section.rows.push_back({row.name, std::to_string(row.count), row.source, row.fingerprint});
  }
  return section;
}

Section checks(const Report& report) {
  Section section{"Checked against",
                  "",
                  {"program", "file", "agreement", "largest error", "metric", "result"},
                  {},
                  {false, false, true, true, true, false}};
  for (const CheckRow& row : report.checks) {
    section.rows.push_back({row.against, row.file, row.agreement ? format_metric("agreement", *row.agreement) : "-",
                            shown(row.max_error, format_number), shown(row.metric, format_number), row.result});
  }
  return section;
}

Section stages(const Report& report) {
  Section section{"Stages",
                  "",
                  {"stage", "time", "cached", "peak memory", "metric before", "metric after", "accepted", "parameters",
                   "multiply-adds", "latency"},
                  {},
                  {false, true, false, true, true, true, false, true, true, true}};
  for (const StageRow& row : report.stages) {
    section.rows.push_back({row.name, shown(row.seconds, seconds), row.cached ? "yes" : "no", bytes(row.peak_rss),
                            shown(row.metric_before, format_number), shown(row.metric_after, format_number),
                            yes_no(row.accepted), shown(row.parameters, format_number), shown(row.macs, format_number),
                            shown(row.latency_us, format_number)});
  }
  return section;
}

Section files(const Report& report) {
  Section section{"Files",
                  report.output.empty() ? "" : "In " + report.output + ".",
                  {"file", "format", "bytes", "SHA-256"},
                  {},
                  {false, false, true, false}};
  for (const FileRow& row : report.files) {
    section.rows.push_back({row.path, row.format, std::to_string(row.bytes), row.sha256});
  }
  return section;
}

Section ranges(const Report& report) {
  Section section{"Activation ranges",
                  "",
                  {"value", "low", "high", "numbers seen", "source"},
                  {},
                  {false, true, true, true, false}};
  for (const RangeRow& row : report.ranges) {
    section.rows.push_back({row.name, shown(row.low, format_number), shown(row.high, format_number),
                            std::to_string(row.count), row.source});
  }
  return section;
}

Section skipped_samples(const Report& report) {
  Section section{"Samples left out",
                  "Bad samples, by on_bad_sample: skip.",
                  {"split", "index", "sample", "tensor", "reason"},
                  {},
                  {false, true, false, false, false}};
  for (const SkippedSampleRow& row : report.skipped_samples) {
    section.rows.push_back({row.split, std::to_string(row.index), row.sample, row.tensor, row.reason});
  }
  return section;
}

Section warnings(const Report& report) {
  Section section{"Warnings", "", {"code", "text"}, {}, {false, false}};
  for (const WarningRow& row : report.warnings) section.rows.push_back({row.code, row.text});
  return section;
}

}  // namespace

std::vector<Section> sections_of(const Report& report) {
  std::vector<Section> all{summary(report)};
  for (auto make : {budgets,    warnings, finalists,       certificate, loss_rounds, pairs,    floor_of,
                    trials,     layers,   front,           skipped,     pruned,      repaired, transform_trials,
                    transforms, splits,   skipped_samples, checks,      stages,      files,    ranges}) {
    Section section = make(report);
    if (!section.rows.empty()) all.push_back(std::move(section));
  }
  return all;
}

}  // namespace ctk::exporter

#include "export/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ctk::exporter {
namespace {

bool is_share(std::string_view metric) {
  return metric == "top1" || metric == "top5" || metric == "agreement";
}

// Up to 1, so that a drop is told in points, hundredths of it.
bool has_points(std::string_view metric) {
  return is_share(metric) || metric == "spearman" || metric == "cosine";
}

bool is_known(const Figure& figure) {
  return figure && std::isfinite(*figure);
}

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

const BudgetRow* budget_of(const Report& report, std::string_view name) {
  const auto found = std::ranges::find_if(report.budget, [&](const BudgetRow& row) { return row.name == name; });
  return found == report.budget.end() ? nullptr : &*found;
}

void add_budget(const Report& report, std::string_view name, SummaryRow& row) {
  const BudgetRow* budget = budget_of(report, name);
  if (budget == nullptr || !budget->limit) return;
  row.asked = (name == "metric_drop" ? "drop of at most " : "at most ") + format_budget_figure(*budget, budget->limit);
  row.met = budget->met;
}

// "-74 %" for what should shrink.
std::string change_of(double before, double after) {
  if (before <= 0) return "";
  return formatted("%+.0f %%", (after / before - 1) * 100);
}

std::string speed_of(double before, double after) {
  if (before <= 0 || after <= 0) return "";
  return after <= before ? formatted("%.2fx as fast", before / after) : formatted("%.2fx slower", after / before);
}

using Format = std::string (*)(double);
SummaryRow figure_row(const std::string& what, const Figure& before, const Figure& after, Format format,
                      std::string (*change)(double, double)) {
  SummaryRow row;
  row.what = what;
  row.before = is_known(before) ? format(*before) : "-";
  row.after = is_known(after) ? format(*after) : "-";
  if (is_known(before) && is_known(after)) row.change = change(*before, *after);
  return row;
}

}  // namespace

std::string format_bytes(double bytes) {
  if (bytes < 1000) return formatted("%.0f B", bytes);
  if (bytes < 1e6) return formatted("%.1f kB", bytes / 1e3);
  if (bytes < 1e9) return formatted("%.2f MB", bytes / 1e6);
  return formatted("%.2f GB", bytes / 1e9);
}

std::string format_us(double us) {
  if (us < 10) return formatted("%.2f us", us);
  if (us < 1e3) return formatted("%.0f us", us);
  if (us < 1e6) return formatted("%.2f ms", us / 1e3);
  return formatted("%.2f s", us / 1e6);
}

std::string format_number(double value) {
  return formatted("%.4g", value);
}

std::string format_metric(std::string_view metric, double value) {
  return is_share(metric) ? formatted("%.2f %%", value * 100) : format_number(value);
}

std::string format_threads(int threads) {
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

std::string format_budget_figure(const BudgetRow& row, const Figure& figure) {
  if (!is_known(figure)) return "-";
  if (row.unit == "bytes") return format_bytes(*figure);
  if (row.unit == "us") return format_us(*figure);
  if (row.unit == "points") return format_number(*figure) + " pt";
  if (row.unit == "ratio") return format_number(*figure * 100) + " %";
  return format_number(*figure) + (row.unit.empty() ? "" : " " + row.unit);
}

std::vector<SummaryRow> summary_rows(const Report& report) {
  std::vector<SummaryRow> rows;
  if (report.metric) {
    const MetricPart& metric = *report.metric;
    SummaryRow row;
    row.what = metric.name == "top1" ? "accuracy (top1)" : metric.name;
    row.before = is_known(metric.baseline) ? format_metric(metric.name, *metric.baseline) : "-";
    row.after = is_known(metric.final) ? format_metric(metric.name, *metric.final) : "-";
    if (is_known(metric.drop)) {
      const double better = metric.higher_is_better ? -*metric.drop : *metric.drop;
      row.change = has_points(metric.name) ? formatted("%+.2f", better * 100) : formatted("%+.4g", better);
      if (row.change == "-0.00") row.change = "+0.00";
      if (has_points(metric.name)) row.change += " pt";
    }
    add_budget(report, "metric_drop", row);
    rows.push_back(row);
  }
  rows.push_back(figure_row("file size", report.size.before, report.size.after, format_bytes, change_of));
  add_budget(report, "size", rows.back());
  rows.push_back(
      figure_row("latency", report.latency.baseline.median, report.latency.final.median, format_us, speed_of));
  add_budget(report, "latency", rows.back());
  rows.push_back(
      figure_row("peak memory", report.memory.baseline_peak, report.memory.final_peak, format_bytes, change_of));
  add_budget(report, "peak_memory", rows.back());
  return rows;
}

}  // namespace ctk::exporter

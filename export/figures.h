// Figures as people read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "export/report.h"

namespace ctk::exporter {

std::string format_bytes(double bytes);   // "812 B", "49.3 kB", "1.25 MB"
std::string format_us(double us);         // "8.40 us", "132 us", "4.20 ms"
std::string format_number(double value);  // four significant digits
// Shares (top1, top5, agreement) in per cent: "99.80 %"; others as numbers.
std::string format_metric(std::string_view metric, double value);

// One line of the table that opens every form of the report.
struct SummaryRow {
  std::string what, before, after, change;
  std::string asked;  // the budget, empty when there was none
  std::optional<bool> met;
};
std::vector<SummaryRow> summary_rows(const Report& report);

std::string format_threads(int threads);  // "1 thread", "2 threads"
// A limit or a measured figure of a budget in its unit: "36.0 kB", "54 us", "1 pt".
std::string format_budget_figure(const BudgetRow& row, const Figure& figure);

}  // namespace ctk::exporter

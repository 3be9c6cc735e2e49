#include "compress/final_table.h"

#include <algorithm>

#include "core/printable.h"
#include "export/figures.h"

namespace ctk::pipeline {
namespace {

using Cells = std::vector<std::string>;

// Columns padded to their widest cell; all but the first and the last two aligned right.
std::string aligned(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line = "  ";
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const std::string space(widths[i] - rows[r][i].size(), ' ');
      const bool is_right = i > 0 && i + 2 < rows[r].size();
      line += (is_right ? space + rows[r][i] : rows[r][i] + space) + "  ";
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
    if (r == 0) {
      std::size_t width = 0;
      for (const std::size_t one : widths) width += one + 2;
      text += "  " + std::string(width - 2, '-') + "\n";
    }
  }
  return text;
}

}  // namespace

std::string summary_table(const exporter::Report& report) {
  std::vector<Cells> rows = {{"", "before", "after", "change", "budget", "met"}};
  for (const exporter::SummaryRow& row : exporter::summary_rows(report)) {
    std::string met = row.met ? (*row.met ? "yes" : "NO") : "-";
    rows.push_back({row.what, row.before, row.after, row.change, row.asked, row.asked.empty() ? "" : met});
  }
  std::string text = "\n" + aligned(rows);
  if (!report.warnings.empty()) text += "\n";
  for (const exporter::WarningRow& warning : report.warnings) text += "  warning: " + printable(warning.text) + "\n";
  text += "\n  Files in " + report.output + ":\n";
  std::size_t width = 0;
  for (const exporter::FileRow& file : report.files) width = std::max(width, file.path.size());
  for (const exporter::FileRow& file : report.files) {
    text += "    " + file.path + std::string(width - file.path.size(), ' ') + "  " +
            exporter::format_bytes(static_cast<double>(file.bytes)) + "\n";
  }
  return text + "    report.html, report.md, report.json: every layer, stage and figure\n";
}

}  // namespace ctk::pipeline

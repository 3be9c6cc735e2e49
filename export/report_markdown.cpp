// report.md: the sections as Markdown tables.
#include "export/figures.h"
#include "export/report.h"
#include "export/report_sections.h"

namespace ctk::exporter {
namespace {

// Cells hold names from models and files: what would end a cell or start markup is escaped.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '|' || letter == '\\' || letter == '`' || letter == '<' || letter == '*' || letter == '_')
      safe += '\\';
    safe += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  return safe;
}

std::string line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& one : cells) text += " " + cell(one) + " |";
  return text + "\n";
}

}  // namespace

std::string to_markdown(const Report& report) {
  std::string text = "# Compression report\n\n";
  text += "`" + report.command + "`\n\n";
  text += "Model " + cell(report.model.path) + ": " + std::to_string(report.model.parameters) + " parameters, " +
          std::to_string(report.model.macs) + " multiply-adds a sample. Measured on " + cell(report.machine.cpu) +
          " (" + cell(report.machine.isa) + ") with " + format_threads(report.latency.threads) + ". Seed " +
          std::to_string(report.seed) + ", configuration " + cell(report.config.path) + " (" +
          report.config.fingerprint + "), compress " + report.version + ".\n";
  for (const Section& section : sections_of(report)) {
    text += "\n## " + section.title + "\n\n";
    if (!section.note.empty()) text += cell(section.note) + "\n\n";
    text += line(section.header) + "|";
    for (const bool is_number : section.is_number) text += is_number ? "---:|" : "---|";
    text += "\n";
    for (const auto& row : section.rows) text += line(row);
  }
  if (!report.rewrites.empty()) {
    text += "\n## Rewrites\n\n";
    for (const std::string& rewrite : report.rewrites) text += "- " + cell(rewrite) + "\n";
  }
  return text;
}

}  // namespace ctk::exporter

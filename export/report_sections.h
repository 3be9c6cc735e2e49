// The tables of the report for people, built once and written as Markdown and as HTML.
#pragma once

#include <string>
#include <vector>

#include "export/report.h"

namespace ctk::exporter {

struct Section {
  std::string title;
  std::string note;  // one sentence under the title, may be empty
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> is_number;  // of each column: aligned right
};

// Summary first, then what is not empty of budgets, finalists, certificate, floor, trials,
// layers, front, skipped, splits, checks, stages,
// files, ranges, warnings.
std::vector<Section> sections_of(const Report& report);

}  // namespace ctk::exporter

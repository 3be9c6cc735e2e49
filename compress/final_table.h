// What a run ends with on the screen: before and after, the budgets, and where the files lie.
#pragma once

#include <string>

#include "export/report.h"

namespace ctk::pipeline {

// Plain text of about 100 columns, readable without knowing the tool.
std::string summary_table(const exporter::Report& report);

}  // namespace ctk::pipeline

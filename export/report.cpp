#include "export/report.h"

#include <filesystem>

#include "core/file.h"

namespace ctk::exporter {

Status write_report(const Report& report, const std::string& folder) {
  const std::filesystem::path base(folder);
  CTK_CHECK(write_file((base / "report.json").string(), to_json(report)));
  CTK_CHECK(write_file((base / "report.md").string(), to_markdown(report)));
  return write_file((base / "report.html").string(), to_html(report));
}

}  // namespace ctk::exporter

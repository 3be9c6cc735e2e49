// The export stage: every format the file asks for, each whole or not at all, with its hash in the report.
#include <filesystem>

#include "compress/output_folder.h"
#include "compress/session.h"
#include "core/file.h"
#include "export/formats.h"

namespace ctk::pipeline {

Status run_export(Session& session, bool& cached) {
  cached = false;  // serializing is cheap; writing again proves that the files are whole
  // Asked before the run too; links may have changed since.
  CTK_CHECK(check_output_files(session.config, session.output, session.model.files));
  // A report of an earlier run does not describe what is written now.
  for (const char* name : {"report.json", "report.md", "report.html", "manifest.json"}) {
    std::error_code ignored;
    std::filesystem::remove(session.output + "/" + name, ignored);
  }
  for (const std::string& name : session.config.exports->formats) {
    if (name == "report") continue;  // the report is always written, at the end of the run
    CTK_TRY(const exporter::Format* format, exporter::find_format(name));
    CTK_TRY(const std::string bytes, format->serialize(session.final_graph(), session.config.model));
    const std::string path = session.output + "/" + std::string(format->file_name);
    CTK_CHECK(write_file(path, bytes));
    CTK_TRY(exporter::FileRow row, exporter::describe_file(session.output, std::string(format->file_name), name));
    session.report.files.push_back(std::move(row));
    session.advance(static_cast<std::int64_t>(session.report.files.size()));
  }
  session.fingerprint = stage_fingerprint(session, "export", {});
  return {};
}

}  // namespace ctk::pipeline

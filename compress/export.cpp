// The export stage: every format the file asks for, each whole or not at all, with its hash in the report.
#include <filesystem>

#include "compress/output_folder.h"
#include "compress/session.h"
#include "core/file.h"
#include "export/formats.h"

namespace ctk::pipeline {

namespace {

// What goes with a file of an earlier run must not stay beside a new one; the format's own file comes last, so that it
// never stands without its companions.
Status write_files(Session& session, const exporter::Format& format, const exporter::Written& written) {
  const std::filesystem::path output = session.output;
  std::error_code error;
  for (const std::string_view name : format.other_names) std::filesystem::remove(output / name, error);
  for (auto file = written.files.rbegin(); file != written.files.rend(); ++file) {
    const std::filesystem::path path = output / file->name;
    std::filesystem::create_directories(path.parent_path(), error);
    CTK_CHECK(write_file(path.string(), file->bytes));
  }
  for (const exporter::OutputFile& file : written.files) {
    CTK_TRY(exporter::FileRow row, exporter::describe_file(session.output, file.name, std::string(format.name)));
    session.report.files.push_back(std::move(row));
  }
  return {};
}

}  // namespace

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
    CTK_TRY(const exporter::Written written, format->write(session.final_graph(), session.config.model));
    for (const std::string& note : written.notes) session.warn("export_note", note);
    CTK_CHECK(write_files(session, *format, written));
    session.advance(static_cast<std::int64_t>(session.report.files.size()));
  }
  session.fingerprint = stage_fingerprint(session, "export", {});
  return {};
}

}  // namespace ctk::pipeline

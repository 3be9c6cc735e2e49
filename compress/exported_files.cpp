#include "compress/exported_files.h"

#include <filesystem>

#include "compress/model.h"
#include "compress/output_folder.h"
#include "core/file.h"
#include "core/printable.h"

namespace ctk::pipeline {

namespace fs = std::filesystem;

Result<std::vector<exporter::FileRow>> write_exported(const std::string& folder, const exporter::Format& format,
                                                      const exporter::Written& written) {
  const fs::path output = folder;
  std::error_code error;
  for (const std::string_view name : format.other_names) fs::remove(output / name, error);
  for (auto file = written.files.rbegin(); file != written.files.rend(); ++file) {
    const fs::path path = output / file->name;
    fs::create_directories(path.parent_path(), error);
    CTK_CHECK(write_file(path.string(), file->bytes));
  }
  std::vector<exporter::FileRow> rows;
  for (const exporter::OutputFile& file : written.files) {
    CTK_TRY(exporter::FileRow row, exporter::describe_file(folder, file.name, std::string(format.name)));
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<Exported> export_model(const std::string& model, const std::string& format_name, const std::string& folder,
                              bool force) {
  CTK_TRY(const exporter::Format* format, exporter::find_format(format_name));
  CTK_CHECK(check_output_folder(folder, force));
  CTK_TRY(const LoadedModel loaded, load_model(model));
  std::vector<InputFile> inputs;
  for (const std::string& path : loaded.files) inputs.push_back({"a file the model is read from", path});
  std::vector<std::string> names;
  add_names(*format, names);
  CTK_CHECK(keep_inputs(folder, names, inputs));
  CTK_TRY(const exporter::Written written, format->write(loaded.graph, model));
  CTK_CHECK(claim_output(folder));
  Exported exported{{}, loaded.notes};
  exported.notes.insert(exported.notes.end(), written.notes.begin(), written.notes.end());
  CTK_TRY(exported.files, write_exported(folder, *format, written));
  return exported;
}

}  // namespace ctk::pipeline

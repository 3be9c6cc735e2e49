#include "compress/output_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>

#include "compress/early_exit/stage.h"
#include "core/file.h"
#include "export/formats.h"

namespace ctk::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnerFile = ".cache/owner";  // marks an output folder as made by us
constexpr std::string_view kScoresFile = "scores.json";
constexpr std::array<std::string_view, 5> kReportFiles{"report.json", "report.md", "report.html", "manifest.json",
                                                       kScoresFile};

Error unfit(const std::string& output, const std::string& found) {
  return config_error(output + ": expected a folder for the output, found " + found + ". Choose another output");
}

// The deepest part of the path that exists; where it stands, the rest can be made.
fs::path existing_part(const fs::path& path) {
  std::error_code error;
  fs::path at = path;
  while (!at.empty() && !fs::exists(fs::symlink_status(at, error))) at = at.parent_path();
  return at.empty() ? fs::path(".") : at;
}

// Empty, or as claim_output() leaves it when it is killed before its mark stands.
bool is_unused(const fs::path& folder, std::error_code& error) {
  for (const fs::path& part : {folder, folder / ".cache"}) {
    if (!fs::exists(part, error)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(part, error)) {
      const std::string name = entry.path().filename();
      if (part == folder ? name != ".cache" || !entry.is_directory(error) : !name.starts_with("owner")) return false;
    }
  }
  return true;
}

std::vector<std::string> written_files(const PipelineConfig& config) {
  std::vector<std::string> names{kOwnerFile};
  for (const std::string_view name : kReportFiles)
    if (name != kScoresFile || config.has_stage("sensitivity")) names.emplace_back(name);
  if (!config.exports) return names;
  if (config.has_stage("early_exit")) add_early_exit_names(config.exports->formats, names);
  for (const std::string& name : config.exports->formats) {
    if (const auto format = exporter::find_format(name)) add_names(**format, names);
  }
  return names;
}

// Whether `name` is what core/file's writer calls an unfinished `file`, and the process that wrote it is gone.
bool is_torn(std::string_view name, std::string_view file) {
  constexpr std::string_view kPart = ".part.";
  if (!name.starts_with(file) || !name.substr(file.size()).starts_with(kPart)) return false;
  const std::string_view digits = name.substr(file.size() + kPart.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
  if (error != std::errc() || end != digits.data() + digits.size() || process <= 0) return false;
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

// Removes what killed runs left of files under the names of ours; whatever else lies in the folder is not touched.
void remove_torn_files(const std::string& output) {
  std::vector<std::string> names(kReportFiles.begin(), kReportFiles.end());
  for (const exporter::Format& format : exporter::formats()) add_names(format, names);
  std::set<std::string> folders{""};
  for (const std::string& name : names) folders.insert(fs::path(name).parent_path().string());
  std::vector<fs::path> torn;
  std::error_code error;
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(output) / folder, error)) {
      const std::string name = (fs::path(folder) / entry.path().filename()).string();
      if (std::any_of(names.begin(), names.end(), [&](const std::string& file) { return is_torn(name, file); }))
        torn.push_back(entry.path());
    }
  }
  // All in .cache is ours.
  for (const fs::directory_entry& entry : fs::directory_iterator(output + "/.cache", error)) {
    const std::string name = entry.path().filename();
    if (is_torn(name, name.substr(0, name.rfind(".part.")))) torn.push_back(entry.path());
  }
  for (const fs::path& path : torn) fs::remove(path, error);
}

std::vector<InputFile> read_files(const PipelineConfig& config, const std::vector<std::string>& model_files) {
  std::vector<InputFile> files{{"the model", config.model}};
  for (const std::string& path : model_files) {
    if (path != config.model) files.push_back({"a data file of the model", path});
  }
  files.push_back({"the pipeline file", config.file_name});
  files.push_back({"the device card", config.target});
  const std::pair<const char*, const std::optional<SourceConfig>&> sources[] = {
      {"data.train", config.train},
      {"data.calibrate", config.calibrate_data},
      {"data.score", config.score},
      {"data.select", config.select},
      {"data.evaluate", config.evaluate}};
  for (const auto& [what, source] : sources) {
    if (source) files.push_back({what, source->spec.path});
  }
  return files;
}

}  // namespace

Status check_output_folder(const std::string& output, bool force) {
  std::error_code error;
  const fs::path path = fs::absolute(output, error).lexically_normal();
  if (output.empty() || error) return unfit(output.empty() ? "output" : output, "no usable path");
  const fs::path existing = existing_part(path);
  const fs::path real = fs::canonical(existing, error);
  if (error) return unfit(output, "\"" + existing.string() + "\" (" + error.message() + ")");
  if (!fs::is_directory(real, error)) return unfit(output, "a file at \"" + existing.string() + "\"");
  const bool is_there = fs::exists(path, error);
  if (is_there && real == real.root_path()) return unfit(output, "the root folder of this machine");
  if (::access(real.c_str(), W_OK | X_OK) != 0) {
    return unfit(output, "one that cannot be written (" + existing.string() + ": " + std::strerror(errno) + ")");
  }
  if (!is_there || force || fs::exists(path / kOwnerFile, error)) return {};
  const bool is_empty = is_unused(path, error);
  if (error) return unfit(output, "one that cannot be read (" + error.message() + ")");
  if (is_empty) return {};
  return config_error(output +
                      ": expected an empty folder or one of an earlier run, found other files. Choose another output, "
                      "or give --force to write into it");
}

Status keep_inputs(const std::string& output, std::span<const std::string> names, std::span<const InputFile> inputs) {
  for (const std::string& name : names) {
    const std::string path = output + "/" + name;
    for (const InputFile& input : inputs) {
      if (!is_same_file(path, input.path)) continue;
      return config_error(path + ": expected a file of our own to write, found " + input.what + " (" + input.path +
                          "), which a run must not change. Choose another output");
    }
  }
  return {};
}

Status check_output_files(const PipelineConfig& config, const std::string& output,
                          const std::vector<std::string>& model_files) {
  return keep_inputs(output, written_files(config), read_files(config, model_files));
}

void add_names(const exporter::Format& format, std::vector<std::string>& names) {
  names.emplace_back(format.file_name);
  names.insert(names.end(), format.other_names.begin(), format.other_names.end());
}

Status claim_output(const std::string& output) {
  std::error_code error;
  fs::create_directories(output + "/.cache", error);
  if (error) {
    const std::string message = output + ": expected a folder that can be made, found: " + error.message();
    // A full or failing disk is nobody's wrong use; any other reason lies in the path that was asked for.
    const bool is_disk =
        error == std::errc::no_space_on_device || error == std::errc::io_error || error.value() == EDQUOT;
    if (is_disk) return input_error(message + ". Free some space, or choose another output");
    return config_error(message + ". Choose another output");
  }
  remove_torn_files(output);
  if (fs::exists(output + "/" + kOwnerFile, error)) return {};
  return write_file(output + "/" + kOwnerFile, std::string_view("made by compress\n"));
}

}  // namespace ctk::pipeline

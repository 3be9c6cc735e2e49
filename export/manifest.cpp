// manifest.json: what a run wrote, so that anyone can check that it is whole.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/hash.h"
#include "export/report.h"

namespace ctk::exporter {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr const char* kName = "manifest.json";

// A path that stays inside its folder: what a manifest names is read, so it must not lead elsewhere.
bool is_inside(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return !path.empty() && normal.is_relative() && *normal.begin() != "..";
}

}  // namespace

Result<FileRow> describe_file(const std::string& folder, const std::string& relative_path, const std::string& format) {
  const std::string path = (fs::path(folder) / relative_path).string();
  FileRow row{relative_path, format, 0, {}};
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error)
    return input_error(path + ": expected the file just written, found: " + error.message() +
                       ". Was it removed meanwhile? Run again");
  row.bytes = static_cast<std::int64_t>(size);
  CTK_TRY(row.sha256, sha256_of_file(path));
  return row;
}

Status write_manifest(std::vector<FileRow> files, const std::string& folder) {
  std::ranges::sort(files, {}, &FileRow::path);
  Json rows = Json::array();
  for (const FileRow& file : files) {
    rows.push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  const Json json = {{"files", rows}};
  return write_file((fs::path(folder) / kName).string(),
                    json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<std::vector<FileRow>> read_manifest(const std::string& folder) {
  const std::string path = (fs::path(folder) / kName).string();
  CTK_TRY(const std::string text, read_text(path));
  const Json json = Json::parse(text, nullptr, false);
  const auto wrong = [&](const char* expected) { return input_error(path + ": expected " + expected); };
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array()) return wrong("{\"files\": [...]}");
  std::vector<FileRow> rows;
  for (const Json& file : json["files"]) {
    if (!file.is_object() || !file.contains("path") || !file["path"].is_string() || !file.contains("bytes") ||
        !file["bytes"].is_number_integer() || !file.contains("sha256") || !file["sha256"].is_string()) {
      return wrong("path, bytes and sha256 of each file");
    }
    FileRow row{file["path"].get<std::string>(), "", file["bytes"].get<std::int64_t>(),
                file["sha256"].get<std::string>()};
    if (!is_inside(row.path)) return wrong("paths inside its folder");
    rows.push_back(std::move(row));
  }
  return rows;
}

Status verify_manifest(const std::string& folder) {
  CTK_TRY(const std::vector<FileRow> rows, read_manifest(folder));
  std::string problems;
  for (const FileRow& row : rows) {
    const Result<FileRow> found = describe_file(folder, row.path, "");
    std::string problem;
    if (!found) {
      problem = found.error().message;
    } else if (found->bytes != row.bytes) {
      problem = (fs::path(folder) / row.path).string() + ": expected " + std::to_string(row.bytes) + " bytes, found " +
                std::to_string(found->bytes);
    } else if (found->sha256 != row.sha256) {
      problem =
          (fs::path(folder) / row.path).string() + ": expected SHA-256 " + row.sha256 + ", found " + found->sha256;
    }
    if (!problem.empty()) problems += (problems.empty() ? "" : "\n") + problem;
  }
  return problems.empty() ? Status{} : Status(input_error(problems));
}

}  // namespace ctk::exporter

// The kinds of data source, in the order they are tried. A kind is found by its path; its reader checks the content.
#include <algorithm>
#include <filesystem>

#include "data/rows.h"

namespace ctk::data {
namespace {

bool ends_with(const std::string& path, std::string_view extension) {
  if (path.size() < extension.size()) return false;
  return std::equal(extension.begin(), extension.end(), path.end() - static_cast<long>(extension.size()),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
}

const SourceKind kKinds[] = {
    {"npz", "NumPy arrays (.npz)", [](const std::string& p, bool folder) { return !folder && ends_with(p, ".npz"); },
     open_npz},
    {"npy", "one NumPy array (.npy)", [](const std::string& p, bool folder) { return !folder && ends_with(p, ".npy"); },
     open_npy},
    {"image_folder", "a folder of JPEG or PNG images", [](const std::string&, bool folder) { return folder; },
     open_image_folder},
    {"image_zip", "a zip archive of JPEG or PNG images (.zip)",
     [](const std::string& p, bool folder) { return !folder && ends_with(p, ".zip"); }, open_image_zip},
    {"text", "a text (any name, with context)", [](const std::string&, bool) { return false; }, open_text},
};

}  // namespace

std::span<const SourceKind> source_kinds() {
  return kKinds;
}

Result<std::shared_ptr<const Rows>> open_rows(const SourceSpec& spec, std::span<const InputInfo> inputs) {
  if (inputs.empty()) return input_error(spec.path + ": expected a model with inputs, found one without.");
  std::error_code error;
  const auto status = std::filesystem::status(spec.path, error);
  if (spec.path.empty() || !std::filesystem::exists(status))
    return input_error(spec.path +
                       ": expected a data file or folder, found none at this path. Mend the path (it is relative to "
                       "the pipeline file).");
  for (const SourceKind& kind : source_kinds()) {
    if (spec.text ? kind.name != "text" : !kind.matches(spec.path, std::filesystem::is_directory(status))) continue;
    CTK_TRY(std::shared_ptr<Rows> rows, kind.open(spec, inputs));
    return std::shared_ptr<const Rows>(std::move(rows));
  }
  std::string known;
  for (const SourceKind& kind : source_kinds()) known += (known.empty() ? "" : ", ") + std::string(kind.what);
  return input_error(spec.path + ": expected " + known + ", found another kind of name. Rename or convert the data.");
}

}  // namespace ctk::data

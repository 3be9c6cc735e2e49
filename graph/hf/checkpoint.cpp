#include "graph/hf/checkpoint.h"

#include <filesystem>
#include <set>

#include "core/printable.h"
#include "graph/hf/json.h"

namespace ctk::graph::hf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kLargestIndex = 100'000'000;
constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";

// Not "quoted": std has one, which strings that are not const would find.
std::string in_quotes(const std::string& text) {
  return "\"" + printable(text) + "\"";
}

// Tensor -> file name, as the index has it.
Result<std::map<std::string, std::string>> read_weight_map(const std::string& path) {
  CTK_TRY(const json index, read_json(path, kLargestIndex, 8));
  const auto found = index.find("weight_map");
  if (found == index.end() || !found->is_object() || found->empty()) {
    return input_error(path + ": weight_map: expected an object of tensor names and files, found " +
                       (found == index.end() ? "none" : shown(*found)) + ". Download the index again");
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : found->items()) {
    const bool is_name = file.is_string() && !file.get_ref<const std::string&>().empty() &&
                         fs::path(file.get<std::string>()).filename() == file.get<std::string>() &&
                         file.get<std::string>() != "." && file.get<std::string>() != "..";
    if (!is_name) {
      return input_error(path + ": weight_map: tensor " + in_quotes(tensor) +
                         ": expected the name of a file beside the index, found " + shown(file) +
                         ". Correct the index");
    }
    files.emplace(tensor, file.get<std::string>());
  }
  return files;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& folder) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  const fs::path root(folder);
  std::error_code ignored;
  const bool has_single = fs::exists(root / kSingleName, ignored), has_index = fs::exists(root / kIndexName, ignored);
  if (has_single && has_index) {
    return input_error(
        folder + ": expected model.safetensors or model.safetensors.index.json, found both. Remove the stale one");
  }
  if (!has_single && !has_index) {
    return input_error(folder +
                       ": expected weights in model.safetensors or model.safetensors.index.json, found neither. "
                       "Download them, or save the model with safe_serialization");
  }
  std::map<std::string, std::string> promised;
  std::set<std::string> names = {kSingleName};
  if (has_index) {
    CTK_TRY(promised, read_weight_map((root / kIndexName).string()));
    names.clear();
    for (const auto& [tensor, file] : promised) names.insert(file);
  }
  for (const std::string& name : names) {
    if (!fs::exists(root / name, ignored)) {
      return input_error((root / kIndexName).string() + ": expected its " + std::to_string(names.size()) +
                         " files beside it, found no " + in_quotes(name) + ". Download the missing file");
    }
    CTK_TRY(SafetensorsFile file, SafetensorsFile::open((root / name).string()));
    const std::size_t position = checkpoint.files_.size();
    for (const auto& [tensor, stored] : file.tensors()) {
      const auto owner = promised.find(tensor);
      if (owner != promised.end() && owner->second != name) {
        checkpoint.notes_.push_back("tensor " + in_quotes(tensor) + " of " + in_quotes(name) +
                                    " was passed over: the index names " + in_quotes(owner->second));
        continue;
      }
      const auto [known, is_new] = checkpoint.file_of_.emplace(tensor, position);
      if (!is_new) {
        const std::string other = fs::path(checkpoint.files_[known->second].path()).filename().string();
        return input_error(folder + ": tensor " + in_quotes(tensor) + ": expected in one file, found in " +
                           in_quotes(other) + " and " + in_quotes(name) + ". Remove the stale copy");
      }
    }
    checkpoint.files_.push_back(std::move(file));
  }
  for (const auto& [tensor, name] : promised) {
    const auto found = checkpoint.file_of_.find(tensor);
    if (found != checkpoint.file_of_.end()) continue;
    std::string other;
    for (const SafetensorsFile& file : checkpoint.files_) {
      if (file.tensors().contains(tensor)) other = fs::path(file.path()).filename().string();
    }
    return input_error((root / kIndexName).string() + ": tensor " + in_quotes(tensor) + ": expected in " +
                       in_quotes(name) + ", found " + (other.empty() ? "in no file" : "in " + in_quotes(other)) +
                       ". Download index and files of one revision");
  }
  return checkpoint;
}

std::vector<std::string> Checkpoint::paths() const {
  std::vector<std::string> paths;
  for (const SafetensorsFile& file : files_) paths.push_back(file.path());
  return paths;
}

const StoredTensor* Checkpoint::find(const std::string& name) const {
  const auto found = file_of_.find(name);
  return found == file_of_.end() ? nullptr : &files_[found->second].tensors().find(name)->second;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

Result<Tensor> Checkpoint::tensor(const std::string& name) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end()) {
    return input_error(folder_ + ": expected tensor " + in_quotes(name) +
                       ", found none of that name. Download the checkpoint again");
  }
  return files_[found->second].tensor(name);
}

}  // namespace ctk::graph::hf

#include "core/module.h"

#include <dlfcn.h>

#include <filesystem>

namespace ctk {
namespace {

// Folders of the object this function is linked into and of the running program.
std::vector<std::filesystem::path> own_folders() {
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folders), &info) != 0 && info.dli_fname != nullptr) {
    const auto object = std::filesystem::canonical(info.dli_fname, ignored);
    if (!object.empty()) folders.push_back(object.parent_path());
  }
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) folders.push_back(program.parent_path());
  return folders;
}

}  // namespace

Result<std::vector<void*>> open_module(const std::string& file, std::span<const char* const> symbols) {
  std::vector<std::string> candidates;
  std::error_code ignored;
  for (const auto& folder : own_folders()) {
    for (const auto& place : {folder / file, folder.parent_path() / "lib" / file}) {
      if (std::filesystem::exists(place, ignored)) candidates.push_back(place.string());
    }
  }
  candidates.push_back(file);
  std::string said;
  const auto note = [&](const std::string& text) { said += (said.empty() ? "" : "; ") + text; };
  for (const std::string& candidate : candidates) {
    void* module = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      const char* error = dlerror();
      note(error == nullptr ? "unknown failure" : error);
      continue;
    }
    std::vector<void*> found;
    for (const char* symbol : symbols) {
      if (void* address = dlsym(module, symbol)) found.push_back(address);
    }
    if (found.size() == symbols.size()) return found;
    note(candidate + " lacks its entry points");
  }
  return config_error(said);
}

}  // namespace ctk

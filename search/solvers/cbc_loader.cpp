#include "search/solvers/cbc_loader.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace ctk::search {
namespace {

constexpr const char* kFile = "libctk_cbc.so";

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

Result<Cbc> open_cbc() {
  std::vector<std::string> candidates;
  std::error_code ignored;
  for (const auto& folder : own_folders()) {
    for (const auto& place : {folder / kFile, folder.parent_path() / "lib" / kFile}) {
      if (std::filesystem::exists(place, ignored)) candidates.push_back(place.string());
    }
  }
  candidates.emplace_back(kFile);
  std::string said;
  for (const std::string& candidate : candidates) {
    void* module = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open until the process ends
    if (module == nullptr) {
      const char* error = dlerror();
      said += std::string(said.empty() ? "" : "; ") + (error == nullptr ? "unknown failure" : error);
      continue;
    }
    Cbc cbc;
    cbc.solve_lp = reinterpret_cast<decltype(cbc.solve_lp)>(dlsym(module, "ctk_cbc_solve_lp"));
    cbc.solve_binary = reinterpret_cast<decltype(cbc.solve_binary)>(dlsym(module, "ctk_cbc_solve_binary"));
    if (cbc.solve_lp != nullptr && cbc.solve_binary != nullptr) return cbc;
    said += std::string(said.empty() ? "" : "; ") + candidate + " lacks its entry points";
  }
  return config_error(std::string("search.solver: ilp needs ") + kFile +
                      " beside the program, found none that loads (" + said +
                      "). Install coinor-libcbc3 and build again, or choose another solver");
}

}  // namespace

Result<Cbc> load_cbc() {
  static const Result<Cbc> cbc = open_cbc();
  return cbc;
}

}  // namespace ctk::search

#include "graph/onnx/external_data.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

namespace ctk::graph::onnx {
namespace {

namespace fs = std::filesystem;

Error refused(const std::string& location, const std::string& found) {
  return input_error("external data \"" + location + "\": expected a plain file inside the model's folder, found " +
                     found + ". Put the data file beside the model and name it by a relative path.");
}

// Whether `path` lies in `folder`, both canonical.
bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto [rest, _] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return rest == folder.end();
}

fs::path folder_path(const std::string& folder) {
  return folder.empty() ? fs::path(".") : fs::path(folder);
}

}  // namespace

Status check_location(const std::string& location) {
  if (location.empty()) return refused(location, "an empty location");
  if (location.find('\0') != std::string::npos) return refused(location.c_str(), "a NUL byte");
  // Backslashes count as separators here: a model may have been written on
  // Windows.
  std::string slashed = location;
  std::replace(slashed.begin(), slashed.end(), '\\', '/');
  if (slashed.front() == '/' || (slashed.size() > 1 && slashed[1] == ':')) return refused(location, "an absolute path");
  for (const fs::path& part : fs::path(slashed)) {
    if (part == "..") return refused(location, "a path that climbs out with \"..\"");
  }
  return {};
}

Result<ExternalData::File> ExternalData::open(const std::string& location) {
  CTK_CHECK(check_location(location));
  if (folder_.empty()) {
    return input_error("external data \"" + location + "\": the model was read from memory, so it has no folder");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) return input_error(folder_ + ": cannot resolve the model's folder: " + error.message());
  fs::path path = fs::canonical(folder / location, error);
  if (error && location.find('\\') != std::string::npos) {
    std::string slashed = location;
    std::replace(slashed.begin(), slashed.end(), '\\', '/');
    path = fs::canonical(folder / slashed, error);
  }
  if (error) {
    return input_error("external data \"" + location + "\" (looked for in " + folder_ + "): " + error.message() +
                       ". Copy the data file beside the model.");
  }
  if (!is_inside(path, folder)) return refused(location, "a link that leads outside");
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return refused(location, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return refused(location, "something that is no regular file");
  if (info.st_nlink > 1) return refused(location, "a hard link (" + std::to_string(info.st_nlink) + " names)");
  CTK_TRY(MappedFile mapping, MappedFile::open(path.string()));
  return File{path.string(), std::move(mapping)};
}

std::vector<std::string> ExternalData::paths() const {
  std::set<std::string> paths;  // two locations may name one file
  for (const auto& [location, file] : files_) paths.insert(file.path);
  return {paths.begin(), paths.end()};
}

Result<Tensor> ExternalData::tensor(const std::string& location, std::uint64_t offset, DType dtype,
                                    const Shape& shape) {
  auto found = files_.find(location);
  if (found == files_.end()) {
    CTK_TRY(File file, open(location));
    found = files_.emplace(location, std::move(file)).first;
  }
  const MappedFile& file = found->second.mapping;
  CTK_TRY(const std::size_t count, element_count(shape));
  const std::size_t length = byte_size(dtype, count);
  if (offset > file.bytes().size() || length > file.bytes().size() - offset) {
    return input_error("external data \"" + location + "\": expected " + std::to_string(length) + " bytes at offset " +
                       std::to_string(offset) + ", found a file of " + std::to_string(file.bytes().size()) +
                       " bytes. The data file is cut off or belongs to another model.");
  }
  if (length == 0) return Tensor::zeros(dtype, shape);
  const std::byte* data = file.bytes().data() + offset;
  const std::size_t alignment = std::max<std::size_t>(1, static_cast<std::size_t>(bits_of(dtype)) / 8);
  if (reinterpret_cast<std::uintptr_t>(data) % alignment == 0) {
    return Tensor::borrowed(dtype, shape, data, file.owner());
  }
  CTK_TRY(Tensor copy, Tensor::zeros(dtype, shape));
  std::memcpy(copy.mutable_data(), data, length);
  return copy;
}

Result<std::string> path_for_writing(const std::string& folder, const std::string& location) {
  CTK_CHECK(check_location(location));
  std::error_code error;
  const fs::path root = fs::canonical(folder_path(folder), error);
  if (error) return input_error(folder + ": cannot resolve the output folder: " + error.message());
  // Walk down one directory at a time, so that nothing is created behind a link
  // that leads outside.
  fs::path at = root;
  const fs::path relative(location);
  for (const fs::path& part : relative.parent_path()) {
    at /= part;
    if (!fs::exists(at, error)) fs::create_directory(at, error);
    const fs::path real = fs::canonical(at, error);
    if (error) return input_error("external data \"" + location + "\": " + at.string() + ": " + error.message());
    if (!is_inside(real, root)) return refused(location, "a link that leads outside");
  }
  const fs::path target = at / relative.filename();
  if (!relative.has_filename() || fs::is_directory(target, error)) return refused(location, "a directory");
  if (fs::is_symlink(target, error)) return refused(location, "a link");
  return target.string();
}

}  // namespace ctk::graph::onnx

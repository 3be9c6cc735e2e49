// Files: read by mapping, written whole or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace ctk {

// A read-only mapping. Copies share it; it stays valid after the file is renamed or unlinked.
class MappedFile {
 public:
  // Errors: input (missing, not a regular file, unreadable; names the path and the system's message).
  static Result<MappedFile> open(const std::string& path);
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  std::shared_ptr<const void> owner() const { return owner_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

// Writes to a temporary name beside `path`, syncs, renames. On any failure nothing is left at either name and what
// stood at `path` stays. Errors: input (path and system message).
Status write_file(const std::string& path, std::span<const std::byte> bytes);
Status write_file(const std::string& path, std::string_view text);

// Streaming form: append() in order, then commit(). Without commit() the temporary file is removed.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();
  Status append(std::span<const std::byte> bytes);
  Status commit();

 private:
  FileWriter(std::string path, std::string temporary, int descriptor);
  std::string path_, temporary_;
  int descriptor_ = -1;
};

Result<std::string> read_text(const std::string& path);
bool is_same_file(const std::string& a, const std::string& b);  // through links; false when either is absent

}  // namespace ctk

// Zip archives, read only: a directory checked against the file's bounds, entries mapped or inflated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/result.h"

namespace ctk::data {

// Bytes together with what keeps them alive.
struct Bytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

struct ZipEntry {
  std::string name;
  std::uint64_t packed_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t data_offset = 0;  // of the packed bytes, inside the file
  std::uint32_t crc = 0;
  bool is_deflated = false;
};

// Layout read: end record (or its 64-bit form) -> directory -> one local header an entry. Sizes come from the
// directory.
class ZipFile {
 public:
  // Errors: input (missing, empty, no archive, truncated, encrypted, split over disks, two entries of one name, sizes
  // that reach outside the file or that deflate cannot reach).
  static Result<ZipFile> open(const std::string& path);

  const std::vector<ZipEntry>& entries() const { return entries_; }  // in directory order, folders left out
  const ZipEntry* find(std::string_view name) const;
  // The first bytes of an entry, at most `limit`; nothing is checked but what is needed to read them.
  Result<std::vector<std::byte>> read_head(const ZipEntry& entry, std::size_t limit) const;
  // All bytes: the mapping itself when stored, otherwise inflated into 64-byte aligned memory. Length and CRC are
  // checked.
  Result<Bytes> read(const ZipEntry& entry) const;

 private:
  std::string path_;
  MappedFile file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace ctk::data

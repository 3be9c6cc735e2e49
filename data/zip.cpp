#include "data/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/tensor.h"

namespace ctk::data {
namespace {

constexpr std::uint32_t kEndRecord = 0x06054b50, kEndRecord64 = 0x06064b50, kEndLocator64 = 0x07064b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEndBytes64 = 56, kLocatorBytes = 20, kDirectoryBytes = 46, kLocalBytes = 30;
constexpr std::uint64_t kDeflateReach = 1032;  // a deflate stream cannot grow by more than this factor

// Little-endian fields at an offset the caller has checked.
template <class T>
T field(std::span<const std::byte> bytes, std::size_t offset) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes[offset + i]) << (8 * i)));
  return value;
}

struct Directory {
  std::uint64_t offset = 0, bytes = 0, count = 0;
};

// Reads the end record, or the 64-bit one where the short one is full.
Result<Directory> find_directory(std::span<const std::byte> file, const std::string& path) {
  const Error not_zip =
      input_error(path + ": expected a zip archive, found no end record in " + std::to_string(file.size()) +
                  " bytes: the file is truncated or something else. Write it again.");
  if (file.size() < kEndBytes) return not_zip;
  const std::size_t lowest = file.size() - std::min<std::size_t>(file.size(), kEndBytes + 0xffff);
  std::size_t end = file.size() - kEndBytes;
  while (field<std::uint32_t>(file, end) != kEndRecord ||
         end + kEndBytes + field<std::uint16_t>(file, end + 20) > file.size()) {
    if (end == lowest) return not_zip;
    --end;
  }
  Directory found{field<std::uint32_t>(file, end + 16), field<std::uint32_t>(file, end + 12),
                  field<std::uint16_t>(file, end + 10)};
  bool one_disk = field<std::uint16_t>(file, end + 4) == 0 && field<std::uint16_t>(file, end + 8) == found.count;
  if (end >= kLocatorBytes && field<std::uint32_t>(file, end - kLocatorBytes) == kEndLocator64) {
    const std::uint64_t at = field<std::uint64_t>(file, end - kLocatorBytes + 8);
    if (at > file.size() || file.size() - at < kEndBytes64 || field<std::uint32_t>(file, at) != kEndRecord64)
      return not_zip;
    found = {field<std::uint64_t>(file, at + 48), field<std::uint64_t>(file, at + 40),
             field<std::uint64_t>(file, at + 32)};
    one_disk = field<std::uint32_t>(file, at + 16) == 0 && field<std::uint64_t>(file, at + 24) == found.count;
  }
  if (!one_disk)
    return input_error(path + ": expected a zip archive in one file, found one split over several. Join it.");
  if (found.offset > file.size() || found.bytes > file.size() - found.offset ||
      found.count > found.bytes / kDirectoryBytes)
    return input_error(path + ": zip directory claims " + std::to_string(found.count) + " entries in " +
                       std::to_string(found.bytes) + " bytes at " + std::to_string(found.offset) + ", the file has " +
                       std::to_string(file.size()) + " bytes: it is truncated or damaged. Write it again.");
  return found;
}

// Where the 64-bit extra field replaces a full 32-bit one; in the order size, packed size, offset.
bool apply_zip64(std::span<const std::byte> extra, std::uint64_t& bytes, std::uint64_t& packed, std::uint64_t& offset) {
  const bool needed = bytes == 0xffffffff || packed == 0xffffffff || offset == 0xffffffff;
  while (extra.size() >= 4) {
    const std::uint16_t id = field<std::uint16_t>(extra, 0), length = field<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    if (id == 1) {
      std::size_t at = 4;
      for (std::uint64_t* value : {&bytes, &packed, &offset}) {
        if (*value != 0xffffffff) continue;
        if (at + 8 > std::size_t{4} + length) return false;
        *value = field<std::uint64_t>(extra, at);
        at += 8;
      }
      return true;
    }
    extra = extra.subspan(std::size_t{4} + length);
  }
  return !needed;
}

Result<std::vector<ZipEntry>> read_directory(std::span<const std::byte> file, const Directory& directory,
                                             const std::string& path) {
  std::vector<ZipEntry> entries;
  std::unordered_set<std::string> names;
  std::span<const std::byte> rest = file.subspan(directory.offset, directory.bytes);
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const Error damaged =
        input_error(path + ": zip directory entry " + std::to_string(i) + " is damaged. Write the archive again.");
    if (rest.size() < kDirectoryBytes || field<std::uint32_t>(rest, 0) != kDirectoryEntry) return damaged;
    const std::size_t name_bytes = field<std::uint16_t>(rest, 28), extra_bytes = field<std::uint16_t>(rest, 30);
    const std::size_t whole = kDirectoryBytes + name_bytes + extra_bytes + field<std::uint16_t>(rest, 32);
    if (whole > rest.size()) return damaged;
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(rest.data()) + kDirectoryBytes, name_bytes);
    entry.crc = field<std::uint32_t>(rest, 16);
    entry.packed_bytes = field<std::uint32_t>(rest, 20);
    entry.bytes = field<std::uint32_t>(rest, 24);
    std::uint64_t local = field<std::uint32_t>(rest, 42);
    if (!apply_zip64(rest.subspan(kDirectoryBytes + name_bytes, extra_bytes), entry.bytes, entry.packed_bytes, local))
      return damaged;
    const std::uint16_t flags = field<std::uint16_t>(rest, 8), method = field<std::uint16_t>(rest, 10);
    rest = rest.subspan(whole);
    if (entry.name.empty() || entry.name.find('\0') != std::string::npos) return damaged;
    if (entry.name.back() == '/') continue;
    const std::string where = path + ": entry '" + entry.name + "'";
    if (flags & 1) return input_error(where + " is encrypted. Write the archive without a password.");
    if (method != 0 && method != 8)
      return input_error(where + ": expected it stored or deflated, found zip method " + std::to_string(method) +
                         ". Write the archive with plain deflate.");
    entry.is_deflated = method == 8;
    if (!names.insert(entry.name).second) return input_error(where + " appears twice. Write the archive again.");
    if (local > file.size() || file.size() - local < kLocalBytes || field<std::uint32_t>(file, local) != kLocalHeader)
      return input_error(where +
                         " starts outside the file or not at an entry: the archive is damaged. Write it again.");
    entry.data_offset =
        local + kLocalBytes + field<std::uint16_t>(file, local + 26) + field<std::uint16_t>(file, local + 28);
    if (entry.data_offset > file.size() || entry.packed_bytes > file.size() - entry.data_offset)
      return input_error(where + " claims " + std::to_string(entry.packed_bytes) +
                         " packed bytes, more than the file has. " +
                         "The archive is truncated or damaged: write it again.");
    const bool possible =
        entry.is_deflated ? entry.bytes / kDeflateReach <= entry.packed_bytes : entry.bytes == entry.packed_bytes;
    if (!possible)
      return input_error(where + " claims " + std::to_string(entry.bytes) + " bytes from " +
                         std::to_string(entry.packed_bytes) +
                         " packed ones, which cannot be. Write the archive again.");
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Inflates a raw deflate stream into `out`; answers how many bytes came, and whether the stream ended there.
struct Inflated {
  std::size_t bytes = 0;
  bool ended = false;
};

Inflated inflate_into(std::span<const std::byte> packed, std::span<std::byte> out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return {};
  Inflated result;
  int status = Z_OK;
  std::byte beyond;  // one byte more than allowed shows a stream that goes on
  bool went_on = false;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && !packed.empty()) {
      const std::size_t chunk = std::min<std::size_t>(packed.size(), 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
      stream.avail_in = static_cast<uInt>(chunk);
      packed = packed.subspan(chunk);
    }
    const std::size_t room = std::min<std::size_t>(out.size() - result.bytes, 1u << 30);
    stream.next_out = reinterpret_cast<Bytef*>(room ? out.data() + result.bytes : &beyond);
    stream.avail_out = room ? static_cast<uInt>(room) : 1u;
    const uInt before = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = before - stream.avail_out;
    if (room == 0 && made > 0) {
      went_on = true;
      break;
    }
    result.bytes += made;
    if (made == 0 && stream.avail_in == 0 && packed.empty()) break;
  }
  inflateEnd(&stream);
  result.ended = status == Z_STREAM_END && !went_on;
  return result;
}

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

Result<ZipFile> ZipFile::open(const std::string& path) {
  ZipFile zip;
  zip.path_ = path;
  CTK_TRY(zip.file_, MappedFile::open(path));
  const std::span<const std::byte> file = zip.file_.bytes();
  if (file.empty()) return input_error(path + ": expected a zip archive, found an empty file. Write it again.");
  CTK_TRY(const Directory directory, find_directory(file, path));
  CTK_TRY(zip.entries_, read_directory(file, directory, path));
  return zip;
}

const ZipEntry* ZipFile::find(std::string_view name) const {
  for (const ZipEntry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

Result<std::vector<std::byte>> ZipFile::read_head(const ZipEntry& entry, std::size_t limit) const {
  const std::span<const std::byte> packed = file_.bytes().subspan(entry.data_offset, entry.packed_bytes);
  const std::size_t length = static_cast<std::size_t>(std::min<std::uint64_t>(limit, entry.bytes));
  if (!entry.is_deflated) return std::vector<std::byte>(packed.begin(), packed.begin() + static_cast<long>(length));
  std::vector<std::byte> head(length);
  if (inflate_into(packed, head).bytes != length)
    return input_error(path_ + ": entry '" + entry.name +
                       "' does not inflate. The archive is damaged: write it again.");
  return head;
}

Result<Bytes> ZipFile::read(const ZipEntry& entry) const {
  const std::span<const std::byte> packed = file_.bytes().subspan(entry.data_offset, entry.packed_bytes);
  const std::string where = path_ + ": entry '" + entry.name + "'";
  Bytes result{packed, file_.owner()};
  if (entry.is_deflated) {
    const std::shared_ptr<void> memory = allocate_aligned(std::max<std::uint64_t>(entry.bytes, 1));
    if (!memory)
      return input_error(where + " needs " + std::to_string(entry.bytes) +
                         " bytes of memory, which the system refused.");
    const std::span<std::byte> out(static_cast<std::byte*>(memory.get()), entry.bytes);
    const Inflated got = inflate_into(packed, out);
    if (got.bytes != entry.bytes || !got.ended)
      return input_error(where + " claims " + std::to_string(entry.bytes) + " bytes but holds " +
                         (got.ended || got.bytes < entry.bytes ? std::to_string(got.bytes) : std::string("more")) +
                         ". The archive is damaged: write it again.");
    result = {out, memory};
  }
  if (crc_of(result.bytes) != entry.crc)
    return input_error(where + ": checksum differs from the directory's. The archive is damaged: write it again.");
  return result;
}

}  // namespace ctk::data

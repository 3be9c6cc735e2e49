#include "core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/mapped_pages.h"

namespace ctk {
namespace {

// `expected`: "a file that can be read". The remedy is that of the usual causes.
Error system_error(const std::string& path, const std::string& expected) {
  const int reason = errno;
  const char* remedy = "See that the disk and its mount are sound";
  if (reason == ENOENT || reason == ENOTDIR) remedy = "Check the path; those of a pipeline are relative to its file";
  if (reason == EACCES || reason == EPERM || reason == EROFS) remedy = "Change its permissions, or give another path";
  if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
    remedy = "Free some space, or give another output folder";
  if (reason == ENOMEM || reason == EMFILE) remedy = "Close other programs";
  return input_error(path + ": expected " + expected + ", found: " + std::strerror(reason) + ". " + remedy);
}

// Mappings that are alive, by first address: what release_pages() may drop.
struct Mappings {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> sizes;
};

Mappings& mappings() {
  static auto* all = new Mappings;  // mappings held by static objects may outlive any other order
  return *all;
}

std::shared_ptr<const void> owned_mapping(void* address, std::size_t size) {
  {
    const std::lock_guard lock(mappings().mutex);
    mappings().sizes[reinterpret_cast<std::uintptr_t>(address)] = size;
  }
  return {address, [size](const void* p) {
            const std::lock_guard lock(mappings().mutex);
            mappings().sizes.erase(reinterpret_cast<std::uintptr_t>(p));
            ::munmap(const_cast<void*>(p), size);
          }};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Without waiting: opening a pipe would stop here until somebody writes to it.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return system_error(path, "a file that can be read");
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return input_error(path + ": expected a regular file, found " +
                       (S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe") + ". Give the path of a file");
  }
  MappedFile file;
  const std::size_t size = static_cast<std::size_t>(info.st_size);
  if (size != 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      const Error error = system_error(path, "a file that can be mapped");
      ::close(descriptor);
      return error;
    }
    file.bytes_ = {static_cast<const std::byte*>(address), size};
    file.owner_ = owned_mapping(address, size);
  }
  ::close(descriptor);
  return file;
}

void release_pages(const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(mappings().mutex);
  auto found = mappings().sizes.upper_bound(begin);
  if (found == mappings().sizes.begin()) return;
  --found;
  if (begin + bytes > found->first + found->second) return;
  // Whole pages inside the range; those at its ends may hold what neighbours still read.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

FileWriter::FileWriter(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), descriptor_(other.descriptor_) {
  other.descriptor_ = -1;
}

FileWriter::~FileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  std::string temporary = path + ".part." + std::to_string(::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return system_error(path, "a folder where it can be written");
  return FileWriter(path, std::move(temporary), descriptor);
}

Status FileWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error(path_, "to write the whole file");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status FileWriter::commit() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS)
    return system_error(path_, "to write the whole file");
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const Error error = system_error(path_, "to write the whole file");
    ::unlink(temporary_.c_str());
    return error;
  }
  return {};
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  CTK_TRY(FileWriter writer, FileWriter::create(path));
  CTK_CHECK(writer.append(bytes));
  return writer.commit();
}

Status write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

Result<std::string> read_text(const std::string& path) {
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  return std::string(file.text());
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

}  // namespace ctk

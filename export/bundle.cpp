#include "export/bundle.h"

#include <zlib.h>

#include <cstring>

#include "core/file.h"
#include "core/hash.h"
#include "core/mapped_pages.h"
#include "graph/text.h"
#include "runtime/bundle.h"

namespace ctk::exporter {
namespace {

std::size_t aligned(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// Lays tensors one after another; the bytes go to the end of `file` where there is one.
class DataSink final : public graph::ConstantSink {
 public:
  explicit DataSink(std::string* file) : file_(file), begin_(file != nullptr ? file->size() : 0) {}

  std::string store(const Tensor& tensor) override {
    const std::size_t offset = aligned(size_, runtime::kBundleTensorAlignment);
    size_ = offset + tensor.bytes();
    if (file_ != nullptr) {
      file_->resize(begin_ + offset, '\0');
      file_->append(static_cast<const char*>(tensor.data()), tensor.bytes());
      release_pages(tensor.data(), tensor.bytes());
    }
    // A fixed width keeps the text's length independent of where tensors lie.
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string reference(12, '0');
    for (std::size_t i = 0; i < 12; ++i) reference[11 - i] = kDigits[(offset >> (4 * i)) & 15];
    return reference;
  }

  std::size_t size() const { return size_; }

 private:
  std::string* file_;
  std::size_t begin_, size_ = 0;
};

void put_u64(std::string& file, std::size_t at, std::uint64_t value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

std::string deflate_text(const std::string& text) {
  uLongf length = ::compressBound(static_cast<uLong>(text.size()));
  std::string packed(length, '\0');
  ::compress2(reinterpret_cast<Bytef*>(packed.data()), &length, reinterpret_cast<const Bytef*>(text.data()),
              static_cast<uLong>(text.size()), Z_BEST_COMPRESSION);  // cannot fail: the buffer holds the bound
  packed.resize(length);
  return packed;
}

std::uint64_t hash_text(const std::string& text) {
  return hash64(std::as_bytes(std::span(text)));
}

}  // namespace

std::size_t bundle_bytes(const graph::Graph& graph) {
  DataSink sink(nullptr);
  const std::string text = deflate_text(graph::print_graph(graph, &sink));
  return aligned(runtime::kBundleHeaderBytes + text.size(), 64) + sink.size();
}

std::string bundle_of(const graph::Graph& graph) {
  DataSink measured(nullptr);  // sizes first, so that a large network is written once, where it will lie
  const std::string readable = graph::print_graph(graph, &measured);
  const std::string text = deflate_text(readable);
  const std::size_t data_offset = aligned(runtime::kBundleHeaderBytes + text.size(), 64);
  std::string file;
  file.reserve(data_offset + measured.size());
  file.resize(runtime::kBundleHeaderBytes, '\0');
  file += text;
  file.resize(data_offset, '\0');
  DataSink sink(&file);
  graph::print_graph(graph, &sink);
  std::memcpy(file.data(), runtime::kBundleMagic, sizeof runtime::kBundleMagic);
  const std::uint32_t version = runtime::kBundleVersion;
  std::memcpy(file.data() + 8, &version, sizeof version);
  put_u64(file, 16, runtime::kBundleHeaderBytes);
  put_u64(file, 24, text.size());
  put_u64(file, 32, data_offset);
  put_u64(file, 40, sink.size());
  put_u64(file, 48, hash_text(text));
  put_u64(file, 56, hash64(std::as_bytes(std::span(file)).subspan(data_offset)));
  put_u64(file, 64, readable.size());
  put_u64(file, runtime::kBundleHashedBytes, hash64(std::as_bytes(std::span(file)).first(runtime::kBundleHashedBytes)));
  return file;
}

Status write_bundle(const graph::Graph& graph, const std::string& path) {
  return write_file(path, bundle_of(graph));
}

}  // namespace ctk::exporter

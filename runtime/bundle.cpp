#include "runtime/bundle.h"

#include <zlib.h>

#include <charconv>
#include <cstring>

#include "core/file.h"
#include "core/hash.h"
#include "core/mapped_pages.h"
#include "core/printable.h"
#include "graph/floats.h"
#include "graph/text.h"

namespace ctk::runtime {
namespace {

std::uint64_t read_u64(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Error damaged(const std::string& what, std::uint64_t expected, std::uint64_t found) {
  return input_error("the bundle is damaged: " + what + ": expected " + std::to_string(expected) + ", found " +
                     std::to_string(found) + ". Export it again");
}

// Deflate packs at most 1032 to 1; a larger claim is a lie and must not size an allocation.
Result<std::string> inflate_text(std::span<const std::byte> packed, std::uint64_t size) {
  if (size > 1032 * static_cast<std::uint64_t>(packed.size()) + 64)
    return damaged("text bytes before deflating", 1032 * packed.size(), size);
  std::string text(size, '\0');
  uLongf length = static_cast<uLongf>(size);
  const int status = ::uncompress(reinterpret_cast<Bytef*>(text.data()), &length,
                                  reinterpret_cast<const Bytef*>(packed.data()), static_cast<uLong>(packed.size()));
  if (status != Z_OK || length != size) return damaged("inflated text bytes", size, length);
  return text;
}

// What reads a constant trusts its declared type; of another one may be matrices in 16 bits alone.
Status check_constants(const graph::Graph& graph) {
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const graph::Value& value = graph.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (value.is_removed || !value.constant || value.constant->dtype() == value.dtype) continue;
    if (graph::is_narrow(value) && value.constant->shape().size() >= 2) continue;
    return input_error("the bundle is damaged: constant \"" + printable(value.name) + "\": expected " +
                       std::string(name_of(value.dtype)) + ", or f16 or bf16 for a matrix of f32, found " +
                       std::string(name_of(value.constant->dtype())) + ". Export it again");
  }
  return {};
}

class DataSection final : public graph::ConstantSource {
 public:
  DataSection(std::span<const std::byte> data, std::shared_ptr<const void> owner)
      : data_(data), owner_(std::move(owner)) {}

  Result<Tensor> load(std::string_view reference, DType dtype, const Shape& shape) override {
    std::uint64_t offset = 0;
    const auto [end, error] = std::from_chars(reference.data(), reference.data() + reference.size(), offset, 16);
    if (error != std::errc() || end != reference.data() + reference.size()) {
      return input_error("expected a data offset, found \"" + std::string(reference) + "\"");
    }
    CTK_TRY(const std::size_t count, element_count(shape));
    const std::size_t bytes = byte_size(dtype, count);
    if (offset > data_.size() || bytes > data_.size() - offset || offset % kBundleTensorAlignment != 0) {
      return input_error("a tensor of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                         " does not lie within the " + std::to_string(data_.size()) + " bytes of data");
    }
    return Tensor::borrowed(dtype, shape, data_.data() + offset, owner_);
  }

 private:
  std::span<const std::byte> data_;
  std::shared_ptr<const void> owner_;
};

}  // namespace

bool is_bundle(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof kBundleMagic && std::memcmp(bytes.data(), kBundleMagic, sizeof kBundleMagic) == 0;
}

Result<graph::Graph> load_bundle_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.size() < kBundleHeaderBytes) return damaged("header bytes", kBundleHeaderBytes, bytes.size());
  if (!is_bundle(bytes)) return input_error("expected a bundle (magic \"CTKBNDL\"), found something else");
  std::uint32_t version = 0;
  std::memcpy(&version, bytes.data() + 8, sizeof version);
  if (version < kOldestBundleVersion || version > kBundleVersion) {
    return input_error("bundle format version " + std::to_string(version) + " is not known, expected " +
                       std::to_string(kOldestBundleVersion) + " to " + std::to_string(kBundleVersion) +
                       ". Export it again with this version");
  }
  const std::uint64_t header_hash = hash64(bytes.first(kBundleHashedBytes));
  if (header_hash != read_u64(bytes, kBundleHashedBytes)) {
    return damaged("header hash", read_u64(bytes, kBundleHashedBytes), header_hash);
  }
  const std::uint64_t text_offset = read_u64(bytes, 16), text_size = read_u64(bytes, 24);
  const std::uint64_t data_offset = read_u64(bytes, 32), data_size = read_u64(bytes, 40);
  if (text_offset != kBundleHeaderBytes || text_size > bytes.size() - text_offset)
    return damaged("text bytes", text_size, bytes.size());
  if (data_offset < text_offset + text_size || data_offset % 64 != 0 || data_offset > bytes.size() ||
      data_size != bytes.size() - data_offset) {
    return damaged("file bytes", data_offset + data_size, bytes.size());
  }
  const auto text = bytes.subspan(text_offset, text_size);
  const auto data = bytes.subspan(data_offset, data_size);
  if (hash64(text) != read_u64(bytes, 48)) return damaged("text hash", read_u64(bytes, 48), hash64(text));
  const std::uint64_t data_hash = hash64_of_mapped(data);
  if (data_hash != read_u64(bytes, 56)) return damaged("data hash", read_u64(bytes, 56), data_hash);
  CTK_TRY(const std::string readable, inflate_text(text, read_u64(bytes, 64)));
  DataSection source(data, owner);
  CTK_TRY(graph::Graph graph, graph::parse_graph(readable, &source));
  release_pages(data.data(), data.size());  // reading scales brought in what lies around them
  CTK_CHECK(check_constants(graph));
  CTK_CHECK(verify(graph));
  return graph;
}

Result<graph::Graph> load_bundle(const std::string& path) {
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  auto graph = load_bundle_bytes(file.bytes(), file.owner());
  if (!graph) return std::move(graph).error().with_context(path);
  return graph;
}

}  // namespace ctk::runtime

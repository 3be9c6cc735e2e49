#include "compress/mapped_artifact.h"

#include <filesystem>

#include "core/file.h"
#include "core/hash.h"
#include "core/mapped_pages.h"

namespace ctk::pipeline {

MappedArtifact held_artifact(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {std::as_bytes(std::span(*owner)), owner};
}

std::optional<MappedArtifact> map_artifact(const ArtifactCache& cache, const std::string& stage,
                                           const std::string& fingerprint) {
  if (cache.is_shared()) {
    auto contents = cache.get(stage, fingerprint);
    if (!contents) return std::nullopt;
    return held_artifact(std::move(*contents));
  }
  const std::string name = cache.path(stage, fingerprint);
  if (!std::filesystem::exists(name)) return std::nullopt;
  const std::size_t digits = Fingerprint().hex().size();  // of the hash that put() appends
  const auto file = MappedFile::open(name);
  if (!file || file->bytes().size() < digits) return std::nullopt;
  const std::string_view text = file->text().substr(0, file->bytes().size() - digits);
  const bool is_sound = Fingerprint().add(text).hex() == file->text().substr(text.size());
  release_pages(file->bytes().data(), file->bytes().size());
  if (!is_sound) return std::nullopt;
  return MappedArtifact{file->bytes().first(text.size()), file->owner()};
}

}  // namespace ctk::pipeline

#include "compress/mapped_artifact.h"

#include <filesystem>

#include "core/file.h"
#include "core/hash.h"
#include "core/mapped_pages.h"

namespace ctk::pipeline {

std::optional<MappedArtifact> map_artifact(const ArtifactCache& cache, const std::string& stage,
                                           const std::string& fingerprint) {
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

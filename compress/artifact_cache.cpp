#include "compress/artifact_cache.h"

#include <filesystem>

#include "core/file.h"
#include "core/hash.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kHashDigits = 32;

std::string hash_of(const std::string& contents) {
  return Fingerprint().add(contents).hex();
}

}  // namespace

std::string ArtifactCache::path(const std::string& stage, const std::string& fingerprint) const {
  return folder_ + "/" + stage + "-" + fingerprint;
}

std::optional<std::string> ArtifactCache::get(const std::string& stage, const std::string& fingerprint) const {
  const std::string file = path(stage, fingerprint);
  if (!use_ || !std::filesystem::exists(file)) return std::nullopt;
  auto text = read_text(file);
  if (!text || text->size() < kHashDigits) return std::nullopt;
  std::string contents = text->substr(0, text->size() - kHashDigits);
  if (hash_of(contents) != text->substr(contents.size())) return std::nullopt;
  return contents;
}

Status ArtifactCache::put(const std::string& stage, const std::string& fingerprint, const std::string& contents) const {
  return write_file(path(stage, fingerprint), contents + hash_of(contents));
}

}  // namespace ctk::pipeline

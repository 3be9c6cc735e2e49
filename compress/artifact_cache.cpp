#include "compress/artifact_cache.h"

#include <filesystem>
#include <span>

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
  const std::string hash = text->substr(text->size() - kHashDigits);
  text->resize(text->size() - kHashDigits);
  if (hash_of(*text) != hash) return std::nullopt;
  return std::move(*text);
}

Status ArtifactCache::put(const std::string& stage, const std::string& fingerprint, const std::string& contents) const {
  CTK_TRY(FileWriter file, FileWriter::create(path(stage, fingerprint)));
  CTK_CHECK(file.append(std::as_bytes(std::span(contents))));
  const std::string hash = hash_of(contents);
  CTK_CHECK(file.append(std::as_bytes(std::span(hash))));
  return file.commit();
}

}  // namespace ctk::pipeline

#include "compress/artifact_cache.h"

#include <cstdint>
#include <cstring>
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

// Texts behind each other, each with its length in front.
void append(std::string& bytes, const std::string& text) {
  const std::uint64_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}

std::string take(std::string_view& bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) return {};
  std::memcpy(&size, bytes.data(), sizeof size);
  const std::string text(bytes.substr(sizeof size, size));
  bytes.remove_prefix(sizeof size + text.size());
  return text;
}

}  // namespace

ArtifactCache::ArtifactCache(std::string folder, bool use, Ranks* ranks)
    : folder_(std::move(folder)), use_(use), ranks_(ranks != nullptr ? ranks : &alone()) {}

std::string ArtifactCache::path(const std::string& stage, const std::string& fingerprint) const {
  return folder_ + "/" + stage + "-" + fingerprint;
}

Ranks& ArtifactCache::ranks() const {
  return state_->by_itself > 0 || state_->is_replay ? alone() : *ranks_;
}

std::optional<std::string> ArtifactCache::read(const std::string& file) const {
  if (!use_ || !std::filesystem::exists(file)) return std::nullopt;
  auto text = read_text(file);
  if (!text || text->size() < kHashDigits) return std::nullopt;
  const std::string hash = text->substr(text->size() - kHashDigits);
  text->resize(text->size() - kHashDigits);
  if (hash_of(*text) != hash) return std::nullopt;
  return std::move(*text);
}

std::optional<std::string> ArtifactCache::get(const std::string& stage, const std::string& fingerprint) const {
  if (state_->is_replay) {  // whatever this rank's fingerprint, which may tell of its machine
    const auto found = state_->seen.find(stage);
    return found == state_->seen.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> contents;
  if (ranks_->is_first()) contents = read(path(stage, fingerprint));
  if (ranks().is_alone()) {
    if (state_->keeps && contents) state_->seen[stage] = *contents;
    return contents;
  }
  // A connection that is lost here is told by the next call that can.
  const auto bytes = ranks_->from_first("artifact " + stage, contents ? "+" + *contents : "-");
  if (!bytes || *bytes == "-") return std::nullopt;
  return bytes->substr(1);
}

Status ArtifactCache::put(const std::string& stage, const std::string& fingerprint, const std::string& contents) const {
  if (!ranks_->is_first()) return {};
  if (state_->keeps) state_->seen[stage] = contents;
  CTK_TRY(FileWriter file, FileWriter::create(path(stage, fingerprint)));
  CTK_CHECK(file.append(std::as_bytes(std::span(contents))));
  const std::string hash = hash_of(contents);
  CTK_CHECK(file.append(std::as_bytes(std::span(hash))));
  return file.commit();
}

Result<std::string> ArtifactCache::first_does(std::string_view what, const std::function<Result<std::string>()>& work) {
  Ranks& together = ranks();
  return together.first_does(what, [&] {
    ++state_->by_itself;
    auto result = work();
    --state_->by_itself;
    return result;
  });
}

Status ArtifactCache::first_runs(std::string_view what, bool is_needed, const std::function<Status()>& stage) {
  if (ranks().is_alone()) return stage();
  if (!is_needed && !ranks_->is_first()) return {};
  const auto run = [&]() -> Result<std::string> {
    ++state_->by_itself;
    state_->keeps = is_needed;
    state_->seen.clear();
    const Status status = stage();
    --state_->by_itself;
    state_->keeps = false;
    if (!status) return status.error();
    std::string bytes;
    for (const auto& [name, contents] : state_->seen) append(bytes, name), append(bytes, contents);
    state_->seen.clear();
    return bytes;
  };
  if (!is_needed) {
    CTK_CHECK(run());
    return {};
  }
  CTK_TRY(const std::string bytes, ranks_->first_does(what, run));
  if (ranks_->is_first()) return {};
  for (std::string_view left = bytes; !left.empty();) {
    const std::string name = take(left);
    state_->seen[name] = take(left);
  }
  state_->is_replay = true;
  const Status status = stage();
  state_->is_replay = false;
  state_->seen.clear();
  return status;
}

}  // namespace ctk::pipeline

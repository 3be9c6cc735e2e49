// A large artifact, mapped: what is not read of it takes no memory.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "compress/artifact_cache.h"

namespace ctk::pipeline {

struct MappedArtifact {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// Bytes that lie in memory anyway.
MappedArtifact held_artifact(std::string bytes);
// As ArtifactCache::get, also where runs are not to resume; what several ranks share is not mapped but sent.
std::optional<MappedArtifact> map_artifact(const ArtifactCache& cache, const std::string& stage,
                                           const std::string& fingerprint);

}  // namespace ctk::pipeline

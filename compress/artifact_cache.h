// Stage artifacts on disk, under the fingerprint of everything they depend on: <output>/.cache/<stage>-<fingerprint>.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace ctk::pipeline {

// Part of every fingerprint: raised when a stage would answer differently for the same inputs.
inline constexpr int kArtifactVersion = 7;

class ArtifactCache {
 public:
  ArtifactCache(std::string folder, bool use) : folder_(std::move(folder)), use_(use) {}
  // Contents of a complete artifact, or nothing. A damaged one (its trailing hash does not fit) counts as absent.
  std::optional<std::string> get(const std::string& stage, const std::string& fingerprint) const;
  // Whole or not at all. Errors: input (disk).
  Status put(const std::string& stage, const std::string& fingerprint, const std::string& contents) const;
  std::string path(const std::string& stage, const std::string& fingerprint) const;

 private:
  std::string folder_;
  bool use_;
};

}  // namespace ctk::pipeline

// Scores of this fingerprint that are known already, by (layer, scheme): a run that was stopped, or one that left other
// layers out, has them. Kept on disk while the stage works.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "compress/session.h"

namespace ctk::pipeline {

// A score as scores.json has it, and back.
nlohmann::json row_of(const Score& score);
Score score_of(const nlohmann::json& row);

// Scores as bytes for other ranks, every bit of them. Errors: internal (no such bytes).
std::string encode(std::span<const Score> scores);
Result<std::vector<Score>> decode(const std::string& bytes);

class ScoreStore {
 public:
  ScoreStore(const ArtifactCache& cache, std::string fingerprint);

  const Score* find(const std::string& layer, const std::string& scheme) const;
  // Saved every other second.
  Status add(Score score);
  Status save();

 private:
  using Clock = std::chrono::steady_clock;
  const ArtifactCache& cache_;
  std::string fingerprint_;
  std::map<std::pair<std::string, std::string>, Score> scores_;
  Clock::time_point saved_;
};

}  // namespace ctk::pipeline

#include "compress/sensitivity/score_store.h"

#include <nlohmann/json.hpp>

namespace ctk::pipeline {

using nlohmann::json;

ScoreStore::ScoreStore(const ArtifactCache& cache, std::string fingerprint)
    : cache_(cache), fingerprint_(std::move(fingerprint)), saved_(Clock::now()) {
  const auto text = cache_.get("scores", fingerprint_);
  const json rows = text ? json::parse(*text, nullptr, false) : json::array();
  for (const json& row : rows.is_array() ? rows : json::array()) {
    scores_[{row["layer"], row["scheme"]}] = {row["layer"], row["scheme"], row["loss"], row["standard_error"]};
  }
}

const Score* ScoreStore::find(const std::string& layer, const std::string& scheme) const {
  const auto found = scores_.find({layer, scheme});
  return found == scores_.end() ? nullptr : &found->second;
}

Status ScoreStore::add(Score score) {
  const std::pair key{score.layer, score.scheme};
  scores_[key] = std::move(score);
  return Clock::now() - saved_ < std::chrono::seconds(2) ? Status() : save();
}

Status ScoreStore::save() {
  saved_ = Clock::now();
  json rows = json::array();
  for (const auto& [key, score] : scores_) {
    rows.push_back({{"layer", score.layer},
                    {"scheme", score.scheme},
                    {"loss", score.loss},
                    {"standard_error", score.standard_error}});
  }
  return cache_.put("scores", fingerprint_, rows.dump());
}

}  // namespace ctk::pipeline

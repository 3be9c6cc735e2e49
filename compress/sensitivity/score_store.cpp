#include "compress/sensitivity/score_store.h"

#include <nlohmann/json.hpp>

namespace ctk::pipeline {

using nlohmann::json;

std::string encode(std::span<const Score> scores) {
  json rows = json::array();
  for (const Score& score : scores) rows.push_back({score.layer, score.scheme, score.loss, score.standard_error});
  const std::vector<std::uint8_t> bytes = json::to_cbor(rows);
  return {bytes.begin(), bytes.end()};
}

Result<std::vector<Score>> decode(const std::string& bytes) {
  const json rows = json::from_cbor(bytes, true, false);
  if (!rows.is_array()) return internal_error("sensitivity: expected scores from every rank");
  std::vector<Score> scores;
  for (const json& row : rows) scores.push_back({row[0], row[1], row[2], row[3]});
  return scores;
}

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

#include "compress/sensitivity/score_store.h"

#include <nlohmann/json.hpp>

namespace ctk::pipeline {

using nlohmann::json;

json row_of(const Score& score) {
  json row{
      {"layer", score.layer}, {"scheme", score.scheme}, {"loss", score.loss}, {"standard_error", score.standard_error}};
  if (score.of_weights) row["weights"] = *score.of_weights;
  if (score.of_activations) row["activations"] = *score.of_activations;
  return row;
}

Score score_of(const json& row) {
  Score score{row["layer"], row["scheme"], row["loss"], row["standard_error"]};
  if (row.contains("weights")) score.of_weights = row["weights"].get<double>();
  if (row.contains("activations")) score.of_activations = row["activations"].get<double>();
  return score;
}

std::string encode(std::span<const Score> scores) {
  json rows = json::array();
  for (const Score& score : scores) rows.push_back(row_of(score));
  const std::vector<std::uint8_t> bytes = json::to_cbor(rows);
  return {bytes.begin(), bytes.end()};
}

Result<std::vector<Score>> decode(const std::string& bytes) {
  const json rows = json::from_cbor(bytes, true, false);
  if (!rows.is_array()) return internal_error("sensitivity: expected scores from every rank");
  std::vector<Score> scores;
  for (const json& row : rows) scores.push_back(score_of(row));
  return scores;
}

ScoreStore::ScoreStore(const ArtifactCache& cache, std::string fingerprint)
    : cache_(cache), fingerprint_(std::move(fingerprint)), saved_(Clock::now()) {
  const auto text = cache_.get("scores", fingerprint_);
  const json rows = text ? json::parse(*text, nullptr, false) : json::array();
  for (const json& row : rows.is_array() ? rows : json::array()) {
    scores_[{row["layer"], row["scheme"]}] = score_of(row);
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
  for (const auto& [key, score] : scores_) rows.push_back(row_of(score));
  return cache_.put("scores", fingerprint_, rows.dump());
}

}  // namespace ctk::pipeline

#include "compress/stage_keys.h"

#include <algorithm>
#include <cstdlib>

namespace ctk::pipeline {
namespace {

// Values are checked by then: each stands in PipelineConfig::canonical in its one spelling, defaults included.
const std::string* find(const PipelineConfig& config, const std::string& path) {
  const auto found = config.canonical.find(path);
  return found == config.canonical.end() ? nullptr : &found->second;
}

void set(const PipelineConfig& config, const std::string& path, std::string& into) {
  if (const std::string* text = find(config, path)) into = *text;
}
void set(const PipelineConfig& config, const std::string& path, double& into) {
  if (const std::string* text = find(config, path)) into = std::strtod(text->c_str(), nullptr);
}
void set(const PipelineConfig& config, const std::string& path, std::int64_t& into) {
  if (const std::string* text = find(config, path)) into = std::strtoll(text->c_str(), nullptr, 10);
}

void set(const PipelineConfig& config, const std::string& path, bool& into) {
  if (const std::string* text = find(config, path)) into = *text == "true";
}

// "[a, b]"
std::vector<std::string> list(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t at = 1; at + 1 < text.size();) {
    const std::size_t end = std::min(text.find(", ", at), text.size() - 1);
    items.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return items;
}

}  // namespace

TrainKeys train_keys(const PipelineConfig& config, const std::string& stage) {
  const std::string at = "stages." + stage + (stage == "prune" ? ".finetune" : "");
  TrainKeys keys;
  if (const std::string* features = find(config, at + ".features")) keys.features = list(*features);
  set(config, at + ".feature_loss", keys.feature_loss);
  set(config, at + ".feature_weight", keys.feature_weight);
  set(config, at + ".cut_teacher", keys.cut_teacher);
  set(config, at + ".checkpoint_blocks", keys.checkpoint_blocks);
  set(config, at + ".autocast", keys.autocast);
  set(config, at + ".ranges", keys.ranges);
  set(config, at + ".lora_rank", keys.lora_rank);
  set(config, at + ".student.width", keys.student_width);
  set(config, at + ".student.depth", keys.student_depth);
  return keys;
}

EarlyExitKeys early_exit_keys(const PipelineConfig& config) {
  const std::string at = "stages.early_exit.";
  EarlyExitKeys keys;
  if (const std::string* names = find(config, at + "at"); names != nullptr && *names != "[auto]")
    keys.at = list(*names);
  set(config, at + "every", keys.every);
  if (const std::string* text = find(config, at + "max_drop")) {
    if (const auto drop = parse_drop(*text)) keys.max_drop = *drop;
  }
  std::string on_refusal;
  set(config, at + "on_refusal", on_refusal);
  keys.continues = on_refusal == "continue";
  set(config, at + "epochs", keys.epochs);
  set(config, at + "batch_size", keys.batch_size);
  set(config, at + "learning_rate", keys.learning_rate);
  set(config, at + "temperature", keys.temperature);
  set(config, at + "alpha", keys.alpha);
  return keys;
}

PruneKeys prune_keys(const PipelineConfig& config) {
  PruneKeys keys;
  set(config, "stages.prune.blocks", keys.blocks);
  set(config, "stages.prune.iterations", keys.iterations);
  if (const std::string* text = find(config, "stages.prune.latency")) {
    const bool is_share = text->ends_with('%');
    const double value = std::strtod(text->c_str(), nullptr);  // absolute ones stand in us
    keys.latency = Limit{is_share ? value / 100 : value, is_share};
  }
  return keys;
}

std::int64_t tuning_steps(const PipelineConfig& config) {
  std::int64_t steps = 200;
  set(config, "stages.quantize.steps", steps);
  return steps;
}

}  // namespace ctk::pipeline

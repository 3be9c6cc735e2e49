// Keys that one stage alone reads, taken from the checked file when it asks: what they mean stands in
// config_schema.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compress/config.h"

namespace ctk::pipeline {

struct TrainKeys {
  std::vector<std::string> features;  // "student value = teacher value", or "auto" alone; empty: none
  std::string feature_loss = "mse";   // attention, attention_probabilities
  double feature_weight = 1;
  bool cut_teacher = false;        // its classes behind the student's are left out
  bool checkpoint_blocks = false;  // computed again on the way back
  std::string autocast = "none";   // bf16, forced_bf16
  std::string ranges = "fixed";    // qat: of activations; learned, clipped
  std::int64_t lora_rank = 0;      // 0: everything is trained
  double student_width = 1;        // distill: share of the model's channels, the model being the teacher
  std::string student_depth;       // every_second; empty: as deep as the model

  bool of_attention() const { return feature_loss == "attention_probabilities"; }
  bool makes_student() const { return student_width < 1 || !student_depth.empty(); }
};
// `stage` is distill, finetune, qat, or prune for what its `finetune:` says.
TrainKeys train_keys(const PipelineConfig& config, const std::string& stage);

struct EarlyExitKeys {
  std::vector<std::string> at;  // values or nodes; empty: found
  std::int64_t every = 0;       // blocks; 0: found by multiply-adds
  MetricDrop max_drop;
  bool continues = false;  // on_refusal
  std::int64_t epochs = 20, batch_size = 128;
  double learning_rate = 0.01, temperature = 1, alpha = 0.5;
};
EarlyExitKeys early_exit_keys(const PipelineConfig& config);

struct PruneKeys {
  std::int64_t blocks = 0;       // whole ones that go first
  std::int64_t iterations = 1;   // rounds of cutting and training
  std::optional<Limit> latency;  // us of one sample, or a share of the network's
};
PruneKeys prune_keys(const PipelineConfig& config);

// Of signround, a block.
std::int64_t tuning_steps(const PipelineConfig& config);

}  // namespace ctk::pipeline

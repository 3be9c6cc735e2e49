// Rotary position embeddings: the angles' tables for every form of scaling that checkpoints of Llama's family name.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor.h"

namespace ctk::graph::hf {

enum class RopeType { standard, linear, llama3, yarn };

struct RopeConfig {
  RopeType type = RopeType::standard;
  double theta = 10000.0;
  double factor = 1.0;                        // linear, llama3, yarn: how much longer than in training
  double low_freq_factor = 1.0;               // llama3
  double high_freq_factor = 4.0;              // llama3
  std::int64_t original_max_positions = 0;    // llama3, yarn
  double beta_fast = 32.0, beta_slow = 1.0;   // yarn
  std::optional<double> attention_factor;     // yarn; none: by factor and the next two
  double mscale = 0.0, mscale_all_dim = 0.0;  // yarn; 0: not given
  bool truncates = true;                      // yarn: the range of corrected dimensions is rounded outwards
  std::vector<float> frequency_factors;       // GGUF's rope_freqs: each frequency is divided by its own; empty: none
};

struct RopeTables {
  Tensor cosines, sines;  // f32 [positions, size / 2]
};

// Angle of pair i at position p = p * frequency[i], all in float as PyTorch has it; frequency[i] = theta^(-2 i / size)
// before scaling. `size`: even, the head's. Sources: Su et al., RoFormer, 2021; Chen et al., Position Interpolation,
// 2023 (linear); Llama 3.1's release (llama3); Peng et al., YaRN, 2023, with the attention factor folded into both
// tables. Errors: input (memory).
std::vector<float> rope_frequencies(const RopeConfig& config, std::int64_t size);
double rope_attention_factor(const RopeConfig& config);
Result<RopeTables> rope_tables(const RopeConfig& config, std::int64_t size, std::int64_t positions);

}  // namespace ctk::graph::hf

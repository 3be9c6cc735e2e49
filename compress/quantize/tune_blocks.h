// Rounding tuned block by block: what codes a layer gets is decided by what its whole block then gives.
#pragma once

#include <functional>

#include "compress/quantize/apply.h"
#include "data/splits.h"
#include "train/trainer.h"

namespace ctk::quantization {

// Whether codes of this method are where tune_blocks() starts.
bool tunes_blocks(std::string_view method);

struct BlockTuningOptions {
  train::Trainer* trainer = nullptr;
  std::int64_t steps = 200;  // a block
  std::size_t batch = 8;     // samples that are read at once
  std::size_t per_step = 1;  // such batches a step sees
  std::uint64_t seed = 0;
  int threads = 1;
  std::function<Status(std::size_t done, std::size_t total)> on_step;  // over all blocks
};

struct TunedBlock {
  std::vector<std::string> layers;  // addresses of those whose weights were tuned
  std::int64_t samples = 0, held_out = 0;
  double error_before = 0, error = 0;  // squared error of the block's output over its square, on held-out samples
  bool is_kept = false;                // the tuned codes were better there
};

struct TunedCodes {
  GivenCodes given;  // of the layers that were tuned and kept; the others of `start`
  std::vector<TunedBlock> blocks;
};

// Tunes the rounding of `coded`, which apply_schemes() made of `original`: block after block, towards what the float
// network's block gives, on inputs that the network with its earlier blocks tuned already gives. Activations are
// rounded as noted. A block is at least kLeastLayers coded layers between two cuts (graph/blocks.h); weights with
// readers in other blocks stay. Samples of other shapes take part where the block does not hold numbers that follow
// from the shape. `start`: what was given to apply_schemes(); receipts of tuned layers state the block's error before
// and after. Errors: input (too few samples), those of running and of the trainer, and those of on_step.
inline constexpr std::size_t kLeastLayers = 5;
Result<TunedCodes> tune_blocks(const graph::Graph& original, const graph::Graph& coded, const GivenCodes& start,
                               const data::Split& split, const BlockTuningOptions& options);

}  // namespace ctk::quantization

// Heads of early exits, trained on what the network says.
#pragma once

#include <functional>
#include <vector>

#include "compress/early_exit/exits.h"
#include "compress/stage_keys.h"
#include "data/splits.h"
#include "train/trainer.h"

namespace ctk::exits {

struct HeadOptions {
  std::int64_t epochs = 20, batch_size = 128;
  double learning_rate = 0.01, temperature = 1, alpha = 0.5;
  std::uint64_t seed = 0;
  int threads = 1;
  std::function<Status(std::int64_t step)> on_step = {};  // of all heads together
};

// One head a feature, whose thresholds stand at kNobody. Only heads learn: the network stays bit for bit what it is.
// It runs once over `split`; what heads read of each sample is kept, so training has no random changes of pictures.
// `infos`: infer_shapes() of the graph. Errors: those of running the network and of training.
Result<std::vector<Head>> train_heads(const graph::Graph& graph, const std::vector<graph::ValueId>& features,
                                      const std::vector<graph::InferredValue>& infos, const data::Split& split,
                                      train::Trainer& trainer, const HeadOptions& options);

}  // namespace ctk::exits

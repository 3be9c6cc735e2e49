// The training loop: epochs of shuffled batches, a schedule, the best state by score, states to go on from.
#pragma once

#include "train/trainer.h"

namespace ctk::train {

// See Trainer::fit(). Samples: each epoch visits a permutation by (seed, epoch), in whole batches; what is left over
// has its turn in another epoch. Bits: the same seed and thread count give the same result; ATen's sums depend on the
// thread count in their last bits.
Result<FitResult> fit(const FitTask& task);

}  // namespace ctk::train

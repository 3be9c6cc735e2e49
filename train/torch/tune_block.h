// Rounding and scales of a block's weights tuned by the sign of their gradient.
#pragma once

#include "train/trainer.h"

namespace ctk::train {

// SignRound: what rounds a weight up or down, and what scales it, decided by the block's outputs.
// Minimises: squared difference of the block's outputs to the targets, over the batches that are not held out.
// In: a block with codes, batches of inputs and targets. Out: the block with other codes and scales.
// Each step moves every offset of rounding, within half a step of the grid either way, by rate, and every scale's
// factor, within 3/4 and 5/4, by rate / 4, against the sign of the gradient; rate falls from 1 / steps to 0 in a line.
// Cost: a forward and a backward pass of the block a step; offsets, scales and their best state in memory.
// Source: Cheng et al., Optimize Weight Rounding via Signed Gradient Descent, 2023. Differs: starts from any codes, not
// from rounding, so each code moves by one at most from where it was; one factor a scale instead of two for its range;
// the best state is that of held-out batches, looked at four times.
Result<BlockResult> tune_block(const BlockTask& task);

}  // namespace ctk::train

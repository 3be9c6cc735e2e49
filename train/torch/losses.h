// Losses of LossOptions (train/trainer.h) on ATen tensors.
#pragma once

#include <ATen/ATen.h>

#include "train/trainer.h"

namespace ctk::train {

// A network's output with one row for each label: [B, K] as it is, [B, T, K] token by token, [B, K, spatial...] place
// by place.
at::Tensor rows_of(const at::Tensor& output);

// A scalar that wants its gradient. logits, teacher: [rows, classes]; labels: i64 [rows], below 0 where a row does not
// count (for the teacher neither). An undefined teacher or undefined labels leave their part out; one must be there.
// With no row that counts the loss is 0. `other_labels`: of samples mixed out of two, whose share of the hard loss is
// 1 - share.
at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& teacher, const at::Tensor& labels,
                   const LossOptions& options, const at::Tensor& other_labels = {}, double share = 1);

// What makes a loss impossible: classes that differ, labels outside them or of another count, nothing to learn from.
// Errors: input, config.
Status check_loss(const at::Tensor& logits, const at::Tensor& teacher, const at::Tensor& labels,
                  const LossOptions& options);

}  // namespace ctk::train

// Batch normalization whose batch lies on several ranks: statistics, and with them results and gradients, are those of
// the whole batch on one.
#pragma once

#include <ATen/ATen.h>

#include <exception>
#include <string>
#include <utility>

#include "core/ranks.h"

namespace ctk::train {

// What ranks said, on its way through LibTorch, which knows only exceptions.
struct RanksError final : std::exception {
  explicit RanksError(Error found) : error(std::move(found)) {}
  const char* what() const noexcept override { return error.message.c_str(); }
  Error error;
};

// x: [samples, channels, ...], this rank's part; factor, offset: [channels]. mean, variance: running ones, which move
// by `momentum` as at::batch_norm moves them. Every rank calls it, forwards and backwards, in the same order. Gradients
// of factor and offset are of this rank's part; that of x is of the whole loss, the sum of those of the ranks. Cost:
// one gather of 2 * channels doubles forwards, one sum of as many backwards. Throws RanksError.
at::Tensor shared_batch_norm(const at::Tensor& x, const at::Tensor& factor, const at::Tensor& offset,
                             const at::Tensor& mean, const at::Tensor& variance, double momentum, double epsilon,
                             Ranks& ranks);

}  // namespace ctk::train

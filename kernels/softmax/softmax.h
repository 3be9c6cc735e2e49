// softmax: y[i] = exp(x[i] - m) * float(1 / sum), m the largest of the row that is a number.
//
// exp as core/exp_negative.h states it, within 3 units in the last place. The sum is taken in double, in eight parts
// (element i goes to part i mod 8) that are added in order, so that every row of this table gives the same bits.
// -infinity beside a finite number gives 0. The whole row is NaN where it holds a NaN or +infinity, or -infinity only.
// y may be x.
#pragma once

#include <cstddef>
#include <span>

#include "core/cpu_isa.h"

namespace ctk::kernels {

struct SoftmaxRow {
  Isa isa;
  const char* name;
  void (*run)(const float* x, float* y, std::size_t count);  // count >= 1
};

#define CTK_KERNEL(symbol) extern const SoftmaxRow symbol;
#include "kernels/softmax/kernels.def"
#undef CTK_KERNEL

std::span<const SoftmaxRow> softmax_rows();

// `rows` rows of `count`, one behind the other, split over threads.
void softmax(const SoftmaxRow& row, const float* x, float* y, std::size_t rows, std::size_t count);

}  // namespace ctk::kernels

// One product of uint8 rows by a square int8 weight, ready to be run again and again: what suite int8 times and what
// this machine's peak is measured by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"

namespace ctk::pipeline {

class Int8Product {
 public:
  // m rows of k codes by a weight of k by k, all random; out: float32, or codes. For as many threads as are set.
  // Errors: input (out of memory), config (CTK_ISA).
  static Result<Int8Product> make(std::size_t m, std::size_t k, bool to_float);
  void run() { kernels::gemm_int(*row_, product_, scratch_.get()); }

 private:
  const kernels::GemmIntRow* row_ = nullptr;
  kernels::GemmInt product_;
  std::vector<std::uint8_t> x_;
  std::vector<std::int32_t> bias_;
  std::vector<float> multiplier_;
  std::shared_ptr<void> packed_, scratch_, y_;
};

}  // namespace ctk::pipeline

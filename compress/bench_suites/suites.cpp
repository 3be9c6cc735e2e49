#include "compress/bench_suites/suites.h"

namespace ctk::pipeline {

std::span<const BenchSuite> bench_suites() {
  static constexpr BenchSuite suites[] = {
      {"w4", "products with 4-bit weights: one row to many, weights from memory or from the cache", bench_w4},
      {"attn", "attention against a cache of keys and values: one token, and a prompt", bench_attn},
      {"int8", "8-bit products, convolutions and two image networks", bench_int8},
      {"llm", "a 135M language model at 4 bits: reading 512 tokens, writing 128", bench_llm},
      {"quant", "finding codes: moments of inputs, GPTQ and rounding of large matrices", bench_quant},
  };
  return suites;
}

}  // namespace ctk::pipeline

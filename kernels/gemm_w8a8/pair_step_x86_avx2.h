// The inner step of products on int16, for AVX2 sources. Internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

// sum0 += madd(x, w0), sum1 += madd(x, w1), x: the pair at `at` in every lane. The twelve sums of a tile, two weights
// and two temporaries fill the registers to the last; written as intrinsics, GCC 12 may reorder them and spill.
inline void add_pair(__m256i& sum0, __m256i& sum1, const char* at, __m256i w0, __m256i w1) {
  __m256i x, product;
  __asm__(
      "vpbroadcastd %[at], %[x]\n\t"
      "vpmaddwd %[w0], %[x], %[product]\n\t"
      "vpmaddwd %[w1], %[x], %[x]\n\t"
      "vpaddd %[product], %[sum0], %[sum0]\n\t"
      "vpaddd %[x], %[sum1], %[sum1]"
      : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x), [product] "=&x"(product)
      : [at] "m"(*reinterpret_cast<const char(*)[sizeof(std::int32_t)]>(at)), [w0] "x"(w0), [w1] "x"(w1));
}

}  // namespace
}  // namespace ctk::kernels

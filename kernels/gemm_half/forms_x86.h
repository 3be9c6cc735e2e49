// How weights of 16 bits are held, for the tiles of kernels/gemm_fp32/tiles_x86.h, whose vectors widen them. Included
// behind vectors_x86_avx2.h or vectors_x86_avx512.h; internal linkage.
#pragma once

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

struct Half {
  using Stored = unsigned short;
  static Vector widen(const Stored* from) { return halves_at(from); }
  static Stored narrow(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
};

struct Brain {
  using Stored = unsigned short;  // the upper half of a float
  static Vector widen(const Stored* from) { return uppers_at(from); }
  static Stored narrow(float value) {
    return static_cast<Stored>(_mm_extract_epi16(_mm_castps_si128(_mm_set_ss(value)), 1));
  }
};

}  // namespace
}  // namespace ctk::kernels

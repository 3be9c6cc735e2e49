#include "calibrate/packed_matrix.h"

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

#include "core/cpu_isa.h"
#include "core/parallel.h"
#include "kernels/gemm_fp32/gemm_fp32.h"
#include "kernels/select.h"

namespace ctk::calibrate {
namespace {

constexpr std::align_val_t kAlign{64};

const kernels::GemmFloatRow& row() {
  static const kernels::GemmFloatRow& best = []() -> const kernels::GemmFloatRow& {
    const auto isas = allowed_isas();  // a wrong CTK_ISA is refused where the program starts
    return kernels::select(kernels::gemm_fp32_rows(), isas ? *isas : std::vector<Isa>{});
  }();
  return best;
}

}  // namespace

PackedMatrix::PackedMatrix(std::size_t n, std::size_t k)
    : n_(n), k_(k), data_(::operator new(std::max<std::size_t>(row().packed_bytes(n, k), 1), kAlign)) {}

void PackedMatrix::Free::operator()(void* data) const {
  ::operator delete(data, kAlign);
}

void PackedMatrix::pack(const float* b) {
  row().pack(b, n_, k_, data_.get());
}

void PackedMatrix::multiply(const float* a, std::size_t a_stride, std::size_t m, float* c, std::size_t c_stride,
                            bool adds) const {
  kernels::GemmFloat g;
  g.m = m;
  g.n = n_;
  g.k = k_;
  g.a = a;
  g.a_stride = a_stride;
  g.packed = data_.get();
  g.c = c;
  g.c_stride = c_stride;
  g.epilogue.low = -std::numeric_limits<float>::infinity();
  g.epilogue.high = std::numeric_limits<float>::infinity();
  if (adds) {
    g.epilogue.residual = c;
    g.epilogue.residual_stride = c_stride;
  }
  std::vector<char> scratch(row().scratch_bytes(k_));
  row().run(g, 0, n_, scratch.data());
}

std::vector<float> times_transposed(std::span<const float> a, std::size_t m, std::span<const float> b, std::size_t n,
                                    std::size_t k) {
  PackedMatrix packed(n, k);
  packed.pack(b.data());
  std::vector<float> c(m * n);
  parallel_for(m, 1, [&](std::size_t begin, std::size_t end) {
    packed.multiply(a.data() + begin * k, k, end - begin, c.data() + begin * n, n, false);
  });
  return c;
}

}  // namespace ctk::calibrate

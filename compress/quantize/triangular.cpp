#include "compress/quantize/triangular.h"

#include <algorithm>
#include <cmath>

#include "calibrate/packed_matrix.h"
#include "core/parallel.h"

namespace ctk::quantization {
namespace {

constexpr std::size_t kBlock = 96;  // columns factored at a time; a multiple of the products' 16
constexpr std::size_t kStrip = 48;  // rows one thread takes at a time
constexpr std::size_t kLanes = 16;  // rows solved side by side

// The block's own Cholesky in double: false when it is not positive definite.
bool factor_block(float* a, std::size_t stride, std::size_t size, std::vector<double>& work) {
  work.resize(size * size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = static_cast<double>(a[i * stride + j]);
      for (std::size_t k = 0; k < j; ++k) sum -= work[i * size + k] * work[j * size + k];
      if (i == j) {
        if (!(sum > 0) || !std::isfinite(sum)) return false;
        work[i * size + i] = std::sqrt(sum);
      } else {
        work[i * size + j] = sum / work[j * size + j];
      }
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) a[i * stride + j] = j <= i ? static_cast<float>(work[i * size + j]) : 0.0f;
  }
  return std::isfinite(a[0]);
}

// Rows x (at most kLanes, `stride` apart) of x T^-1 in place, where T is the block's L^T (forward) or L (backward).
template <bool kForward>
void solve_block(const float* lower, std::size_t lower_stride, std::size_t size, float* x, std::size_t stride,
                 std::size_t rows) {
  float lanes[kBlock][kLanes];
  for (std::size_t c = 0; c < size; ++c) {
    for (std::size_t r = 0; r < kLanes; ++r) lanes[c][r] = r < rows ? x[r * stride + c] : 0.0f;
  }
  for (std::size_t step = 0; step < size; ++step) {
    const std::size_t c = kForward ? step : size - 1 - step;
    const float pivot = lower[c * lower_stride + c];
    for (std::size_t r = 0; r < kLanes; ++r) lanes[c][r] /= pivot;
    const std::size_t begin = kForward ? c + 1 : 0, end = kForward ? size : c;
    for (std::size_t j = begin; j < end; ++j) {
      const float factor = kForward ? lower[j * lower_stride + c] : lower[c * lower_stride + j];
      for (std::size_t r = 0; r < kLanes; ++r) lanes[j][r] -= factor * lanes[c][r];
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < size; ++c) x[r * stride + c] = lanes[c][r];
  }
}

// A block of a matrix, as rows of its own that pack() can take.
std::vector<float> copy_block(const float* from, std::size_t stride, std::size_t rows, std::size_t columns) {
  std::vector<float> block(rows * columns);
  for (std::size_t r = 0; r < rows; ++r) std::copy_n(from + r * stride, columns, block.data() + r * columns);
  return block;
}

// x [rows, size] at columns [begin, end): minus done * packed^T, then the block's own solve.
template <bool kForward>
void step(const float* lower, std::size_t size, std::size_t begin, std::size_t end,
          const calibrate::PackedMatrix& packed, const float* done, std::size_t done_stride, float* x,
          std::size_t stride, std::size_t rows) {
  parallel_for((rows + kStrip - 1) / kStrip, 1, [&](std::size_t first, std::size_t last) {
    std::vector<float> product(kStrip * kBlock);
    for (std::size_t strip = first; strip < last; ++strip) {
      const std::size_t r_begin = strip * kStrip, count = std::min(kStrip, rows - r_begin), width = end - begin;
      float* at = x + r_begin * stride + begin;
      if (packed.k() != 0) {
        packed.multiply(done + r_begin * done_stride, done_stride, count, product.data(), width, false);
        for (std::size_t r = 0; r < count; ++r) {
          for (std::size_t c = 0; c < width; ++c) at[r * stride + c] -= product[r * width + c];
        }
      }
      for (std::size_t r = 0; r < count; r += kLanes) {
        solve_block<kForward>(lower + begin * size + begin, size, width, at + r * stride, stride,
                              std::min(kLanes, count - r));
      }
    }
  });
}

}  // namespace

bool factor_cholesky(std::span<float> matrix, std::size_t size) {
  float* a = matrix.data();
  std::vector<double> work;
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    const std::size_t end = std::min(size, begin + kBlock), width = end - begin;
    calibrate::PackedMatrix packed(width, begin);
    const std::vector<float> block = copy_block(a + begin * size, size, width, begin);
    packed.pack(block.data());
    std::vector<float> product(width * width);  // the diagonal block first: the rows below need its factor
    if (begin != 0) {
      packed.multiply(a + begin * size, size, width, product.data(), width, false);
      for (std::size_t r = 0; r < width; ++r) {
        for (std::size_t c = 0; c <= r; ++c) a[(begin + r) * size + begin + c] -= product[r * width + c];
      }
    }
    if (!factor_block(a + begin * size + begin, size, width, work)) return false;
    for (std::size_t r = begin; r < end; ++r) std::fill(a + r * size + end, a + (r + 1) * size, 0.0f);
    step<true>(a, size, begin, end, packed, a + end * size, size, a + end * size, size, size - end);
  }
  return true;
}

void solve_cholesky(std::span<const float> lower, std::size_t size, std::span<float> x, std::size_t rows) {
  const float* l = lower.data();
  for (std::size_t begin = 0; begin < size; begin += kBlock) {  // Y L^T = X
    const std::size_t end = std::min(size, begin + kBlock);
    calibrate::PackedMatrix packed(end - begin, begin);
    const std::vector<float> block = copy_block(l + begin * size, size, end - begin, begin);
    packed.pack(block.data());
    step<true>(l, size, begin, end, packed, x.data(), size, x.data(), size, rows);
  }
  for (std::size_t blocks = (size + kBlock - 1) / kBlock; blocks-- > 0;) {  // Z L = Y, from the last column on
    const std::size_t begin = blocks * kBlock, end = std::min(size, begin + kBlock);
    std::vector<float> block((end - begin) * (size - end));  // L below the diagonal block, transposed
    for (std::size_t k = end; k < size; ++k) {
      for (std::size_t c = begin; c < end; ++c) block[(c - begin) * (size - end) + k - end] = l[k * size + c];
    }
    calibrate::PackedMatrix packed(end - begin, size - end);
    packed.pack(block.data());
    step<false>(l, size, begin, end, packed, x.data() + end, size, x.data(), size, rows);
  }
}

namespace {

// Columns [begin, begin + packed.n()) of c [m, n] = a [m, k] b^T.
void multiply_block(std::span<const float> a, std::size_t m, const calibrate::PackedMatrix& packed, std::size_t begin,
                    std::size_t n, std::size_t k, std::span<float> c) {
  parallel_for((m + kStrip - 1) / kStrip, 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first * kStrip; r < std::min(m, last * kStrip); r += kStrip) {
      packed.multiply(a.data() + r * k, k, std::min(kStrip, m - r), c.data() + r * n + begin, n, false);
    }
  });
}

}  // namespace

void multiply_transposed(std::span<const float> a, std::size_t m, std::span<const float> b, std::size_t n,
                         std::size_t k, std::span<float> c) {
  for (std::size_t begin = 0; begin < n; begin += 4 * kBlock) {
    calibrate::PackedMatrix packed(std::min(4 * kBlock, n - begin), k);
    packed.pack(b.data() + begin * k);
    multiply_block(a, m, packed, begin, n, k, c);
  }
}

void multiply_transposed(std::span<const float> a, std::size_t m, std::size_t n, std::size_t k, std::span<float> c,
                         const std::function<void(std::size_t, float*)>& make) {
  std::vector<float> rows(std::min(4 * kBlock, n) * k);
  for (std::size_t begin = 0; begin < n; begin += 4 * kBlock) {
    const std::size_t count = std::min(4 * kBlock, n - begin);
    parallel_for(count, 8, [&](std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r) make(begin + r, rows.data() + r * k);
    });
    calibrate::PackedMatrix packed(count, k);
    packed.pack(rows.data());
    multiply_block(a, m, packed, begin, n, k, c);
  }
}

}  // namespace ctk::quantization

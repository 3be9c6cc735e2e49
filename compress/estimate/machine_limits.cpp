#include "compress/estimate/machine_limits.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <vector>

#include "core/cpu_isa.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/select.h"

namespace ctk::pipeline::estimate {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{256} << 20;  // past any cache of a machine this is for
constexpr std::size_t kSide = 1024;                           // of the square product
constexpr int kPasses = 10;

template <class Body>
double least_seconds(const Body& body) {
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = Clock::now();
    body();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

Error no_memory(std::size_t bytes) {
  return input_error("measuring this machine: expected " + std::to_string(bytes) +
                     " bytes of free memory, found less. Close other programs, or give a card with bandwidth_gb_s "
                     "and peak_gops");
}

// Independent sums, so that the compiler may keep as many loads in flight as the machine has room for.
std::uint64_t sum_words(const std::uint64_t* words, std::size_t count) {
  std::uint64_t sums[16] = {};
  for (std::size_t i = 0; i + 16 <= count; i += 16)
    for (std::size_t k = 0; k < 16; ++k) sums[k] += words[i + k];
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all += sum;
  return all;
}

}  // namespace

Result<MachineLimits> measure_limits() {
  MachineLimits limits;
  {
    const auto stream = allocate_aligned(kStreamBytes);
    if (stream == nullptr) return no_memory(kStreamBytes);
    std::memset(stream.get(), 1, kStreamBytes);
    const auto* words = reinterpret_cast<const std::uint64_t*>(stream.get());
    std::atomic<std::uint64_t> sink = 0;
    const double seconds = least_seconds([&] {
      parallel_for(kStreamBytes / sizeof *words, std::size_t{1} << 17,
                   [&](std::size_t begin, std::size_t end) { sink += sum_words(words + begin, end - begin); });
    });
    limits.bandwidth_gb_s = static_cast<double>(kStreamBytes) / seconds / 1e9;
  }
  CTK_TRY(const std::vector<Isa> isas, allowed_isas());
  const kernels::GemmIntRow& row = kernels::select(kernels::gemm_w8a8_rows(), isas);
  const std::vector<std::int8_t> weight(kSide * kSide, 3);
  const std::vector<std::uint8_t> codes(kSide * kSide, 5);
  const std::vector<std::int32_t> bias(kSide, 0);
  const std::vector<float> multiplier(kSide, 1e-4f);
  const std::size_t packed_bytes = row.packed_bytes(kSide, (kSide + row.k_step - 1) / row.k_step * row.k_step);
  const std::size_t scratch_bytes = kernels::gemm_int_scratch_bytes(row, kSide) * static_cast<std::size_t>(threads());
  const auto packed = allocate_aligned(packed_bytes), scratch = allocate_aligned(scratch_bytes),
             out = allocate_aligned(kSide * kSide);
  if (packed == nullptr || scratch == nullptr || out == nullptr) return no_memory(packed_bytes + scratch_bytes);
  row.pack(weight.data(), kSide, kSide, packed.get());
  kernels::GemmInt product;
  product.m = product.n = product.k = product.a_stride = product.c_stride = kSide;
  product.a = codes.data();
  product.packed = packed.get();
  product.epilogue.bias = bias.data();
  product.epilogue.multiplier = multiplier.data();
  product.epilogue.zero_point = 128;
  product.c = out.get();
  const double seconds = least_seconds([&] { kernels::gemm_int(row, product, scratch.get()); });
  limits.peak_gops = 2.0 * kSide * kSide * kSide / seconds / 1e9;
  return limits;
}

}  // namespace ctk::pipeline::estimate

#include "compress/estimate/machine_limits.h"

#include <atomic>
#include <cstring>
#include <memory>

#include "compress/bench_suites/int8_product.h"
#include "compress/bench_suites/timing.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace ctk::pipeline::estimate {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{256} << 20;  // past any cache of a machine this is for
constexpr std::size_t kSide = 1024;                           // of the square product
constexpr double kSeconds = 0.3;                              // of each of the two

double least_us(const std::function<void()>& body) {
  BenchRow row;
  time_row(kSeconds, 1, body, row);
  return row.min_us;
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

Result<double> measure_bandwidth() {
  const auto stream = allocate_aligned(kStreamBytes);
  if (stream == nullptr) {
    return input_error("measuring this machine: expected " + std::to_string(kStreamBytes) +
                       " bytes of free memory, found less. Close other programs, or give a card with bandwidth_gb_s "
                       "and peak_gops");
  }
  std::memset(stream.get(), 1, kStreamBytes);
  const auto* words = static_cast<const std::uint64_t*>(stream.get());
  std::atomic<std::uint64_t> sink = 0;
  const double us = least_us([&] {
    parallel_for(kStreamBytes / sizeof *words, std::size_t{1} << 17,
                 [&](std::size_t begin, std::size_t end) { sink += sum_words(words + begin, end - begin); });
  });
  return static_cast<double>(kStreamBytes) / us / 1e3;
}

}  // namespace

Result<Limits> measure_limits() {
  Limits limits;
  CTK_TRY(limits.bandwidth_gb_s, measure_bandwidth());
  CTK_TRY(Int8Product product, Int8Product::make(kSide, kSide, false));
  limits.peak_gops = 2.0 * kSide * kSide * kSide / least_us([&] { product.run(); }) / 1e3;
  return limits;
}

}  // namespace ctk::pipeline::estimate

// Times the integer kernels, and the float one beside them, on the layer shapes of small CNNs: one line a shape and
// row, least time of many runs. Columns: microseconds, multiply-adds per second, and per cycle at the clock measured
// beside each shape.
//   taskset -c 1 kernel_bench [threads] [substring of the row's name]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "kernels/conv_fp32/conv_fp32.h"
#include "kernels/conv_w8a8/conv_w8a8.h"
#include "kernels/depthwise_w8a8/depthwise_w8a8.h"
#include "kernels/gemm_w4a8/gemm_w4a8.h"

namespace {

using namespace ctk;
using namespace ctk::kernels;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Dependent multiplications take three cycles each. (Additions of constants may take none: some processors do them when
// they rename registers.)
double clock_hz() {
  double best = 1.0;
  for (int i = 0; i < 5; ++i) {
    const double start = seconds();
    std::uint64_t x = 1;
    for (int j = 0; j < 200000; ++j) {
#if defined(__x86_64__)
      __asm__ volatile("imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0" : "+r"(x));
#else
      __asm__ volatile("mul %0, %0, %0\n\tmul %0, %0, %0\n\tmul %0, %0, %0\n\tmul %0, %0, %0" : "+r"(x));
#endif
    }
    best = std::min(best, seconds() - start);
  }
  return 3 * 800000.0 / best;
}

template <class Body>
double least_seconds(Body&& body) {
  double best = 1.0;
  const double end = seconds() + 0.15;
  do {
    const double start = seconds();
    body();
    best = std::min(best, seconds() - start);
  } while (seconds() < end);
  return best;
}

ConvShape conv(std::int64_t size, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1,
               std::int64_t groups = 1) {
  ConvShape s;
  s.in_height = s.in_width = size;
  s.in_channels = in;
  s.out_channels = out;
  s.kernel_height = s.kernel_width = kernel;
  s.stride_height = s.stride_width = stride;
  s.pad_top = s.pad_left = kernel / 2;
  s.out_height = s.out_width = (size + 2 * (kernel / 2) - kernel) / stride + 1;
  s.groups = groups;
  return s;
}

struct Data {
  explicit Data(const ConvShape& s)
      : x(static_cast<std::size_t>(s.batch * s.in_height * s.in_width * s.in_channels)),
        w(static_cast<std::size_t>(s.out_channels * s.reduction())),
        bias(static_cast<std::size_t>(s.out_channels), 5),
        multiplier(static_cast<std::size_t>(s.out_channels), 0.01f),
        y(static_cast<std::size_t>(s.pixels() * s.out_channels)) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 37 % 251);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::int8_t>(static_cast<int>(i * 13 % 16) - 8);
    e.bias = bias.data();
    e.multiplier = multiplier.data();
    e.zero_point = 128;
  }
  std::vector<std::uint8_t> x;
  std::vector<std::int8_t> w;
  std::vector<std::int32_t> bias;
  std::vector<float> multiplier;
  std::vector<std::uint8_t> y;
  EpilogueInt e;
};

void report(const std::string& shape, const char* row, double macs, double time) {
  std::printf("%-30s %-34s %9.2f us %8.2f GMAC/s %6.2f MAC/cycle\n", shape.c_str(), row, time * 1e6, macs / time * 1e-9,
              macs / time / clock_hz() / threads());
  std::fflush(stdout);
}

std::vector<char> aligned(std::size_t bytes) {
  return std::vector<char>(bytes + 64);
}
void* start(std::vector<char>& v) {
  return v.data() + (64 - reinterpret_cast<std::uintptr_t>(v.data()) % 64) % 64;
}

void bench_conv(const std::string& name, const ConvShape& s, const GemmIntRow& row) {
  Data d(s);
  std::vector<char> packed = aligned(conv_int_packed_bytes(row, s));
  std::vector<char> scratch = aligned(conv_int_scratch_bytes(row, s, threads()));
  conv_int_pack(row, s, d.w.data(), start(packed));
  const double time =
      least_seconds([&] { conv_int(row, s, start(packed), d.x.data(), 3, d.e, d.y.data(), start(scratch)); });
  report(name, row.name, static_cast<double>(s.pixels() * s.out_channels * s.reduction()), time);
}

void bench_float(const std::string& name, const ConvShape& s, const GemmFloatRow& row) {
  std::vector<float> x(static_cast<std::size_t>(s.batch * s.in_height * s.in_width * s.in_channels), 0.5f);
  std::vector<float> w(static_cast<std::size_t>(s.out_channels * s.reduction()), 0.25f);
  std::vector<float> y(static_cast<std::size_t>(s.pixels() * s.out_channels));
  std::vector<char> packed = aligned(conv_float_packed_bytes(row, s));
  std::vector<char> scratch = aligned(conv_float_scratch_bytes(row, s, threads()));
  conv_float_pack(row, s, w.data(), start(packed));
  EpilogueFloat e;
  e.high = 1e9f;
  const double time = least_seconds([&] { conv_float(row, s, start(packed), x.data(), e, y.data(), start(scratch)); });
  report(name, row.name, static_cast<double>(s.pixels() * s.out_channels * s.reduction()), time);
}

void bench_depthwise(const std::string& name, const ConvShape& s, const DepthwiseIntRow& row) {
  Data d(s);
  std::vector<char> packed = aligned(depthwise_int_packed_bytes(row, s));
  std::vector<char> scratch = aligned(depthwise_int_scratch_bytes(row, s, threads()));
  depthwise_int_pack(row, s, d.w.data(), start(packed));
  const double time =
      least_seconds([&] { depthwise_int(row, s, start(packed), d.x.data(), 3, d.e, d.y.data(), start(scratch)); });
  report(name, row.name, static_cast<double>(s.pixels() * s.out_channels * s.reduction()), time);
}

}  // namespace

int main(int argc, char** argv) {
  set_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  const std::string filter = argc > 2 ? argv[2] : "";
  const auto wanted = [&](Isa isa, const char* name) {
    return host_supports(isa) && std::string(name).find(filter) != std::string::npos;
  };
  const std::vector<std::pair<std::string, ConvShape>> convolutions = {
      {"32x32x3 3x3 16", conv(32, 3, 16, 3)},         {"32x32x16 3x3 16", conv(32, 16, 16, 3)},
      {"32x32x16 3x3/2 32", conv(32, 16, 32, 3, 2)},  {"32x32x16 1x1/2 32", conv(32, 16, 32, 1, 2)},
      {"16x16x32 3x3 32", conv(16, 32, 32, 3)},       {"8x8x64 3x3 64", conv(8, 64, 64, 3)},
      {"224x224x3 3x3/2 32", conv(224, 3, 32, 3, 2)}, {"56x56x64 3x3 64", conv(56, 64, 64, 3)},
      {"14x14x256 3x3 256", conv(14, 256, 256, 3)},   {"7x7x512 3x3 512", conv(7, 512, 512, 3)},
      {"56x56x24 1x1 144", conv(56, 24, 144, 1)},     {"56x56x144 1x1 24", conv(56, 144, 24, 1)},
      {"14x14x96 1x1 576", conv(14, 96, 576, 1)},     {"14x14x576 1x1 96", conv(14, 576, 96, 1)},
      {"7x7x960 1x1 320", conv(7, 960, 320, 1)},      {"1x1x1280 1x1 1000", conv(1, 1280, 1000, 1)},
  };
  for (const auto& [name, shape] : convolutions) {
    for (const GemmFloatRow& row : gemm_fp32_rows()) {
      if (wanted(row.isa, row.name)) bench_float(name, shape, row);
    }
    for (const GemmIntRow& row : gemm_w8a8_rows()) {
      if (wanted(row.isa, row.name)) bench_conv(name, shape, row);
    }
    for (const GemmIntRow& row : gemm_w4a8_rows()) {
      if (wanted(row.isa, row.name)) bench_conv(name, shape, row);
    }
  }
  const std::vector<std::pair<std::string, ConvShape>> depthwise = {
      {"112x112x32 3x3", conv(112, 32, 32, 3, 1, 32)},    {"56x56x144 3x3", conv(56, 144, 144, 3, 1, 144)},
      {"56x56x144 3x3/2", conv(56, 144, 144, 3, 2, 144)}, {"14x14x576 3x3", conv(14, 576, 576, 3, 1, 576)},
      {"14x14x576 3x3/2", conv(14, 576, 576, 3, 2, 576)}, {"7x7x960 3x3", conv(7, 960, 960, 3, 1, 960)},
      {"14x14x240 5x5", conv(14, 240, 240, 5, 1, 240)},
  };
  for (const auto& [name, shape] : depthwise) {
    for (const DepthwiseIntRow& row : depthwise_w8a8_rows()) {
      if (wanted(row.isa, row.name)) bench_depthwise(name, shape, row);
    }
  }
}

// Suite w4: y[M,N] = x[M,K] . W4[N,K], activations float32 in and out, so that times include rounding them.
//   stream: walks over as many matrices as fill 192 MiB, so weights come from memory, as when a model decodes.
//   hot:    one matrix, again and again.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "compress/bench_suites/suites.h"
#include "compress/bench_suites/timing.h"
#include "core/dtype.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/tensor.h"
#include "kernels/gemm_wg/gemm_wg.h"
#include "kernels/select.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{192} << 20;

struct Layer {
  std::size_t k, n;
};
constexpr Layer kLayers[] = {{576, 1536}, {2048, 2048}, {4096, 4096}, {4096, 11008}};
constexpr std::size_t kQuickLayers = 2;

struct Point {
  std::size_t m;
  bool stream;
};
constexpr Point kPoints[] = {{1, true}, {1, false}, {8, true}, {64, false}, {512, false}};

struct Variant {
  const char* name;
  std::size_t group_size;
  int digits;
};
// f32act: activations in three digits, as near to float32 as their sums are (kernels/gemm_wg/gemm_wg.h).
constexpr Variant kVariants[] = {{"int4-g128-dyn8", 128, 1}, {"int4-g32-dyn8", 32, 1}, {"int4-g128-f32act", 128, 3}};

// Weights and scales are random: times do not depend on them.
void pack_random(Random& random, const kernels::GemmWgRow& row, const kernels::WgShape& shape, char* packed) {
  std::vector<std::int8_t> codes(shape.n * shape.k);
  for (std::int8_t& code : codes) code = static_cast<std::int8_t>(static_cast<int>(random.next() & 15) - 8);
  std::vector<std::uint16_t> scales(shape.n * shape.groups());
  for (std::uint16_t& scale : scales) scale = float_to_half(static_cast<float>(0.01 * random.uniform()));
  kernels::WgMatrix w;
  w.shape = shape;
  w.codes = codes.data();
  w.row_codes = shape.k;
  w.scales = scales.data();
  kernels::pack_wg(row, w, packed);
}

Status no_memory(std::size_t bytes) {
  return input_error("bench: --suite w4: expected " + std::to_string(bytes) +
                     " bytes of free memory, found less. Close other programs, or use --quick");
}

Status bench_layer(const BenchOptions& options, const kernels::GemmWgRow& row, const Layer& layer,
                   const Variant& variant, const EmitRow& emit) {
  Random random(0, "bench w4");
  kernels::GemmWg g;
  g.shape = {layer.n, layer.k, variant.group_size, false};
  g.digits = variant.digits;
  const std::size_t bytes = row.packed_bytes(g.shape), copies = (kStreamBytes + bytes - 1) / bytes;
  const std::shared_ptr<void> buffer = allocate_aligned(bytes * copies);  // on large pages
  if (buffer == nullptr) return no_memory(bytes * copies);
  char* const weights = static_cast<char*>(buffer.get());
  pack_random(random, row, g.shape, weights);
  for (std::size_t i = 1; i < copies; ++i) std::memcpy(weights + i * bytes, weights, bytes);
  for (const Point& point : kPoints) {
    std::vector<float> x(point.m * layer.k), y(point.m * layer.n);
    for (float& value : x) value = static_cast<float>(random.normal());
    const std::size_t scratch_bytes = kernels::gemm_wg_scratch_bytes(row, g.shape, g.digits, point.m);
    const std::shared_ptr<void> scratch = allocate_aligned(scratch_bytes);
    if (scratch == nullptr) return no_memory(scratch_bytes);
    g.m = point.m;
    g.a = x.data();
    g.a_stride = layer.k;
    g.epilogue.low = -std::numeric_limits<float>::infinity();
    g.epilogue.high = std::numeric_limits<float>::infinity();
    g.c = y.data();
    g.c_stride = layer.n;
    const std::size_t walk = point.stream ? copies : 1;
    BenchRow result;
    result.row = "w4.M" + std::to_string(point.m) + "." + std::to_string(layer.k) + "x" + std::to_string(layer.n) +
                 (point.stream ? ".stream" : ".hot");
    result.variant = variant.name;
    result.threads = options.threads;
    result.bytes = static_cast<std::int64_t>(layer.n * layer.k / 2 + layer.n * g.shape.groups() * 2);
    result.ops = static_cast<std::int64_t>(2 * point.m * layer.n * layer.k);
    time_row(
        options.seconds, walk,
        [&] {
          for (std::size_t i = 0; i < walk; ++i) {
            g.packed = weights + i * bytes;
            kernels::gemm_wg(row, g, scratch.get());
          }
        },
        result);
    emit(result);
  }
  return {};
}

}  // namespace

Status bench_w4(const BenchOptions& options, const EmitRow& emit) {
  CTK_TRY(const std::vector<Isa> isas, allowed_isas());
  const kernels::GemmWgRow& row = kernels::select(kernels::gemm_wg_rows(), isas);
  const std::span<const Layer> all(kLayers);
  for (const Layer& layer : options.quick ? all.first(kQuickLayers) : all) {
    for (const Variant& variant : kVariants) {
      CTK_CHECK(bench_layer(options, row, layer, variant, emit));
    }
  }
  return {};
}

}  // namespace ctk::pipeline

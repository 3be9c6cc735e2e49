// Suite quant: what finding codes costs, one run each (they take seconds). Shapes and data as peers are measured on:
// inputs of rank 64 and noise, 32768 tokens, groups of 128, 4 bits.
//   gptq.hessian     sum x x^T, chunk by chunk
//   gptq.solve_g128  codes from it: "plain" is the published algorithm, "default" adds what our quantizer does by
//   itself quant.rtn4_g128  rounding with scales fitted to squared error, of float weights to packed codes
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "calibrate/hessian.h"
#include "compress/bench_suites/suites.h"
#include "compress/quantize/gptq.h"
#include "compress/quantize/quantizers.h"
#include "core/parallel.h"
#include "core/random.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kPiece = 2048;  // tokens at a time
constexpr std::size_t kRank = 64;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<float> noise(Random& random, std::size_t count, double size) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(size * random.normal());
  return values;
}

// [kPiece, k]: noise of size 0.3 over `kRank` directions that all features share.
std::vector<float> piece_of(Random& random, const std::vector<float>& mix, std::size_t k) {
  std::vector<float> rows = noise(random, kPiece * k, 0.3);
  for (std::size_t r = 0; r < kPiece; ++r) {
    for (std::size_t m = 0; m < kRank; ++m) {
      const auto factor = static_cast<float>(random.normal());
      for (std::size_t c = 0; c < k; ++c) rows[r * k + c] += factor * mix[m * k + c];
    }
  }
  return rows;
}

Status bench_gptq(std::size_t k, std::size_t tokens, BenchRow row, const EmitRow& emit) {
  Random random(0, "bench quant");
  const std::vector<float> mix = noise(random, kRank * k, 1.0);
  std::vector<std::vector<float>> pieces;  // two that differ, in turn: making them takes longer than summing
  for (int i = 0; i < 2; ++i) pieces.push_back(piece_of(random, mix, k));
  calibrate::Moment moment(k);
  double begin = now_us();
  for (std::size_t done = 0; done < tokens; done += kPiece) CTK_CHECK(moment.add(pieces[done / kPiece % 2]));
  const auto hessian = moment.finish();
  row.row = "gptq.hessian.K" + std::to_string(k) + "." + std::to_string(tokens) + "tok";
  row.ops = static_cast<std::int64_t>(2 * k * k * tokens);
  row.min_us = row.med_us = now_us() - begin;
  emit(row);
  const std::vector<float> weights = noise(random, k * k, 1 / std::sqrt(static_cast<double>(k)));
  quantization::GptqInput input;
  input.weights = weights;
  input.rows = input.columns = k;
  input.hessian = hessian;
  input.samples = tokens;
  row.row = "gptq.solve_g128." + std::to_string(k) + "x" + std::to_string(k);
  row.ops = 0;
  for (const bool is_plain : {true, false}) {
    quantization::GptqOptions options;
    options.form.group_size = 128;
    if (is_plain) options.sweeps = 0;
    options.judges_samples = options.falls_back = !is_plain;
    begin = now_us();
    CTK_TRY(const quantization::GptqOutcome outcome, quantize_gptq(input, options));
    row.min_us = row.med_us = now_us() - begin;
    row.variant = is_plain ? "plain" : "default";
    emit(row);
  }
  return {};
}

Status bench_rounding(std::size_t k, std::size_t layers, BenchRow row, const EmitRow& emit) {
  Random random(1, "bench quant");
  quantization::WeightRequest request;
  const auto side = static_cast<std::int64_t>(k);
  request.weight = Tensor::of<float>({side, side}, noise(random, k * k, 0.02));
  CTK_TRY(request.scheme, parse_scheme("w4a16_g128"));
  row.row = "quant.rtn4_g128." + std::to_string(k) + "x" + std::to_string(k) + "x" + std::to_string(layers);
  row.bytes = static_cast<std::int64_t>(4 * k * k * layers);
  for (const char* name : {"rtn", "absmax"}) {
    CTK_TRY(const quantization::Quantizer* quantizer, quantization::find_quantizer(name));
    const double begin = now_us();
    for (std::size_t i = 0; i < layers; ++i) CTK_CHECK(quantizer->run(request));
    row.variant = quantizer->name == "rtn" ? "fitted" : "absmax";
    row.min_us = row.med_us = now_us() - begin;
    emit(row);
  }
  return {};
}

}  // namespace

Status bench_quant(const BenchOptions& options, const EmitRow& emit) {
  BenchRow row;
  row.threads = threads();
  row.n = 1;
  if (options.quick) {
    CTK_CHECK(bench_gptq(256, 4096, row, emit));
    return bench_rounding(256, 1, row, emit);
  }
  for (std::size_t k : {std::size_t{2048}, std::size_t{4096}}) CTK_CHECK(bench_gptq(k, 32768, row, emit));
  return bench_rounding(4096, 4, row, emit);
}

}  // namespace ctk::pipeline

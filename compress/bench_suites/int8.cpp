// Suite int8: uint8 activations by int8 weights, from single products to whole networks.
//   gemm8: the kernel alone, codes in; out: codes, or float32.
//   conv:  a layer of a chain; the chain takes and gives float32, as the peers' does.
//   cnn:   a network.
//   cnnload: loading its bundle and running it once, in a process of its own, with that process's memory.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "compress/bench_suites/int8_product.h"
#include "compress/bench_suites/load_probe.h"
#include "compress/bench_suites/networks.h"
#include "compress/bench_suites/suites.h"
#include "compress/bench_suites/timing.h"
#include "compress/model.h"
#include "core/tensor.h"
#include "export/bundle.h"
#include "runtime/cpu_executor.h"
#include "runtime/measure.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kRows[] = {1, 64, 512}, kDepths[] = {1024, 4096};
constexpr std::size_t kQuickDepths = 1, kQuickChains = 2, kQuickNetworks = 0;

Status bench_product(const BenchOptions& options, std::size_t m, std::size_t k, bool to_float, const EmitRow& emit) {
  CTK_TRY(Int8Product product, Int8Product::make(m, k, to_float));
  BenchRow result;
  result.row = "gemm8.M" + std::to_string(m) + ".K" + std::to_string(k);
  result.variant = to_float ? "u8s8-f32" : "u8s8-u8";
  result.threads = options.threads;
  result.bytes = static_cast<std::int64_t>(k * k);
  result.ops = static_cast<std::int64_t>(2 * m * k * k);
  time_row(
      options.seconds, 1, [&] { product.run(); }, result);
  emit(result);
  return {};
}

// Times a quantized network and divides by `operations`; fills the times and the count of `row`.
Status time_network(const BenchOptions& options, const graph::Graph& graph, const Shape& input, int operations,
                    BenchRow& row) {
  CTK_TRY(auto executor, runtime::CpuExecutor::create(graph, {input}));
  const Tensor x = noise(input, 1.0, "bench input");
  CTK_TRY(const auto outputs, executor->run(std::span(&x, 1)));
  runtime::CpuExecutor* const turn[] = {executor.get()};
  runtime::MeasureOptions measure;
  measure.seconds = options.seconds;
  CTK_TRY(const auto times, runtime::measure_interleaved(turn, measure));
  row.variant = "int8-w8a8_c";
  row.threads = options.threads;
  row.min_us = times[0].least_us / operations;
  row.med_us = times[0].median_us / operations;
  row.p95_us = times[0].p95_us / operations;
  row.n = static_cast<std::int64_t>(times[0].runs);
  return {};
}

Status bench_chain(const BenchOptions& options, const ConvChain& chain, const EmitRow& emit) {
  graph::Graph graph = build_chain(chain);
  CTK_CHECK(quantize_network(graph));
  BenchRow row;
  row.row = "conv." + std::string(chain.name);
  row.bytes = chain.channels * (chain.channels / chain.groups) * chain.kernel * chain.kernel;
  row.ops = 2 * row.bytes * chain.size * chain.size;
  CTK_CHECK(time_network(options, graph, {1, chain.channels, chain.size, chain.size}, kChainLayers, row));
  emit(row);
  return {};
}

Status bench_load(const BenchOptions& options, const graph::Graph& graph, const std::string& name, LoadProbe& probe,
                  const EmitRow& emit) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("compress-bench-" + std::to_string(::getpid()) + "-" + name + ".ctkb"))
          .string();
  CTK_CHECK(exporter::write_bundle(graph, path));
  const auto figure = probe.load(path, {1, 3, 224, 224}, options.threads);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (!figure) return figure.error();
  BenchRow row;
  row.row = "cnnload." + name;
  row.variant = "int8-w8a8_c";
  row.threads = options.threads;
  row.min_us = row.med_us = figure->seconds * 1e6;
  row.n = 1;
  row.base_mb = figure->base_mb;
  row.rss_mb = figure->peak_mb;
  emit(row);
  return {};
}

Status bench_network(const BenchOptions& options, const BenchNetwork& network, LoadProbe& probe, const EmitRow& emit) {
  LoadedModel model;
  model.graph = network.build();
  model.sample_shapes = {{1, 3, 224, 224}};
  CTK_CHECK(quantize_network(model.graph));
  BenchRow row;
  row.row = "cnn." + std::string(network.name);
  row.bytes = parameter_count(model.graph);
  row.ops = 2 * total_macs(model);
  CTK_CHECK(time_network(options, model.graph, {1, 3, 224, 224}, 1, row));
  emit(row);
  return bench_load(options, model.graph, std::string(network.name), probe, emit);
}

}  // namespace

Status bench_int8(const BenchOptions& options, const EmitRow& emit) {
  const auto networks = options.quick ? bench_networks().first(kQuickNetworks) : bench_networks();
  std::vector<LoadProbe> probes;  // all of them now: this process only grows
  for (std::size_t i = 0; i < networks.size(); ++i) {
    CTK_TRY(LoadProbe probe, LoadProbe::start());
    probes.push_back(std::move(probe));
  }
  for (std::size_t i = 0; i < networks.size(); ++i) CTK_CHECK(bench_network(options, networks[i], probes[i], emit));
  const auto chains = conv_chains();
  for (const ConvChain& chain : options.quick ? chains.last(kQuickChains) : chains) {
    CTK_CHECK(bench_chain(options, chain, emit));
  }
  const std::span<const std::size_t> depths(kDepths);
  for (const std::size_t m : kRows) {
    for (const std::size_t k : options.quick ? depths.first(kQuickDepths) : depths) {
      for (const bool to_float : {false, true}) CTK_CHECK(bench_product(options, m, k, to_float, emit));
    }
  }
  return {};
}

}  // namespace ctk::pipeline

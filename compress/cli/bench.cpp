// compress bench: one JSON line a row.
#include "compress/bench.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "compress/cli/cli.h"
#include "compress/estimate/machine_limits.h"
#include "core/parallel.h"

namespace ctk::cli {
namespace {

// `limits`: of this machine, where rows are held to them.
nlohmann::ordered_json row_json(const pipeline::BenchRow& row,
                                const std::optional<pipeline::estimate::Limits>& limits) {
  nlohmann::ordered_json json = {{"row", row.row},
                                 {"peer", row.peer},
                                 {"variant", row.variant},
                                 {"threads", row.threads},
                                 {"min_us", row.min_us},
                                 {"med_us", row.med_us},
                                 {"n", row.n},
                                 {"bytes", row.bytes},
                                 {"ops", row.ops}};
  if (row.counts) {
    const kernels::npu::Counts& c = *row.counts;
    json["cycles"] = c.cycles;
    json["mac_cycles"] = c.mac_cycles;
    json["requantize_cycles"] = c.requantize_cycles;
    json["dma_cycles"] = c.dma_cycles;
    json["bytes_constants"] = c.bytes_constants;
    json["bytes_in"] = c.bytes_in;
    json["bytes_out"] = c.bytes_out;
  }
  if (row.p95_us > 0) json["p95_us"] = row.p95_us;
  if (row.cpu_cycles > 0) json["cpu_cycles"] = row.cpu_cycles;
  if (!row.reason.empty()) json["reason"] = row.reason;
  if (row.rss_mb > 0) {
    json["base_mb"] = row.base_mb;
    json["rss_mb"] = row.rss_mb;
  }
  if (limits && row.min_us > 0 && row.bytes > 0) {
    const auto bound = bound_of(*limits, static_cast<double>(row.bytes), static_cast<double>(row.ops));
    json["bandwidth_share"] = bound.memory_us / row.min_us;
    json["peak_share"] = bound.compute_us / row.min_us;
  }
  return json;
}

struct Arguments {
  pipeline::BenchOptions options;
  std::vector<int> threads = {1};
  bool is_held_to_limits = false;
};

Status bench_with(const pipeline::BenchOptions& options, bool is_held_to_limits) {
  std::optional<pipeline::estimate::Limits> limits;
  if (is_held_to_limits) {
    set_threads(options.threads);
    CTK_TRY(limits, pipeline::estimate::measure_limits());
    print(nlohmann::ordered_json{{"row", "limits"},
                                 {"peer", "this machine"},
                                 {"threads", options.threads},
                                 {"bandwidth_gb_s", limits->bandwidth_gb_s},
                                 {"peak_gops", limits->peak_gops}}
              .dump() +
          "\n");
  }
  return pipeline::run_bench(options, [&](const pipeline::BenchRow& row) {
    print(row_json(row, limits).dump() + "\n");
    std::fflush(stdout);
  });
}

Status bench(const Arguments& arguments) {
  pipeline::BenchOptions options = arguments.options;
  if (options.suite.empty() == options.model.empty()) {
    return config_error("bench: expected either --suite or a model, found " +
                        std::string(options.suite.empty() ? "neither" : "both"));
  }
  if (!options.target.empty() && (!options.suite.empty() || !options.against.empty())) {
    return config_error("bench: --target: expected a model and no --against, found " +
                        std::string(options.suite.empty() ? "--against" : "--suite") + ". Leave one out");
  }
  for (const int threads : arguments.threads) {
    options.threads = threads;
    CTK_CHECK(bench_with(options, arguments.is_held_to_limits));
  }
  return {};
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("bench", "Measure kernels or a model; prints one JSON line a row");
  const auto arguments = std::make_shared<Arguments>();
  pipeline::BenchOptions& options = arguments->options;
  verb->add_option("model", options.model, "An .onnx file, a bundle, a checkpoint's folder");
  verb->add_option("--suite", options.suite, "Kernels and networks on fixed shapes: w4, int8, attn, llm, quant");
  verb->add_flag("--quick", options.quick, "With --suite: the small shapes only");
  verb->add_flag("--layers", options.layers, "With a model: a row for each step, too");
  verb->add_option("--size", options.size, "Size of dimensions the model leaves open: tokens of a text")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--against", options.against, "Peers that run the same .onnx file in turn: onnxruntime")
      ->delimiter(',');
  verb->add_option("--target", options.target, "Device card of an npu: counts its cycles and bytes for each layer");
  verb->add_option("--seconds", options.seconds, "Least time a row, after a warm-up")->check(CLI::Range(0.001, 600.0));
  verb->add_flag("--roofline", arguments->is_held_to_limits,
                 "Measure memory and 8-bit products first; shares of both beside each row");
  verb->add_option("--threads", arguments->threads, "Threads to use, one measurement after the other: 1,2 (default: 1)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  add_json(*verb, session);
  verb->callback([&session, arguments] { session.action = [arguments] { return bench(*arguments); }; });
}

}  // namespace ctk::cli

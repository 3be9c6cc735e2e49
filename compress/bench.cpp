#include "compress/bench.h"

#include <algorithm>
#include <filesystem>

#include "compress/bench_suites/suites.h"
#include "compress/onnxruntime_check.h"
#include "compress/sized_model.h"
#include "core/parallel.h"
#include "graph/layer.h"
#include "runtime/measure.h"

namespace ctk::pipeline {
namespace {

constexpr int kRounds = 5;  // ours and the peers take turns, so that a slow minute of the machine meets all

// One row for us and one a peer, measured in turn on the same file and input.
Status bench_against(const BenchOptions& options, const LoadedModel& model, runtime::CpuExecutor& executor,
                     const std::vector<Tensor>& inputs, const std::function<void(const BenchRow&)>& emit) {
  for (const std::string& peer : options.against) {
    if (peer != "onnxruntime")
      return config_error("bench: --against \"" + peer + "\" is not available in this build. Use onnxruntime");
  }
  std::string reason;
  const std::string python = find_onnxruntime_python(&reason);
  if (python.empty()) return input_error("bench: --against onnxruntime: " + reason);
  std::vector<std::string> names;
  for (graph::ValueId id : model.graph.inputs()) names.push_back(model.graph.value(id).name);
  std::error_code ignored;
  const std::string scratch = std::filesystem::temp_directory_path(ignored).string();
  std::vector<double> ours, ours_least, theirs, theirs_least;
  std::int64_t runs = 0;
  runtime::CpuExecutor* const turn[] = {&executor};
  runtime::MeasureOptions measure;
  measure.seconds = options.seconds;
  for (int round = 0; round < kRounds; ++round) {
    CTK_TRY(const auto own, runtime::measure_interleaved(turn, measure));
    ours.push_back(own[0].median_us);
    ours_least.push_back(own[0].least_us);
    runs += static_cast<std::int64_t>(own[0].runs);
    CTK_TRY(const PeerRun run, run_in_onnxruntime(python, options.model, names, inputs, scratch,
                                                  {options.threads, options.seconds, PeerMode::fused}));
    theirs.push_back(run.median_us);
    theirs_least.push_back(run.least_us);
  }
  const auto least = [](const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); };
  emit({"model", "ours", model.format, options.threads, least(ours_least), runtime::median_of(ours), runs,
        static_cast<std::int64_t>(executor.packed_bytes()), 2 * total_macs(model)});
  emit({"model", "onnxruntime", model.format, options.threads, least(theirs_least), runtime::median_of(theirs), kRounds,
        0, 2 * total_macs(model)});
  return {};
}

Status bench_model(const BenchOptions& options, const std::function<void(const BenchRow&)>& emit) {
  CTK_TRY(const LoadedModel model, load_sized_model(options.model, options.size));
  CTK_TRY(auto executor, runtime::CpuExecutor::create(model.graph, batch_shapes(model, 1)));
  CTK_TRY(const std::vector<Tensor> inputs, noise_inputs(model.graph, batch_shapes(model, 1), "bench"));
  CTK_TRY(const auto outputs, executor->run(inputs));
  if (!options.against.empty()) return bench_against(options, model, *executor, inputs, emit);
  runtime::CpuExecutor* const turn[] = {executor.get()};
  runtime::MeasureOptions measure;
  measure.seconds = options.seconds;
  CTK_TRY(const auto whole, runtime::measure_interleaved(turn, measure));
  const std::int64_t macs = total_macs(model);
  BenchRow row{"model",
               "ours",
               model.format,
               options.threads,
               whole[0].least_us,
               whole[0].median_us,
               static_cast<std::int64_t>(whole[0].runs),
               static_cast<std::int64_t>(executor->packed_bytes()),
               2 * macs};
  row.p95_us = whole[0].p95_us;
  row.cpu_cycles = whole[0].median_cycles;
  emit(row);
  if (!options.layers) return {};
  CTK_TRY(const auto steps, runtime::measure_steps(turn, measure));
  for (const runtime::StepTime& step : steps[0]) {
    const std::string where = step.node.is_valid() ? model.graph.address(step.node) : "between layers";
    const std::int64_t ops = step.node.is_valid() ? 2 * layer_macs(model, step.node) : 0;
    emit({"step." + where, "ours", step.row.empty() ? step.label : step.row, options.threads, step.least_us,
          step.median_us, static_cast<std::int64_t>(whole[0].runs), 0, ops});
  }
  return {};
}

}  // namespace

Status run_bench(const BenchOptions& options, const std::function<void(const BenchRow&)>& emit) {
  set_threads(options.threads);
  if (!options.target.empty()) return bench_on_npu(options, emit);
  if (options.suite.empty()) return bench_model(options, emit);
  std::string known;
  for (const BenchSuite& suite : bench_suites()) {
    if (suite.name == options.suite) return suite.run(options, emit);
    known += (known.empty() ? "" : ", ") + std::string(suite.name);
  }
  return config_error("bench: --suite: expected one of " + known + ", found \"" + options.suite +
                      "\". Use one of these, or give a model: compress bench FILE");
}

}  // namespace ctk::pipeline

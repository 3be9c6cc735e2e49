#include "compress/bench.h"

#include "compress/model.h"
#include "core/parallel.h"
#include "graph/layer.h"
#include "runtime/measure.h"

namespace ctk::pipeline {
namespace {

Status bench_model(const BenchOptions& options, const std::function<void(const BenchRow&)>& emit) {
  CTK_TRY(const LoadedModel model, load_model(options.model));
  CTK_TRY(auto executor, runtime::CpuExecutor::create(model.graph, batch_shapes(model.graph, 1)));
  runtime::CpuExecutor* const turn[] = {executor.get()};
  runtime::MeasureOptions measure;
  measure.seconds = options.seconds;
  CTK_TRY(const auto whole, runtime::measure_interleaved(turn, measure));
  const std::int64_t macs = total_macs(model.graph);
  emit({"model", "ours", model.format, options.threads, whole[0].least_us, whole[0].median_us,
        static_cast<std::int64_t>(whole[0].runs), static_cast<std::int64_t>(executor->packed_bytes()), 2 * macs});
  CTK_TRY(const auto steps, runtime::measure_steps(turn, measure));
  for (const runtime::StepTime& step : steps[0]) {
    const std::string where = step.node.is_valid() ? model.graph.address(step.node) : "between layers";
    const std::int64_t ops = step.node.is_valid() ? 2 * layer_macs(model.graph, step.node) : 0;
    emit({"step." + where, "ours", step.row.empty() ? step.label : step.row, options.threads, step.median_us, step.median_us,
          static_cast<std::int64_t>(whole[0].runs), 0, ops});
  }
  return {};
}

}  // namespace

Status run_bench(const BenchOptions& options, const std::function<void(const BenchRow&)>& emit) {
  set_threads(options.threads);
  if (!options.suite.empty()) {
    return config_error("bench: suite \"" + options.suite + "\" is not available in this build. Give a model: compress bench FILE");
  }
  return bench_model(options, emit);
}

}  // namespace ctk::pipeline

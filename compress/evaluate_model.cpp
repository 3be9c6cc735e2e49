#include "compress/evaluate_model.h"

#include <algorithm>
#include <filesystem>

#include "compress/evaluate.h"
#include "compress/model.h"
#include "compress/model_tokenizer.h"
#include "core/cpu_isa.h"
#include "core/parallel.h"
#include "runtime/measure.h"

namespace ctk::pipeline {

Result<EvalResult> evaluate_model(const PipelineConfig& config, const EvalOptions& options) {
  set_threads(config.threads > 0 ? config.threads : cpu_cores());
  CTK_TRY(const LoadedModel base, load_model(config.model));
  const std::string path = options.model.empty() ? config.model : options.model;
  std::optional<LoadedModel> other;
  if (path != config.model) {
    CTK_TRY(other, load_model(path));
  }
  const graph::Graph& graph = other ? other->graph : base.graph;
  if (auto ranked = require_known_ranks(graph); !ranked) return std::move(ranked).error().with_context(path);
  const std::map<std::string, const std::optional<SourceConfig>*> known{{"train", &config.train},
                                                                        {"calibrate", &config.calibrate_data},
                                                                        {"score", &config.score},
                                                                        {"select", &config.select},
                                                                        {"evaluate", &config.evaluate}};
  const std::optional<SourceConfig>& wanted = *known.at(options.split);
  if (!wanted)
    return config_error(config.file_name + ": data." + options.split +
                        ": expected a source to evaluate on, found none. Add it or use --split");
  CTK_TRY(const data::SourceSpec spec, with_tokenizer(wanted->spec));
  CTK_TRY(auto source, data::open_source(spec, input_infos(graph)));
  data::Split split;
  split.role = options.split;
  split.source = std::move(source);
  for (std::size_t i = 0; i < split.source->count(); ++i) split.indices.push_back(i);
  const std::string fallback =
      config.evaluate && !config.evaluate->spec.metric.empty() ? config.evaluate->spec.metric : "agreement";
  const std::string name = wanted->spec.metric.empty() ? fallback : wanted->spec.metric;
  CTK_TRY(const data::MetricInfo* info, data::find_metric(name));
  if (options.progress != nullptr) options.progress->stage_begin("eval", static_cast<std::int64_t>(split.count()));
  std::optional<OutputCache> reference;
  if (info->needs_reference) {
    CTK_TRY(reference, collect_outputs(base.graph, split, std::filesystem::temp_directory_path().string()));
  }
  CTK_TRY(const Evaluation result, evaluate(graph, split, name, reference ? &*reference : nullptr));
  if (options.progress != nullptr) options.progress->stage_end("eval", 0, false);
  CTK_TRY(const data::Batch sample, split.read(0, std::min(split.count(), fixed_batch(graph, 1))));
  std::vector<Shape> shapes;
  for (const Tensor& input : sample.inputs) shapes.push_back(input.shape());
  CTK_TRY(auto executor, runtime::CpuExecutor::create(graph, shapes));
  CTK_TRY(const auto ignored, executor->run(sample.inputs));
  runtime::CpuExecutor* const turn[] = {executor.get()};
  CTK_TRY(const auto times, runtime::measure_interleaved(turn, {}));
  return EvalResult{path,
                    name,
                    info->better == data::Better::higher,
                    result.metric.value,
                    result.metric.standard_error,
                    static_cast<std::int64_t>(result.metric.count),
                    times[0].median_us,
                    times[0].p95_us,
                    threads()};
}

}  // namespace ctk::pipeline

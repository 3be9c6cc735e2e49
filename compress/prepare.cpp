#include "compress/prepare.h"

#include "compress/assignment.h"
#include "compress/early_exit/stage.h"
#include "compress/model_tokenizer.h"
#include "compress/output_folder.h"
#include "compress/prune/importance.h"
#include "compress/quantize/tune_blocks.h"
#include "compress/stored_grids.h"
#include "compress/summary.h"
#include "compress/token_checks.h"
#include "compress/train_stage.h"
#include "core/printable.h"
#include "graph/floats.h"
#include "graph/layer.h"
#include "graph/shapes.h"

namespace ctk::pipeline {
namespace {

// Operators we carry but cannot compute stop a run, unless nothing has to be computed.
Status require_runnable(const Session& session) {
  constexpr std::size_t kMostLines = 20;
  std::string problems;
  std::size_t count = 0;
  for (graph::NodeId id : session.model.graph.order()) {
    const graph::Node& node = session.model.graph.node(id);
    if (node.op != graph::Op::unknown) continue;
    const auto version = session.model.graph.other_opsets.find(node.domain);
    const int opset = node.domain.empty()                                 ? session.model.graph.opset
                      : version == session.model.graph.other_opsets.end() ? 0
                                                                          : version->second;
    for (std::string_view stage : {"calibrate", "sensitivity", "search", "validate"}) {
      if (!session.config.has_stage(stage)) continue;
      if (++count > kMostLines) break;
      problems +=
          (problems.empty() ? "" : "\n") +
          (session.config.model + ": node \"" + printable(session.model.graph.address(id)) + "\": operator " +
           (node.domain.empty() ? "" : node.domain + "::") + node.op_type + " (opset " + std::to_string(opset) +
           ") is not known, and stage \"" + std::string(stage) + "\" would have to run it. See `compress list ops`");
      break;
    }
  }
  if (count > kMostLines) problems += "\nand " + std::to_string(count - kMostLines) + " more";
  return count == 0 ? Status() : Status(input_error(problems));
}

// Labels must be classes the network has, where its first output says how many: [N, classes].
Status check_classes(const Session& session) {
  const auto& test = session.splits.test;
  const graph::Graph& graph = session.model.graph;
  if (!test || !test->source->has_labels() || graph.outputs().empty()) return {};
  CTK_TRY(const data::MetricInfo* metric,
          data::find_metric(test->source->spec().metric.empty() ? "agreement" : test->source->spec().metric));
  if (!metric->needs_labels || metric->is_of_pairs) return {};
  const auto infos = graph::infer_shapes(graph, batch_shapes(session.model, 1), true);
  if (!infos) return {};  // the first stage that runs the network says why
  const graph::InferredValue& output = (*infos)[graph.outputs()[0].index];
  if (!output.known || output.info.shape.size() != 2) return {};
  return test->source->check_labels(output.info.shape[1]);
}

// A stage that has nothing to read would be found out only when its turn comes.
Status require_split(const Session& session, std::string_view stage, const std::optional<data::Split>& split,
                     const std::string& key) {
  if (split || !session.config.has_stage(stage)) return {};
  for (const data::Warning& warning : session.splits.warnings) {
    if (warning.code == "split_absent" && warning.text.starts_with(key + ": ")) {
      return input_error("data." + warning.text + ", or leave samples over for it: stage \"" + std::string(stage) +
                         "\" needs it");
    }
  }
  return input_error("data." + key + ": expected samples for stage \"" + std::string(stage) + "\", found none. Add it");
}

// A model of fixed batch size takes whole batches only. Drawn samples are ours to cut to that; given ones are not.
Status fit_batches(Session& session) {
  const std::size_t batch = fixed_batch(session.model.graph, 0);
  if (batch == 0) return {};
  const std::string size = std::to_string(batch);
  for (auto* split : {&session.splits.calibrate, &session.splits.score, &session.splits.select, &session.splits.test}) {
    if (!*split || (*split)->count() % batch == 0) continue;
    const std::size_t whole = (*split)->count() - (*split)->count() % batch;
    if ((*split)->is_drawn && whole > 0) {
      (*split)->indices.resize(whole);
      continue;
    }
    const std::string key = (*split)->role == "test" ? "evaluate" : (*split)->role;
    return input_error("data." + key + ": expected a multiple of " + size +
                       " samples, the model's fixed batch, found " + std::to_string((*split)->count()) + ". " +
                       (whole > 0 ? "Set samples: " + std::to_string(whole) : "Give at least " + size) +
                       ", or export the model with a free first dimension");
  }
  return {};
}

Status open_splits(Session& session) {
  const PipelineConfig& config = session.config;
  data::SplitRequest request;
  const auto take = [](const std::optional<SourceConfig>& source, std::optional<data::SourceSpec>& into) -> Status {
    if (!source) return {};
    CTK_TRY(into, with_tokenizer(source->spec));
    return {};
  };
  CTK_CHECK(take(config.train, request.train));
  CTK_CHECK(take(config.calibrate_data, request.calibrate));
  CTK_CHECK(take(config.score, request.score));
  CTK_CHECK(take(config.select, request.select));
  CTK_CHECK(take(config.evaluate, request.evaluate));
  request.seed = config.seed;
  const bool fits_inputs =
      config.quantize && (quantization::needs_inputs(config.quantize->method) || config.quantize->low_rank > 0);
  const bool has_source = request.train || request.calibrate;
  const bool prunes = config.has_stage("prune") && config.prune && has_source;
  const bool repairs = prunes && (config.prune->repair.value_or(true) || pruning::needs_data(config.prune->method));
  const bool draws_curves = prunes && config.prune->ratios != "uniform" && config.prune->ratios != "global";
  if (repairs) request.draw_calibrate *= 2;
  request.draw_calibrate = config.has_stage("calibrate") || config.has_stage("transform") || fits_inputs || repairs
                               ? request.draw_calibrate
                               : 0;
  request.draw_score = config.has_stage("sensitivity") || draws_curves ? request.draw_score : 0;
  request.draw_select = config.compares_on_select() ? request.draw_select : 0;
  if (request.train || request.calibrate || request.score || request.select || request.evaluate) {
    auto ranked = require_known_ranks(session.model.graph);
    if (!ranked) return std::move(ranked).error().with_context(config.model);
  }
  const std::vector<data::InputInfo> infos = input_infos(session.model.graph);
  CTK_TRY(session.splits, data::make_splits(request, infos));
  CTK_CHECK(require_split(session, "calibrate", session.splits.calibrate, "calibrate"));
  CTK_CHECK(require_split(session, "sensitivity", session.splits.score, "score"));
  CTK_CHECK(require_split(session, "validate", session.splits.test, "evaluate"));
  const std::vector<const data::Split*> all = session.splits.all();
  if (!all.empty() && !all[0]->indices.empty()) {
    CTK_CHECK(bind_sample_shapes(session.model, *all[0]->source, all[0]->indices[0]));
  }
  CTK_CHECK(fit_batches(session));
  for (const data::Warning& warning : session.splits.warnings) session.warn(warning.code, warning.text);
  CTK_CHECK(check_classes(session));
  CTK_CHECK(check_tokens(session));
  for (const data::Split* split : session.splits.all()) {
    session.report.splits.push_back(
        {split->role, split->path(), static_cast<std::int64_t>(split->count()), split->fingerprint});
  }
  for (const data::Split* split : session.splits.all()) {
    if (split->is_drawn) continue;  // from a source that another split has told of
    for (const data::SkippedSample& sample : split->source->skipped()) {
      session.report.skipped_samples.push_back(
          {split->role, static_cast<std::int64_t>(sample.row), sample.where, sample.input, sample.reason});
    }
  }
  return {};
}

// Some layer must be able to take some scheme, or quantize would end with nothing done.
Status require_layers(Session& session) {
  const PipelineConfig& config = session.config;
  if (!config.has_stage("quantize") && !config.has_stage("search")) return {};
  const QuantizeConfig quantize = config.quantize.value_or(QuantizeConfig{});
  CTK_TRY(const std::vector<graph::Layer> layers, session.target_layers(quantize.targets, quantize.ignore));
  CTK_CHECK(check_assignment(config, session.model.graph));
  std::vector<exporter::SkippedRow> rows = session.report.skipped;
  for (const graph::Layer& layer : layers) {
    for (const QuantScheme& scheme : allowed_schemes(config, session.model.graph.address(layer.node))) {
      const std::string reason = quantization::infeasible_reason(session.model.graph, layer, scheme);
      if (reason.empty()) return {};
      rows.push_back({session.model.graph.address(layer.node), session.model.graph.node(layer.node).op_type,
                      to_string(scheme) + ": " + reason});
    }
  }
  // A weight of impossible shape is a fault of the model, not of the pipeline.
  auto infos = graph::infer_shapes(session.model.graph, batch_shapes(session.model, 1), true);
  if (!infos) return std::move(infos).error().with_context(config.model);
  return no_layer_error(session, rows);
}

}  // namespace

Result<LoadedModel> load_for(const PipelineConfig& config, const std::string& output, bool force) {
  CTK_CHECK(check_output_folder(output, force));
  CTK_CHECK(check_output_files(config, output, {}));
  CTK_TRY(LoadedModel model, load_model(config.model));
  CTK_CHECK(check_output_files(config, output, model.files));
  // What trains, cuts or differentiates reads all weights at once, and again and again.
  const bool is_tuned =
      config.has_stage("quantize") && config.quantize && quantization::tunes_blocks(config.quantize->method);
  if (config.changes_network() || config.has_stage("qat") || config.has_stage("sensitivity") || is_tuned) {
    graph::widen_constants(model.graph);
  }
  return model;
}

Session make_session(const PipelineConfig& config, const RunOptions& options, const std::string& output,
                     LoadedModel model) {
  Session session{config, options,
                  output, ArtifactCache(output + "/.cache", options.resume, options.ranks),
                  "",     std::move(model),
                  {},     {},
                  {},     {},
                  {},     {},
                  {},     std::nullopt,
                  {},     {},
                  {},     {},
                  {},     {}};
  for (const std::string& note : session.model.notes) session.warn("model", note);
  return session;
}

Status prepare(Session& session) {
  CTK_CHECK(require_runnable(session));
  CTK_CHECK(open_splits(session));
  CTK_CHECK(require_training(session));
  CTK_CHECK(require_layers(session));
  CTK_CHECK(prepare_prune(session));
  CTK_CHECK(prepare_early_exit(session));
  CTK_CHECK(prepare_transform(session));
  warn_of_unmeasured_budgets(session);
  tell_of_stored_grids(session);
  return {};
}

Error no_layer_error(const Session& session, const std::vector<exporter::SkippedRow>& skipped) {
  std::string why;
  for (std::size_t i = 0; i < skipped.size() && i < 5; ++i) {
    why += (i == 0 ? "" : "; ") + printable(skipped[i].name) + " (" + skipped[i].op + "): " + skipped[i].reason;
  }
  if (skipped.size() > 5) why += "; and " + std::to_string(skipped.size() - 5) + " more";
  if (why.empty()) {
    return config_error(session.config.model +
                        ": expected a layer to quantize (Conv, ConvTranspose, Gemm or MatMul with a constant weight), "
                        "found none in the model. Leave the stages search and quantize out, or give another model");
  }
  return config_error("stages.quantize: expected a layer that can be quantized, found none: " + why +
                      ". Give another scheme, or loosen `targets` and `ignore`");
}

}  // namespace ctk::pipeline

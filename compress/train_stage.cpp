#include "compress/train_stage.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "compress/interrupt.h"
#include "compress/network_stage.h"
#include "compress/prune/blocks.h"
#include "compress/prune/evenly.h"
#include "compress/quantize/tune_blocks.h"
#include "compress/select_metric.h"
#include "compress/stage_keys.h"
#include "compress/teacher.h"
#include "compress/train_feed.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "graph/layer.h"
#include "graph/shapes.h"
#include "graph/text.h"
#include "train/trainer_loader.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

bool multiplies_bf16() {
  return __builtin_cpu_supports("avx512bf16") != 0;
}

train::FitOptions options_of(const PipelineConfig& pipeline, const TrainConfig& config, const TrainKeys& keys) {
  train::FitOptions options;
  options.loss = {config.temperature,
                  config.alpha,
                  config.label_smoothing,
                  keys.feature_weight,
                  keys.feature_loss == "attention",
                  keys.feature_loss == "attention_probabilities"};
  options.ranges = keys.ranges == "learned"   ? train::Ranges::learned
                   : keys.ranges == "clipped" ? train::Ranges::clipped
                                              : train::Ranges::fixed;
  options.optimizer = config.optimizer == "adam"    ? train::Optimizer::adam
                      : config.optimizer == "adamw" ? train::Optimizer::adamw
                                                    : train::Optimizer::sgd;
  options.schedule = config.schedule == "step"       ? train::Schedule::step
                     : config.schedule == "constant" ? train::Schedule::constant
                                                     : train::Schedule::cosine;
  options.momentum = config.momentum;
  options.weight_decay = config.weight_decay;
  options.learning_rate = config.learning_rate;
  options.warmup = config.warmup;
  options.clip_norm = config.clip_norm;
  options.epochs = config.epochs;
  options.batch_size = config.batch_size;
  options.accumulate = config.accumulate;
  options.ema = config.ema;
  options.patience = config.patience;
  options.batch_norm = config.batch_norm;
  options.lora_rank = keys.lora_rank;
  options.checkpoint_blocks = keys.checkpoint_blocks;
  options.autocast = keys.autocast == "forced_bf16" || (keys.autocast == "bf16" && multiplies_bf16());
  options.seed = pipeline.seed;
  options.threads = threads();
  return options;
}

void warn_of_autocast(Session& session, const std::string& key, const TrainKeys& keys) {
  if (keys.autocast != "bf16" || multiplies_bf16()) return;
  session.warn("autocast_not_used",
               key +
                   ".autocast: expected a processor that multiplies bfloat16 (AVX512_BF16), "
                   "found none: it would be slower, so float32 is used. Write forced_bf16 to have it "
                   "all the same");
}

const TrainConfig* config_of(const PipelineConfig& config, std::string_view stage) {
  if (!config.has_stage(stage)) return nullptr;
  if (stage == "distill") return &*config.distill;
  if (stage == "finetune") return &*config.finetune;
  if (stage == "qat") return &*config.qat;
  return config.prune->finetune ? &*config.prune->finetune : nullptr;
}

std::string state_key(const Session& session, const graph::Graph& net, const std::string& stage) {
  return Fingerprint().add(session.fingerprint).add(stage).add(graph::print_graph(net)).hex();
}

void tell_epoch(const Session& session, const std::string& stage, std::int64_t epoch, double loss, const char* metric) {
  if (session.progress() == nullptr) return;
  char text[200];
  std::snprintf(text, sizeof text, "%s: epoch %lld: loss %.4f, %s", stage.c_str(), static_cast<long long>(epoch), loss,
                metric);
  session.progress()->note(text);
}

// The model with fewer channels and blocks, weights inherited.
Result<graph::Graph> make_student(const Session& session, const TrainKeys& keys) {
  graph::Graph student = session.model.graph.clone();
  if (!keys.student_depth.empty()) {
    CTK_TRY(const auto blocks, pruning::whole_blocks(student, batch_shapes(session.model, 1)));
    if (blocks.size() < 2) {
      return config_error(
          "stages.distill.student.depth: expected a model with two blocks at least whose input and output "
          "have one shape and add up, found " +
          std::to_string(blocks.size()) + ". Remove depth");
    }
    // From behind, so that places before stay.
    for (std::size_t i = blocks.size(); i-- > 0;) {
      if (i % 2 == 1) pruning::remove_block(student, blocks[i]);
    }
  }
  if (keys.student_width < 1) {
    auto cut = cut_evenly(session, student, 1 - keys.student_width);
    if (!cut) return std::move(cut).error().with_context("stages.distill.student.width");
    student = std::move(*cut);
  }
  return student;
}

// `floats`: of a coded net, what it was quantized from; else null. `own_teacher`: instead of the configuration's.
Result<graph::Graph> train_network(Session& session, const graph::Graph& net, const graph::Graph* floats,
                                   const TrainConfig& config, const std::string& stage, std::string* notes,
                                   const graph::Graph* own_teacher = nullptr) {
  CTK_TRY(train::Trainer * trainer, train::load_trainer());
  const TrainKeys keys = train_keys(session.config, stage);
  if (!session.splits.train) return input_error("data.train: expected samples to train on, found none. Add it");
  std::optional<graph::Graph> teacher;
  if (!config.teacher.empty() && !is_recorded(config.teacher)) {
    CTK_TRY(teacher, load_teacher(session, config.teacher, "teacher", keys.cut_teacher));
  }
  const SourceConfig& source = *session.config.train;
  CTK_TRY(auto feed, SplitFeed::open(*session.splits.train,
                                     {source.flip, source.shift, source.cutout, source.mixup, session.config.seed}));
  if (is_recorded(config.teacher)) {
    CTK_TRY(RecordedTeacher recorded, load_recorded(session, config.teacher, "teacher", keys.cut_teacher));
    CTK_CHECK(feed->record(std::move(recorded)));
  }
  std::optional<SelectMetric> metric;
  if (session.splits.select && session.ranks().is_first()) {
    CTK_TRY(metric, SelectMetric::open(session));
  }
  train::FitTask task;
  task.ranks = &session.ranks();
  task.student = &net;
  task.floats = floats;
  task.teacher = own_teacher != nullptr ? own_teacher : teacher ? &*teacher : nullptr;
  if (task.teacher != nullptr) {
    CTK_TRY(task.features, pair_features(net, *task.teacher, session.model.sample_shapes, keys.features, "features",
                                         keys.of_attention()));
  }
  task.feed = feed.get();
  task.options = options_of(session.config, config, keys);
  const std::string key = state_key(session, net, stage), artifact = stage + "-training";
  if (auto state = session.cache.get(artifact, key)) task.resume = std::move(*state);
  task.save = [&](const std::string& state) { return session.cache.put(artifact, key, state); };
  double loss = 0;
  std::int64_t epoch = 0;
  task.on_step = [&](const train::Progress& progress) -> Status {
    loss = progress.loss;
    epoch = progress.epoch + 1;
    session.advance(progress.step);
    return check_interrupt();
  };
  if (session.splits.select) {
    task.score = [&](const graph::Graph& graph) -> Result<double> {
      CTK_TRY(const double value, metric->of(graph));
      char text[80];
      std::snprintf(text, sizeof text, "%s %.4f", metric->name().c_str(), value);
      if (epoch > 0) tell_epoch(session, stage, epoch, loss, text);
      return metric->higher_is_better() ? value : -value;
    };
  }
  auto fitted = trainer->fit(task);
  if (!fitted) return std::move(fitted).error();
  if (notes != nullptr) {
    json rows = json::array();
    const double sign = metric && !metric->higher_is_better() ? -1 : 1;
    for (const train::EpochRow& row : fitted->epochs) {
      rows.push_back({{"loss", row.loss}, {"seconds", row.seconds}});
      if (metric) rows.back()[metric->name()] = sign * row.score;
    }
    json all{{"trainer", trainer->about()}, {"epochs", rows}, {"best_epoch", fitted->best_epoch + 1}};
    if (metric) all["start"] = sign * fitted->score_before;
    *notes = all.dump();
  }
  return std::move(fitted->graph);
}

Status run_training(Session& session, const std::string& stage, const TrainConfig& config, bool& cached,
                    NetworkKind kind = NetworkKind::real) {
  CTK_TRY(const std::vector<std::string> extra, training_depends(session, config));
  warn_of_autocast(session, "stages." + stage, train_keys(session.config, stage));
  std::string notes;
  const bool is_coded = kind == NetworkKind::coded;
  const ChangeNetwork change = [&]() -> Result<ChangedNetwork> {
    ChangedNetwork changed;
    const graph::Graph& net = is_coded ? *session.quantized : session.model.graph;
    const graph::Graph* floats = is_coded ? &session.model.graph : nullptr;
    if (const TrainKeys keys = train_keys(session.config, stage); keys.makes_student()) {
      CTK_TRY(const graph::Graph student, make_student(session, keys));
      CTK_TRY(changed.graph, train_network(session, student, nullptr, config, stage, &changed.notes,
                                           config.teacher.empty() ? &session.model.graph : nullptr));
      return changed;
    }
    CTK_TRY(changed.graph, train_network(session, net, floats, config, stage, &changed.notes));
    return changed;
  };
  return run_network_stage(session, stage, extra, config.gate, change, cached, notes, kind);
}

}  // namespace

Result<graph::Graph> fine_tune(Session& session, const graph::Graph& net, const TrainConfig& config,
                               const std::string& stage, std::string* notes) {
  warn_of_autocast(session, "stages." + stage + ".finetune", train_keys(session.config, stage));
  return train_network(session, net, nullptr, config, stage, notes);
}

Result<std::vector<std::string>> training_depends(const Session& session, const TrainConfig& config) {
  std::vector<std::string> depends;
  if (is_recorded(config.teacher)) {
    CTK_TRY(const std::string bytes, read_text(config.teacher));
    depends.push_back("teacher=" + Fingerprint().add(bytes).hex());
  } else if (!config.teacher.empty()) {
    CTK_TRY(const LoadedModel teacher, load_model(config.teacher));
    depends.push_back("teacher=" + Fingerprint().add(graph::print_graph(teacher.graph)).hex());
  }
  depends.push_back(session.config.fingerprint_of({"data.train.augment", "seed"}));
  return depends;
}

Status require_training(const Session& session) {
  const auto& quantize = session.config.quantize;
  if (session.config.has_stage("quantize") && quantize && quantization::tunes_blocks(quantize->method)) {
    if (auto trainer = train::load_trainer(); !trainer)
      return std::move(trainer).error().with_context("stages.quantize.method: signround");
  }
  for (const char* stage : {"distill", "prune", "finetune", "qat"}) {
    const TrainConfig* config = config_of(session.config, stage);
    if (config == nullptr) continue;
    const std::string key = "stages." + std::string(stage) + (std::string_view(stage) == "prune" ? ".finetune" : "");
    if (auto trainer = train::load_trainer(); !trainer) return std::move(trainer).error().with_context(key);
    if (!session.splits.train) {
      return input_error(key + ": expected samples in data.train to train on, found none. Add it");
    }
    const TrainKeys keys = train_keys(session.config, stage);
    const bool is_student = keys.makes_student();
    if (is_student) {
      CTK_CHECK(make_student(session, keys));
    }
    if (is_recorded(config->teacher)) {
      CTK_CHECK(load_recorded(session, config->teacher, key + ".teacher", keys.cut_teacher));
    } else if (!config->teacher.empty()) {
      CTK_TRY(const graph::Graph teacher, load_teacher(session, config->teacher, key + ".teacher", keys.cut_teacher));
      CTK_CHECK(pair_features(session.model.graph, teacher, session.model.sample_shapes, keys.features,
                              key + ".features", keys.of_attention()));
    } else if (is_student) {
      CTK_CHECK(pair_features(session.model.graph, session.model.graph, session.model.sample_shapes, keys.features,
                              key + ".features", keys.of_attention()));
    } else if (!session.splits.train->source->has_labels() && !session.splits.train->source->spec().text) {
      return input_error(key +
                         ": expected labels in data.train to train towards, found none. Give `labels:`, or a "
                         "`teacher:`");
    }
  }
  return {};
}

std::int64_t train_work(const Session& session, const TrainConfig& config) {
  if (!session.splits.train) return 0;
  const auto count = static_cast<std::int64_t>(session.splits.train->count());
  const std::int64_t batches = count / std::max<std::int64_t>(1, std::min(config.batch_size, count));
  return config.epochs * ((batches + config.accumulate - 1) / config.accumulate);
}

Status run_distill(Session& session, bool& cached) {
  return run_training(session, "distill", *session.config.distill, cached);
}

Status run_qat(Session& session, bool& cached) {
  CTK_CHECK(run_training(session, "qat", *session.config.qat, cached, NetworkKind::coded));
  if (!session.stage_row.accepted.value_or(true)) return {};
  for (const graph::Layer& layer : graph::layers_of(*session.quantized)) {
    const graph::Value& weight = session.quantized->value(layer.weight);
    for (exporter::LayerRow& row : session.report.layers) {
      if (weight.quantized && row.name == session.quantized->address(layer.node)) row.method = weight.quantized->method;
    }
  }
  return {};
}

Status run_finetune(Session& session, bool& cached) {
  return run_training(session, "finetune", *session.config.finetune, cached);
}

}  // namespace ctk::pipeline

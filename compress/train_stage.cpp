#include "compress/train_stage.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "compress/interrupt.h"
#include "compress/network_stage.h"
#include "compress/select_metric.h"
#include "compress/train_feed.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "graph/layer.h"
#include "graph/shapes.h"
#include "graph/text.h"
#include "train/trainer_loader.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

train::FitOptions options_of(const PipelineConfig& pipeline, const TrainConfig& config) {
  train::FitOptions options;
  options.loss = {config.temperature, config.alpha, config.label_smoothing};
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
  options.seed = pipeline.seed;
  options.threads = threads();
  return options;
}

// Size of the dimension that runs over classes, of the first output for one sample; nothing where it is not known.
std::optional<std::int64_t> classes_of(const graph::Graph& graph, const std::vector<Shape>& shapes) {
  const auto infos = graph::infer_shapes(graph, shapes, true);
  if (!infos || graph.outputs().empty()) return {};
  const graph::InferredValue& output = (*infos)[graph.outputs()[0].index];
  if (!output.known || output.info.shape.size() < 2) return {};
  const Shape& shape = output.info.shape;
  return shape.size() < 4 ? shape.back() : shape[1];
}

Result<graph::Graph> load_teacher(const Session& session, const TrainConfig& config, const std::string& key) {
  CTK_TRY(LoadedModel teacher, load_model(config.teacher));
  const auto infos = [](const graph::Graph& graph) {
    std::string text;
    for (const data::InputInfo& input : input_infos(graph)) {
      text += std::string(name_of(input.dtype)) + " [";
      for (std::size_t d = 0; d < input.shape.size(); ++d) {
        text += (d == 0 ? "" : ",") + (input.shape[d] < 0 ? "?" : std::to_string(input.shape[d]));
      }
      text += "] ";
    }
    return text;
  };
  const graph::Graph& student = session.float_graph();
  if (teacher.graph.inputs().size() != student.inputs().size()) {
    return input_error(key + ": expected a teacher with the inputs of the student, " + infos(student) + ", found " +
                       infos(teacher.graph) + "in " + config.teacher + ". Give a teacher of the same inputs");
  }
  const auto mine = classes_of(student, session.model.sample_shapes);
  const auto theirs = classes_of(teacher.graph, session.model.sample_shapes);
  if (mine && theirs && *mine != *theirs) {
    return input_error(key + ": expected the student's " + std::to_string(*mine) + " classes, found " +
                       std::to_string(*theirs) + " in " + config.teacher +
                       ". Give a teacher of the same classes in the same order");
  }
  return std::move(teacher.graph);
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

// `floats`: of a coded net, what it was quantized from; else null.
Result<graph::Graph> train_network(Session& session, const graph::Graph& net, const graph::Graph* floats,
                                   const TrainConfig& config, const std::string& stage, std::string* notes) {
  CTK_TRY(train::Trainer * trainer, train::load_trainer());
  if (!session.splits.train) return input_error("data.train: expected samples to train on, found none. Add it");
  std::optional<graph::Graph> teacher;
  if (!config.teacher.empty()) {
    CTK_TRY(teacher, load_teacher(session, config, "teacher"));
  }
  const SourceConfig& source = *session.config.train;
  CTK_TRY(auto feed, SplitFeed::open(*session.splits.train,
                                     {source.flip, source.shift, source.cutout, source.mixup, session.config.seed}));
  std::optional<SelectMetric> metric;
  if (session.splits.select && session.ranks().is_first()) {
    CTK_TRY(metric, SelectMetric::open(session));
  }
  train::FitTask task;
  task.ranks = &session.ranks();
  task.student = &net;
  task.floats = floats;
  task.teacher = teacher ? &*teacher : nullptr;
  task.feed = feed.get();
  task.options = options_of(session.config, config);
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
  std::string notes;
  const bool is_coded = kind == NetworkKind::coded;
  const ChangeNetwork change = [&]() -> Result<ChangedNetwork> {
    ChangedNetwork changed;
    const graph::Graph& net = is_coded ? *session.quantized : session.model.graph;
    const graph::Graph* floats = is_coded ? &session.model.graph : nullptr;
    CTK_TRY(changed.graph, train_network(session, net, floats, config, stage, &changed.notes));
    return changed;
  };
  return run_network_stage(session, stage, extra, config.gate, change, cached, notes, kind);
}

}  // namespace

Result<graph::Graph> fine_tune(Session& session, const graph::Graph& net, const TrainConfig& config,
                               const std::string& stage, std::string* notes) {
  return train_network(session, net, nullptr, config, stage, notes);
}

Result<std::vector<std::string>> training_depends(const Session& session, const TrainConfig& config) {
  std::vector<std::string> depends;
  if (!config.teacher.empty()) {
    CTK_TRY(const LoadedModel teacher, load_model(config.teacher));
    depends.push_back("teacher=" + Fingerprint().add(graph::print_graph(teacher.graph)).hex());
  }
  depends.push_back(session.config.fingerprint_of({"data.train.augment", "seed"}));
  return depends;
}

Status require_training(const Session& session) {
  for (const char* stage : {"distill", "prune", "finetune", "qat"}) {
    const TrainConfig* config = config_of(session.config, stage);
    if (config == nullptr) continue;
    const std::string key = "stages." + std::string(stage) + (std::string_view(stage) == "prune" ? ".finetune" : "");
    if (auto trainer = train::load_trainer(); !trainer) return std::move(trainer).error().with_context(key);
    if (!session.splits.train) {
      return input_error(key + ": expected samples in data.train to train on, found none. Add it");
    }
    if (!config->teacher.empty()) {
      CTK_CHECK(load_teacher(session, *config, key + ".teacher"));
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

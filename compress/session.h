// What a run knows so far. Stages read from it and add to it; nothing else is shared between them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "compress/artifact_cache.h"
#include "compress/config.h"
#include "compress/evaluate.h"
#include "compress/model.h"
#include "compress/pipeline.h"
#include "compress/quantize/apply.h"
#include "data/splits.h"
#include "export/report.h"

namespace ctk::pipeline {

// Loss of the network when one layer alone has one scheme.
struct Score {
  std::string layer;
  std::string scheme;
  double loss = 0;  // nats, mean KL of outputs to the float network
  double standard_error = 0;
  // What weights and activations lose apart, where the metric tells them apart.
  std::optional<double> of_weights{}, of_activations{};
};

// An answer of the search that is to be measured as a whole before one is taken.
struct Finalist {
  quantization::SchemeMap schemes;
  std::map<std::string, std::string> reasons;  // by layer
  std::string origin;                          // "best by the scores"
  exporter::Figure predicted_loss;             // sum over layers; absent without scores
  std::map<std::string, double> predicted;     // budget name -> value
};

struct Session {
  const PipelineConfig& config;
  const RunOptions& options;
  std::string output;  // folder
  ArtifactCache cache;
  std::string fingerprint;  // of all that led here; each stage adds its own part
  LoadedModel model;
  data::Splits splits;

  std::map<std::string, calibrate::Range> ranges;          // by value name, after calibrate
  std::map<std::string, std::vector<double>> input_means;  // by value name: mean of each channel
  std::vector<Score> scores;                               // after sensitivity
  quantization::SchemeMap schemes;                         // after search, or from quantize's own scheme
  std::map<std::string, std::string> reasons;              // by layer: why this scheme
  std::map<std::string, double> layer_latency_us;          // by layer, under its scheme
  std::optional<graph::Graph> quantized;                   // after quantize
  std::map<std::string, double> predicted;                 // budget name -> value
  std::map<std::string, double> prices;                    // budget name -> nats saved for each unit more
  std::optional<double> measured_loss;                     // KL to the float network on the test split, nats
  exporter::Report report;
  std::optional<graph::Graph> original;  // the float network as read, once a stage has put another in its place
  exporter::StageRow stage_row;          // of the running stage: figures it states beyond its time
  std::vector<Finalist> finalists{};     // after search, the best by the scores first; its schemes are `schemes`

  // What all figures of "before" are of.
  const graph::Graph& float_graph() const { return original ? *original : model.graph; }
  const graph::Graph& final_graph() const { return quantized ? *quantized : model.graph; }
  // Options every use of schemes shares; without method and bias correction, as scoring and timing want them.
  quantization::ApplyOptions plain_options() const {
    quantization::ApplyOptions apply;
    apply.input_shapes = model.sample_shapes;
    apply.reduce_range = config.quantize && config.quantize->reduce_range;
    return apply;
  }
  ProgressSink* progress() const { return options.progress; }
  // Those that work together on what is being done; one alone while rank 0 works by itself.
  Ranks& ranks() const { return cache.ranks(); }
  // Rank 0 does the work by itself, the others wait for its bytes or its error.
  Result<std::string> first_does(std::string_view what, const std::function<Result<std::string>()>& work) {
    return cache.first_does(what, work);
  }
  void advance(std::int64_t done) const {
    if (options.progress != nullptr) options.progress->advance(done);
  }
  void warn(std::string code, std::string text) { report.warnings.push_back({std::move(code), std::move(text)}); }
  // The layers a quantize or search stage may touch, by address; fills report.skipped with the others and the reasons.
  Result<std::vector<graph::Layer>> target_layers(const std::vector<std::string>& targets,
                                                  const std::vector<std::string>& ignore);
  // report.layers and report.skipped from the network as it is now. Errors: none but those of target_layers.
  Status list_layers();
};

// A stage: work units for the progress bar, the keys it depends on, and how it runs. run() must restore its results
// from the cache when they are there (and set `cached`), so that a resumed run and a straight one go the same way.
struct StageRow {
  std::string_view name;
  std::string_view what;
  std::int64_t (*work)(const Session& session);
  Status (*run)(Session& session, bool& cached);
  // Whether all ranks work on it (null: they do); else rank 0 does it by itself, and the others restore what later
  // stages ask for.
  bool (*is_shared)(const PipelineConfig& config) = nullptr;
};
// In the order a pipeline may name them.
std::span<const StageRow> stages();

std::int64_t prune_work(const Session& session);  // points of the curves, layers to repair
Status run_prune(Session& session, bool& cached);
// Before any work. Errors: config (patterns that match nothing, an aim out of reach), input (data that is missing).
Status prepare_prune(const Session& session);

std::int64_t transform_work(const Session& session);
Status run_transform(Session& session, bool& cached);
// Before any work. Errors: config (a network that a method cannot transform).
Status prepare_transform(const Session& session);

// report.layers' losses, of the schemes as they are.
void list_losses(Session& session);

Status run_calibrate(Session& session, bool& cached);
// Ranges and means of the session's network as it is now, without the cache.
Status measure_ranges(Session& session);
Status run_sensitivity(Session& session, bool& cached);
Status run_search(Session& session, bool& cached);
std::int64_t quantize_work(const Session& session);  // layers
Status run_quantize(Session& session, bool& cached);
Status run_export(Session& session, bool& cached);
Status run_validate(Session& session, bool& cached);

// No layer would be quantized: says why, layer by layer.
Error no_layer_error(const Session& session, const std::vector<exporter::SkippedRow>& skipped);

// fingerprint of a stage: what led here + its own keys + `extra` (splits, machine).
std::string stage_fingerprint(const Session& session, std::string_view stage, const std::vector<std::string>& extra);

}  // namespace ctk::pipeline

// The pipeline file as a checked struct. What keys exist is written in config_schema.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compress/units.h"
#include "core/quant_scheme.h"
#include "core/result.h"
#include "data/source.h"

namespace ctk::pipeline {

// One of data.{train,calibrate,score,select,evaluate}.
struct SourceConfig {
  data::SourceSpec spec;               // path resolved against the file's folder
  bool flip = false;                   // train: augmentation
  std::int64_t shift = 0, cutout = 0;  // train: pixels
  double mixup = 0;                    // train
};

struct BudgetConfig {
  std::optional<Limit> size;                             // bytes of the written model file
  std::optional<Limit> latency;                          // us for one sample
  std::optional<Limit> latency_decode, latency_prefill;  // us, language models
  std::optional<Limit> peak_memory;                      // bytes
  std::optional<Limit> bits;                             // average of a weight over all layers, scales included
  std::optional<MetricDrop> metric_drop;
  std::string minimize;  // size, latency, peak_memory or bits, as small as metric_drop allows; empty: the loss
  bool is_empty() const {
    return !size && !latency && !latency_decode && !latency_prefill && !peak_memory && !bits && !metric_drop;
  }
};

// Of a stage that changes the network: how much worse the metric may get on the select split, and what then.
struct GateConfig {
  std::optional<MetricDrop> metric_drop;
  bool continues = false;                // on_refusal: continue, with the network as it was before the stage
  std::string key = "gate.metric_drop";  // of the limit, below the stage
};

struct TrainConfig {  // distill, finetune, qat and prune.finetune
  std::string teacher;
  double temperature = 4, alpha = 0.9, label_smoothing = 0;
  std::string optimizer = "sgd", schedule = "cosine";
  double learning_rate = 0.02, warmup = 0, momentum = 0.9, weight_decay = 1e-4, clip_norm = 0, ema = 0;
  std::int64_t epochs = 1, batch_size = 128, accumulate = 1, patience = 0;
  bool batch_norm = true;
  GateConfig gate;
};
struct PruneConfig {
  std::string method = "l1";
  std::optional<double> macs, pruning_ratio;  // share of multiply-adds kept; share of channels removed
  double max_ratio = 0.9;                     // of one layer's channels
  std::string ratios = "auto";                // uniform, global, sensitivity, timed, joint
  std::int64_t round_to = 0;                  // 0: auto
  std::vector<std::string> targets, ignore;   // patterns of layers
  std::optional<bool> repair;                 // absent: where there is data
  std::optional<TrainConfig> finetune;
  GateConfig gate;
};
struct TransformConfig {
  std::vector<std::string> methods;  // in the order they are tried
  std::optional<double> strength;    // smoothquant; absent: searched for each group of layers
  bool insert_mul = true;            // where nothing takes the factors in
};
struct CalibrateConfig {
  std::string method = "minmax";
  double percentile = 99.99;
};
struct SensitivityConfig {
  std::string metric = "kl";
  bool curves = false;  // sensitivity_curves.json
};
struct SearchConfig {
  std::vector<QuantScheme> schemes;  // in the order given, no repeats
  std::string solver = "ilp";
  std::string groups = "auto";  // "auto": layers that must share a scheme do; "none"
  std::int64_t finalists = 1;
  std::int64_t pairs = 0;        // of neighbours measured together at most
  std::int64_t corrections = 0;  // times losses are put right by measured networks and solved again at most
};
struct QuantizeConfig {
  std::string method = "rtn";
  std::optional<QuantScheme> scheme;           // absent when a search chooses, or a file of schemes
  std::string assignment;                      // that file (assignment.h); empty: none
  std::map<std::string, QuantScheme> schemes;  // what it says, by layer; others stay float
  std::vector<std::string> targets, ignore;    // patterns, see patterns.h; no targets = every layer
  bool bias_correction = false;
  bool reduce_range = false;  // 8-bit weights within -64..63
  double damp_percent = 1.0;
  std::int64_t low_rank = 0;  // rank of a correction of each layer's error; 0: none
  std::int64_t revert = 24;   // networks measured at most to come back within budget.metric_drop
  bool has_schemes() const { return scheme || !assignment.empty(); }  // its own; else a search chooses
};
struct ExportConfig {
  std::vector<std::string> formats;
};
struct ValidateConfig {
  std::vector<std::string> against;
  std::optional<MetricDrop> gate_metric_drop;
};

// One thing wrong with a pipeline file.
struct Problem {
  std::string where;    // "edge.yaml:14" or "--set stages.quantize.scheme"
  std::string path;     // "stages[1].search.schemes"; empty for the file as a whole
  std::string message;  // expected ..., found ...; what to do
};
std::string to_string(const Problem& problem);

struct PipelineConfig {
  std::string file_name;      // as the user gave it
  std::string model, output;  // resolved paths
  std::uint64_t seed = 0;
  std::string target = "cpu";  // "cpu", or a resolved path of a device card
  int threads = 0;             // 0 = every core
  std::optional<SourceConfig> train, calibrate_data, score, select, evaluate;
  BudgetConfig budget;
  std::vector<std::string> stages;  // names, in order
  std::optional<TrainConfig> distill, finetune, qat;
  std::optional<PruneConfig> prune;
  std::optional<TransformConfig> transform;
  std::optional<CalibrateConfig> calibrate;
  std::optional<SensitivityConfig> sensitivity;
  std::optional<SearchConfig> search;
  std::optional<QuantizeConfig> quantize;
  std::optional<ExportConfig> exports;
  std::optional<ValidateConfig> validate;

  // Known keys and names that this build cannot serve; empty when the pipeline can run. See require_available().
  std::vector<Problem> unavailable;
  // Every key with its value in one spelling, defaults included, paths as written: "stages.calibrate.method" -> "mse".
  std::map<std::string, std::string> canonical;

  bool has_stage(std::string_view name) const;
  // Some stage changes the float network itself, see names.h.
  bool changes_network() const;
  // Some stage holds networks against each other on the select split.
  bool compares_on_select() const;
  // Of the whole canonical form but `output`.
  std::string fingerprint() const;
  // Of the entries at or below the given paths ("seed", "data.calibrate", "stages.calibrate"): what a stage depends on.
  std::string fingerprint_of(const std::vector<std::string>& paths) const;
};

// Reads and checks a pipeline file. `overrides` are "dotted.key=value" in YAML spelling, applied before checking; paths
// in the file are relative to its folder, paths in overrides to the working directory.
// Errors: config, one problem a line, all of them; input (the file cannot be read).
Result<PipelineConfig> load_config(const std::string& path, const std::vector<std::string>& overrides = {});
// The same from text: `file_name` is what messages say, relative paths start at `base_folder`.
Result<PipelineConfig> parse_config_text(const std::string& yaml_text, const std::string& file_name,
                                         const std::string& base_folder,
                                         const std::vector<std::string>& overrides = {});
// Errors: config, one line for each thing this build lacks.
Status require_available(const PipelineConfig& config);

}  // namespace ctk::pipeline

// What a run found and made: the figures behind report.json, report.md and report.html.
//
// The fields are the keys of report.json, in its order; its schema is configs/schema/report.schema.json. A figure that
// was not measured is absent and written as null; so is one that is not finite, with a warning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace ctk::exporter {

using Figure = std::optional<double>;

struct SplitRow {
  std::string name;    // calibrate, score, select, test, train
  std::string source;  // path
  std::int64_t count = 0;
  std::string fingerprint;
};

struct MetricPart {
  std::string name;
  bool higher_is_better = true;
  Figure baseline, final, standard_error;
  Figure drop;  // how much worse, in the metric's own unit; negative = better
};

struct LatencyFigure {
  Figure median, p95;  // us
  std::int64_t runs = 0;
};
struct PhaseFigures {
  LatencyFigure baseline, final;
};
struct PhasesPart {  // of language models
  PhaseFigures prefill, decode;
};
struct LatencyPart {
  int threads = 0;
  LatencyFigure baseline, final;
  std::optional<PhasesPart> phases;
};

struct BudgetRow {
  std::string name;  // size, latency, peak_memory, bits, loss, metric_drop
  std::string unit;  // bytes, us, bits, nats, points, ratio
  Figure limit, predicted, measured;
  std::optional<bool> met;  // absent: not decided
  Figure price;             // loss saved per unit that the limit is raised
  Figure error{};           // predicted / measured - 1
  std::string role{};       // limit, objective (as small as the others allow), reported
};

struct LayerRow {
  std::string name, op;             // address; operator
  std::vector<std::int64_t> shape;  // of the weight
  std::int64_t macs = 0;            // a sample
  std::string scheme;               // "w8a8_c"
  std::string method;               // "rtn"
  Figure loss;                      // of this layer alone under its scheme, nats
  Figure loss_error{};              // standard error over the score split
  Figure latency_us;
  std::int64_t bytes = 0;          // of the weights as stored
  std::string reason;              // why this scheme
  std::int64_t rows_seen = 0;      // samples behind its ranges
  Figure error_rtn, error_method;  // relative squared weight error
  double weight_bits = 32;         // a weight, scales included; drawn in the report
};

// A whole network that was measured on the select split before one was taken.
struct FinalistRow {
  std::string name;    // how it was found: "best by the scores"
  std::string method;  // of its codes
  Figure predicted;    // loss as a sum over layers, nats
  Figure measured;     // KL to the float network, nats
  Figure standard_error;
  Figure metric;  // of labelled samples: what decides there
  bool is_chosen = false;
  std::string codes;  // which of them were found for another network
};
// Losses put right by a network that was coded and measured, and the programme solved again.
struct LossRoundRow {
  Figure predicted, measured;  // of the network that this round coded, nats, on the select split
  double scale = 1;            // of all losses, behind what its method gained layer by layer
  std::int64_t changed = 0;    // layers whose scheme is another than the round before
  std::string result;          // "agrees", "solved again", "the same schemes again"
};
// Why the answer of a search is the best one by its figures.
struct CertificatePart {
  double loss = 0, bound = 0, gap = 0;  // no assignment has a smaller loss than `bound`
  bool proved_optimal = false;
  std::int64_t corrections = 0;  // times it was solved again for what sums over layers missed
  Figure loss_scale;             // measured over predicted loss of the network taken, on the select split
  std::vector<LossRoundRow> rounds{};
};

// A figure a budget, in the budget's unit: a cost, or what a unit of it buys. Absent: nothing was measured for it.
struct BudgetFigures {
  Figure size, latency, peak_memory, bits, latency_decode, latency_prefill;
};
// An answer that no other one beats.
struct FrontRow {
  double loss = 0;  // sum over layers, nats
  BudgetFigures cost;
  BudgetFigures price;  // nats saved for each unit more
  bool is_chosen = false;
};
// A network measured while the objective was made as small as the floor allows.
struct TrialRow {
  double limit = 0;        // of the objective
  Figure cost;             // of the objective, as built
  double loss = 0;         // predicted, nats
  Figure measured;         // KL to the float network on the select split, nats
  Figure metric, drop;     // on the select split; the drop in the unit of its limit
  bool is_within = false;  // the floor
};
// Two neighbours coded together: what they lose beyond the sum of what each loses alone.
struct PairRow {
  std::string first, first_scheme, second, second_scheme;
  Figure sum, together;  // KL on the score split, nats
  double loss = 0;       // together - sum: what the programme adds
};
// What a search looked at beside its answer.
struct SearchPart {
  std::string metric;     // of the scores
  std::string objective;  // loss, or the budget that was made small
  std::vector<FrontRow> front;
  Figure front_seconds;
  std::vector<TrialRow> trials;
  std::vector<PairRow> pairs{};
};
// A layer that was given back precision, or could have been.
struct RevertRow {
  std::string name, from, to;  // schemes
  Figure benefit;              // KL that it saves alone, nats; absent: not measured, ranked by its scores
  double bytes = 0;            // more of its weights
  bool is_kept = false;
};
// How the network came back within budget.metric_drop, on the select split.
struct FloorPart {
  std::string metric;
  double limit = 0;  // in the unit of the limit: points, or a ratio
  Figure drop_before, drop_after, kl_before, kl_after;
  std::int64_t evaluations = 0, most_evaluations = 0;
  std::vector<RevertRow> layers;
};

struct SkippedRow {
  std::string name, op, reason;
  bool operator==(const SkippedRow&) const = default;
};
struct StageRow {
  std::string name;
  Figure seconds;
  bool cached = false;
  std::int64_t peak_rss = 0;           // bytes
  Figure metric_before, metric_after;  // on the select split; of validate, on the test split
  std::optional<bool> accepted;
  // Of the network that a stage which changes it leaves behind: multiply-adds of one sample, bytes of its float
  // weights, median time of one sample.
  Figure parameters, macs, weight_bytes, latency_us;
};
struct FileRow {
  std::string path;  // relative to the output folder
  std::string format;
  std::int64_t bytes = 0;
  std::string sha256;
};
struct WarningRow {
  std::string code;  // "slower_than_float"
  std::string text;
};
// A sample that `on_bad_sample: skip` left out.
struct SkippedSampleRow {
  std::string split;
  std::int64_t index = 0;  // row of the file, picture of the folder
  std::string sample;      // "train.npz row 17"
  std::string tensor;      // input or value that is bad; empty when the sample cannot be read
  std::string reason;
};
// Range of an activation as calibrated.
struct RangeRow {
  std::string name;  // value
  Figure low, high;
  std::int64_t count = 0;  // numbers seen
  std::string source;      // "mse", "fixed by Softmax"
};
// Another program on the written file.
struct CheckRow {
  std::string against, file;
  Figure agreement, max_error, metric;
  std::string result;  // "agrees", "differs", "not run: ..."
};

// Width and loss (nats) of a group cut alone.
struct CurvePointRow {
  std::int64_t width = 0;
  Figure loss;
};
// Channels that go together.
struct PruneRow {
  std::string name;  // of the layer that makes them
  std::int64_t units = 0, kept = 0;
  std::string reason;  // why they stay
  std::vector<CurvePointRow> curve;
};
// A layer refitted after the cut.
struct RepairRow {
  std::string name;
  Figure error_before, error_after;  // squared, over the variance of what it should give
};

// Factors moved between what makes a value and the layers that read it, or weights rotated; the network's function
// stays.
struct TransformRow {
  std::string method;                // awq, smoothquant, hadamard
  std::string layers;                // that read the value, joined by ", "
  std::string where;                 // what took the inverse; empty: nothing was changed
  Figure strength;                   // how far factors follow the inputs: an exponent
  Figure error_before, error_after;  // squared output error once coded, over the outputs'; on samples of calibrate
  std::string reason;                // why nothing was changed, or why the place is one of its own
};
// A whole network, coded, with these transforms.
struct TransformTrialRow {
  std::string methods;  // joined by " + "; "none"
  Figure measured;      // KL to the float network on the select split, nats
  Figure standard_error;
  bool is_kept = false;
};

struct ConfigPart {
  std::string path, fingerprint;
};
struct MachinePart {
  std::string cpu, isa;  // isa: the best row the kernels may use
  int cores = 0;
  std::int64_t memory_bytes = 0;
};
struct ModelPart {
  std::string path, sha256, format;
  std::int64_t parameters = 0, macs = 0;
};
struct SizePart {
  Figure before, after;  // bytes of the written files
};
struct MemoryPart {
  Figure baseline_peak, final_peak, run_peak_rss;  // bytes
};

struct Report {
  std::string version, command;
  ConfigPart config;
  std::uint64_t seed = 0;
  int threads = 0;
  MachinePart machine;
  ModelPart model;
  std::vector<SplitRow> splits;
  std::optional<MetricPart> metric;
  SizePart size;
  LatencyPart latency;
  MemoryPart memory;
  std::vector<BudgetRow> budget;
  std::vector<LayerRow> layers;
  std::vector<FinalistRow> finalists;
  std::optional<CertificatePart> certificate;  // of a search
  std::optional<SearchPart> search;
  std::optional<FloorPart> floor;  // where layers were given back precision
  std::vector<SkippedRow> skipped;
  std::vector<StageRow> stages;
  std::vector<FileRow> files;
  std::vector<WarningRow> warnings;
  // Beyond the keys of the design page.
  std::vector<RangeRow> ranges;
  std::vector<SkippedSampleRow> skipped_samples;
  std::vector<CheckRow> checks;
  std::vector<PruneRow> pruned;
  std::vector<RepairRow> repaired;
  std::vector<TransformRow> transforms;
  std::vector<TransformTrialRow> transform_trials;
  std::vector<std::string> rewrites;  // passes and how often each applied
  std::string output;                 // folder, as the user gave it
};

// One JSON object, two spaces of indent, keys in the order above, a newline at the end. Text that is not UTF-8 is
// repaired. Numbers that are not finite become null and add a warning "not_finite" naming the key.
std::string to_json(const Report& report);
// Inverse, for `compress eval`, tests and Python. Errors: input (not JSON, a key of another type; names the key).
Result<Report> parse_report(const std::string& json);
// For people: summary, budgets, layers, splits, stages, files, warnings.
std::string to_markdown(const Report& report);
// One file without external resources; follows the reader's light or dark setting.
std::string to_html(const Report& report);

// Writes report.json, report.md, report.html into `folder`, each whole or not at all. Errors: input.
Status write_report(const Report& report, const std::string& folder);

// Path, bytes and SHA-256 of a file below `folder`. Errors: input.
Result<FileRow> describe_file(const std::string& folder, const std::string& relative_path, const std::string& format);
// manifest.json: {"files": [{path, bytes, sha256}]}, sorted by path. Byte-equal for equal files.
Status write_manifest(std::vector<FileRow> files, const std::string& folder);
// Its rows, without formats. Errors: input (absent, not JSON, a path that leaves the folder).
Result<std::vector<FileRow>> read_manifest(const std::string& folder);
// Holds a folder against its manifest. Errors: input (a file missing, of another size or hash; names all).
Status verify_manifest(const std::string& folder);

}  // namespace ctk::exporter

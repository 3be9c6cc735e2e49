#include "compress/config_schema.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace ctk::pipeline {
namespace {

using enum ValueKind;

constexpr double kAny = std::numeric_limits<double>::max();
constexpr double kAboveZero = std::numeric_limits<double>::min();  // the least number that divides
constexpr double kMost = 1e12;                                     // of counts

// path, kind, least, most, default, names, needs, what
const KeyRow kRows[] = {
    {"model", path, 0, 0, "!", {}, "", "the model: an .onnx file"},
    {"output", path, 0, 0, "!", {}, "", "the folder for everything that is written"},
    {"seed", integer, 0, 9e15, "0", {}, "", "of every random choice"},
    {"target", target, 0, 0, "cpu", NameKind::target, "", "cpu, or the path of a device card"},
    {"threads", integer, 0, 1024, "0", {}, "", "0 = every core"},

    {"data", section, 0, 0, "", {}, "", "the splits"},
    {"data.*", section, 0, 0, "", {}, "", "one split: train, calibrate, score, select or evaluate"},
    {"data.*.path", path, 0, 0, "!", {}, "", "an .npz or .npy file, a folder or a .zip of pictures"},
    {"data.*.split",
     text,
     0,
     0,
     "",
     {},
     "",
     "part of the file: arrays \"<array>_<split>\", or rows by the array \"split\""},
    {"data.*.inputs", text_map, 0, 0, "", {}, "", "model input: array of the file"},
    {"data.*.labels", text, 0, 0, "", {}, "", "an array, from_name or from_folder"},
    {"data.*.samples", integer, 1, kMost, "", {}, "", "at most so many, after skip"},
    {"data.*.skip", integer, 0, kMost, "0", {}, "", "samples to leave out at the front"},
    {"data.*.scale", number, kAboveZero, kAny, "", {}, "", "value = ((stored - zero_point) / scale - mean) / std"},
    {"data.*.zero_point", number, -kAny, kAny, "", {}, "", "see scale"},
    {"data.*.mean", number_list, -kAny, kAny, "", {}, "", "see scale; one number or one a channel"},
    {"data.*.std", number_list, kAboveZero, kAny, "", {}, "", "see scale; one number or one a channel"},
    {"data.*.resize", integer, 1, 65536, "", {}, "", "pictures: the shorter side in pixels"},
    {"data.*.crop", integer, 1, 65536, "", {}, "", "pictures: side of the centre square in pixels"},
    {"data.*.on_bad_sample",
     text,
     0,
     0,
     "error",
     {},
     "",
     "error or skip: a sample that has NaN or Inf, gives them inside the network (calibrate), or does not decode"},
    {"data.*.context", integer, 2, kMost, "", {}, "", "text: tokens in a window"},
    {"data.*.windows", integer, 1, kMost, "", {}, "", "text: at most so many windows"},
    {"data.*.lines", boolean, 0, 0, "", {}, "", "text: each line is a sample"},
    {"data.*.pairs", boolean, 0, 0, "", {}, "", "text: a line is SCORE TAB TEXT TAB TEXT, for metric spearman"},
    {"data.*.special_tokens",
     boolean,
     0,
     0,
     "",
     {},
     "",
     "lines, pairs: the tokenizer's around each (default with pairs)"},
    {"data.*.bos", boolean, 0, 0, "", {}, "", "text: begin each sample with the begin token"},
    {"data.*.tokenizer", path, 0, 0, "", {}, "", "text: the model's by default"},
    {"data.train.augment", section, 0, 0, "", {}, "", "random changes of training pictures"},
    {"data.train.augment.flip", boolean, 0, 0, "false", {}, "", "mirror left and right"},
    {"data.train.augment.shift", integer, 0, 65536, "0", {}, "", "move by up to so many pixels"},
    {"data.train.augment.cutout", integer, 0, 65536, "0", {}, "", "blank a square of this side, in pixels"},
    {"data.train.augment.mixup", number, 0, 1, "0", {}, "", "mix pairs by shares of Beta(a, a); 0 = none"},
    {"data.select.metric", name, 0, 0, "", NameKind::metric, "", "what gates compare; evaluate's by default"},
    {"data.evaluate.metric", name, 0, 0, "", NameKind::metric, "",
     "what is reported; absent: top1 with labels, else agreement"},

    {"budget", section, 0, 0, "", {}, "", "limits; absolute, or a share of the float model"},
    {"budget.size", size, 0, 0, "", {}, "", "bytes of the written model"},
    {"budget.latency", latency, 0, 0, "", {}, "", "time of one sample, or {decode: .., prefill: ..}"},
    {"budget.latency.decode", latency, 0, 0, "", {}, "", "time of one token behind a text of a sample's length"},
    {"budget.latency.prefill", latency, 0, 0, "", {}, "", "time of a prompt of a sample's length"},
    {"budget.peak_memory", size, 0, 0, "", {}, "", "bytes at the peak of one run"},
    {"budget.bits", number, kAboveZero, 32, "", {}, "", "average bits of a weight, scales included"},
    {"budget.metric_drop", drop, 0, 0, "", {}, "", "how much worse the metric may get"},
    {"budget.minimize",
     text,
     0,
     0,
     "",
     {},
     "",
     "size, latency, latency.decode, latency.prefill, peak_memory or bits: as small as metric_drop and the other "
     "limits allow"},

    {"stages", stage_list, 0, 0, "!", {}, "", "what to do, in order"},
    {"stages.distill", section, 0, 0, "", {}, "", "train the model towards a teacher's outputs"},
    {"stages.distill.student", section, 0, 0, "", {}, "", "made from the model, which is then the teacher"},
    {"stages.distill.student.width", number, kAboveZero, 1, "1", {}, "", "share of each layer's channels it has"},
    {"stages.distill.student.depth", text, 0, 0, "", {}, "", "every_second: it lacks every second block"},

    {"stages.prune", section, 0, 0, "", {}, "", ""},
    {"stages.prune.method", name, 0, 0, "l1", NameKind::prune_method, "", "which channels go first"},
    {"stages.prune.macs", number, kAboveZero, 1, "", {}, "", "share of the multiply-adds that stays"},
    {"stages.prune.pruning_ratio", number, kAboveZero, 1, "", {}, "", "share of the channels that goes"},
    {"stages.prune.latency", latency, 0, 0, "", {}, "", "time of one sample in float to come down to, measured"},
    {"stages.prune.max_ratio", number, kAboveZero, 1, "0.9", {}, "", "share of one layer's channels that may go"},
    {"stages.prune.ratios",
     text,
     0,
     0,
     "auto",
     {},
     "",
     "uniform, global (by importance), sensitivity (by measured curves), timed (the same without widths that take as "
     "long as wider ones), joint (with schemes, under budget's size and latency); auto: sensitivity where there is "
     "data"},
    {"stages.prune.round_to", text, 0, 0, "auto", {}, "", "widths are multiples of it; auto: by the layer's width"},
    {"stages.prune.targets", text_list, 0, 0, "", {}, "", "layers whose channels may go: addresses or re: patterns"},
    {"stages.prune.ignore", text_list, 0, 0, "", {}, "", "layers whose channels stay: addresses or re: patterns"},
    {"stages.prune.repair",
     boolean,
     0,
     0,
     "",
     {},
     "",
     "fit what reads the cut channels to the float network; on where there is data"},
    {"stages.prune.blocks", integer, 0, 1e6, "0", {}, "", "whole blocks that go first, those that change least"},
    {"stages.prune.iterations", integer, 1, 1000, "1", {}, "", "rounds of cutting and finetune to the aim"},
    {"stages.prune.gate", section, 0, 0, "", {}, "", "what the network must keep on the select split"},
    {"stages.prune.gate.metric_drop", drop, 0, 0, "", {}, "", "a greater drop refuses the stage's network"},
    {"stages.prune.on_refusal", text, 0, 0, "stop", {}, "", "stop, or continue with the network as it was"},
    {"stages.prune.finetune", section, 0, 0, "", {}, "", "train after pruning"},

    {"stages.finetune", section, 0, 0, "", {}, "", "train the model on data.train"},

    {"stages.early_exit", section, 0, 0, "", {}, "", "heads at which sure samples leave"},
    {"stages.early_exit.at", text_list, 0, 0, "", {}, "", "values or nodes that get a head; default: auto, by blocks"},
    {"stages.early_exit.every", integer, 1, 1e6, "", {}, "", "a head behind each so many blocks"},
    {"stages.early_exit.max_drop", drop, 0, 0, "!", {}, "", "how much worse the metric may get on the select split"},
    {"stages.early_exit.on_refusal", text, 0, 0, "stop", {}, "", "stop, or continue with the network as it was"},
    {"stages.early_exit.epochs", integer, 1, 1e6, "20", {}, "", "passes over data.train, for each head"},
    {"stages.early_exit.batch_size", integer, 1, 1e6, "128", {}, "", "samples a gradient is the mean of"},
    {"stages.early_exit.learning_rate", number, kAboveZero, 1e3, "0.01", {}, "", "of Adam, at its highest"},
    {"stages.early_exit.temperature", number, kAboveZero, 1e6, "1", {}, "", "divides the logits of network and head"},
    {"stages.early_exit.alpha", number, 0, 1, "0.5", {}, "", "weight of the network's outputs against the labels"},

    {"stages.transform", section, 0, 0, "", {}, "", ""},
    {"stages.transform.methods", name_list, 0, 0, "!", NameKind::transform, "",
     "in this order; one that makes the coded network worse on the select split is dropped"},
    {"stages.transform.strength",
     number,
     0,
     1,
     "",
     {},
     "",
     "smoothquant: share of the inputs' range that weights take over; searched by default"},
    {"stages.transform.insert_mul",
     boolean,
     0,
     0,
     "true",
     {},
     "",
     "divide by a Mul of its own where nothing before the layers takes the factors in; never for gguf, safetensors"},

    {"stages.calibrate", section, 0, 0, "", {}, "", ""},
    {"stages.calibrate.method", name, 0, 0, "minmax", NameKind::observer, "", "how a range follows from what was seen"},
    {"stages.calibrate.percentile", number, 50, 100, "99.99", {}, "", "for percentile: share kept, in per cent"},

    {"stages.sensitivity", section, 0, 0, "", {}, "", ""},
    {"stages.sensitivity.metric", name, 0, 0, "kl", NameKind::sensitivity_metric, "",
     "the loss of a layer under a scheme"},
    {"stages.sensitivity.curves",
     boolean,
     0,
     0,
     "false",
     {},
     "",
     "measure layers on, off and one after the other, weights and activations apart: sensitivity_curves.json"},

    {"stages.search", section, 0, 0, "", {}, "", ""},
    {"stages.search.schemes", scheme_list, 0, 0, "!", {}, "", "what each layer may become"},
    {"stages.search.solver", name, 0, 0, "ilp", NameKind::solver, "", ""},
    {"stages.search.groups", text, 0, 0, "auto", {}, "", "auto: layers that belong together share a scheme; none"},
    {"stages.search.finalists", integer, 1, 64, "1", {}, "", "answers that are measured before one is taken"},
    {"stages.search.pairs",
     integer,
     0,
     10000,
     "0",
     {},
     "",
     "neighbours of at most 3 bits measured together at most, where sums of losses mislead"},
    {"stages.search.corrections",
     integer,
     0,
     16,
     "0",
     {},
     "",
     "times losses are put right by a coded and measured network and solved again at most"},

    {"stages.quantize", section, 0, 0, "", {}, "", ""},
    {"stages.quantize.method", name, 0, 0, "rtn", NameKind::quantizer, "", "how codes are found"},
    {"stages.quantize.scheme", scheme, 0, 0, "", {}, "", "of every layer, when no search chooses"},
    {"stages.quantize.assignment", path, 0, 0, "", {}, "", "schemes by layer: a search/assignment.json"},
    {"stages.quantize.bits", integer, 2, 8, "", {}, "", "of weights: scheme spelled out"},
    {"stages.quantize.activation_bits", integer, 8, 16, "", {}, "", "8, or 16 for float: scheme spelled out"},
    {"stages.quantize.group_size", integer, 1, 65536, "", {}, "", "inputs a weight scale covers: scheme spelled out"},
    {"stages.quantize.targets",
     text_list,
     0,
     0,
     "",
     {},
     "",
     "layers to quantize: addresses, re: patterns; default: all"},
    {"stages.quantize.ignore", text_list, 0, 0, "", {}, "", "layers to leave in float: addresses or re: patterns"},
    {"stages.quantize.reduce_range",
     boolean,
     0,
     0,
     "false",
     {},
     "",
     "8-bit weights of 7 bits: exact in ONNX Runtime's kernels on processors without VNNI"},
    {"stages.quantize.bias_correction", boolean, 0, 0, "false", {}, "", "take the mean rounding error out of the bias"},
    {"stages.quantize.damp_percent", number, kAboveZero, 100, "1", {}, "", "gptq: share of the mean diagonal added"},
    {"stages.quantize.steps", integer, 1, 1e6, "200", {}, "", "signround: steps of tuning a block"},
    {"stages.quantize.low_rank", integer, 0, 4096, "0", {}, "", "rank of fp16 corrections beside codes; 0: none"},
    {"stages.quantize.revert",
     integer,
     0,
     1000,
     "24",
     {},
     "",
     "networks measured at most to come back within budget.metric_drop by more precise layers; 0: none"},

    {"stages.qat", section, 0, 0, "", {}, "", "train with quantization in the loop"},
    {"stages.qat.ranges",
     text,
     0,
     0,
     "fixed",
     {},
     "",
     "of activations: fixed, learned (with rounding and clipping), clipped (by what lies outside)"},

    {"stages.export", section, 0, 0, "", {}, "", ""},
    {"stages.export.formats", name_list, 0, 0, "!", NameKind::format, "", "files to write"},

    {"stages.validate", section, 0, 0, "", {}, "", ""},
    {"stages.validate.against", name_list, 0, 0, "", NameKind::oracle, "",
     "programs that must agree on the written files"},
    {"stages.validate.gate", section, 0, 0, "", {}, "", "what the result must keep"},
    {"stages.validate.gate.metric_drop", drop, 0, 0, "", {}, "", "a greater drop refuses the result"},
};

// Keys of every section that trains, behind its own path.
const KeyRow kTrainRows[] = {
    {"teacher",
     path,
     0,
     0,
     "",
     {},
     "",
     "model whose outputs are learned beside data.train's labels, or an .npz of its recorded ones"},
    {"temperature", number, kAboveZero, 1e6, "4", {}, "", "divides the logits of teacher and student"},
    {"alpha", number, 0, 1, "0.9", {}, "", "weight of the teacher against the labels"},
    {"label_smoothing", number, 0, 0.99, "0", {}, "", "share of a label's mass spread over all classes"},
    {"epochs", integer, 1, 1e6, "1", {}, "", "passes over data.train"},
    {"batch_size", integer, 1, 1e6, "128", {}, "", "samples a gradient is the mean of"},
    {"accumulate", integer, 1, 1e6, "1", {}, "", "batches a step is the mean of"},
    {"optimizer", text, 0, 0, "sgd", {}, "", "sgd (Nesterov), adam or adamw"},
    {"learning_rate", number, kAboveZero, 1e3, "0.02", {}, "", "at its highest"},
    {"schedule", text, 0, 0, "cosine", {}, "", "cosine (down to 0), step (a tenth after 1/2 and 3/4) or constant"},
    {"warmup", number, 0, 0.99, "0", {}, "", "share of the steps in which the learning rate rises"},
    {"momentum", number, 0, 0.9999, "0.9", {}, "", "of sgd"},
    {"weight_decay", number, 0, 1e3, "0.0001", {}, "", "of weights of two dimensions or more"},
    {"clip_norm", number, 0, kAny, "0", {}, "", "greatest norm of the gradient; 0 = any"},
    {"ema", number, 0, 0.999999, "0", {}, "", "decay of an average of the weights that is kept instead; 0 = none"},
    {"patience", integer, 0, 1e6, "0", {}, "", "epochs without gain on the select split that end it; 0 = all run"},
    {"features", text_list, 0, 0, "", {}, "", "inner values held to the teacher's: \"student = teacher\", or auto"},
    {"feature_loss",
     text,
     0,
     0,
     "mse",
     {},
     "",
     "mse (of values), attention (of their energy over places) or "
     "attention_probabilities (of Attention)"},
    {"feature_weight", number, 0, 1e6, "1", {}, "", "of features beside the other losses"},
    {"lora_rank", integer, 0, 65536, "0", {}, "", "train low-rank differences of products, merged at the end; 0: all"},
    {"batch_norm", boolean, 0, 0, "true", {}, "", "train through batch normalizations, then fold them again"},
    {"cut_teacher", boolean, 0, 0, "false", {}, "", "leave out the teacher's classes behind the student's"},
    {"checkpoint_blocks", boolean, 0, 0, "false", {}, "", "compute blocks again on the way back: less memory"},
    {"autocast",
     text,
     0,
     0,
     "none",
     {},
     "",
     "bf16: products of the way forth in bfloat16 where the processor has it; forced_bf16: anywhere"},
};
// Keys of every stage that changes the network.
const KeyRow kGateRows[] = {
    {"gate", section, 0, 0, "", {}, "", "what the network must keep on the select split"},
    {"gate.metric_drop", drop, 0, 0, "", {}, "", "a greater drop refuses the stage's network"},
    {"on_refusal", text, 0, 0, "stop", {}, "", "stop, or continue with the network as it was"},
};
struct TrainSection {
  std::string_view path;
  bool has_gate;
  std::string_view learning_rate = "0.02";
};
constexpr TrainSection kTrainSections[] = {
    {"stages.distill", true},
    {"stages.prune.finetune", false},
    {"stages.finetune", true},
    {"stages.qat", true, "0.001"},  // codes are near where they belong
};

// The rows as they stand above, each training section followed by its keys.
std::vector<KeyRow> all_rows() {
  static std::deque<std::string> paths;  // of the rows made here
  std::vector<KeyRow> rows;
  for (const KeyRow& row : kRows) {
    rows.push_back(row);
    const auto trains = std::ranges::find(kTrainSections, row.path, &TrainSection::path);
    if (trains == std::end(kTrainSections)) continue;
    const auto add = [&](KeyRow key) {
      if (key.path == "learning_rate") key.fallback = trains->learning_rate;
      key.path = paths.emplace_back(std::string(trains->path) + "." + std::string(key.path));
      rows.push_back(key);
    };
    for (const KeyRow& key : kTrainRows) add(key);
    for (const KeyRow& key : kGateRows) {
      if (trains->has_gate) add(key);
    }
  }
  return rows;
}

constexpr std::string_view kSplits[] = {"train", "calibrate", "score", "select", "evaluate"};

// "data.train.path" against "data.*.path".
bool matches(std::string_view row, std::string_view path) {
  const std::size_t star = row.find('*');
  if (star == std::string_view::npos) return row == path;
  if (!path.starts_with(row.substr(0, star))) return false;
  const std::string_view tail = row.substr(star + 1);
  for (const std::string_view split : kSplits) {
    if (path.substr(star).starts_with(split) && path.substr(star + split.size()) == tail) return true;
  }
  return false;
}

}  // namespace

std::span<const KeyRow> key_rows() {
  static const std::vector<KeyRow> rows = all_rows();
  return rows;
}

const KeyRow* find_row(std::string_view path) {
  for (const KeyRow& row : key_rows()) {
    if (matches(row.path, path)) return &row;
  }
  return nullptr;
}

}  // namespace ctk::pipeline

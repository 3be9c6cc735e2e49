#include "compress/config.h"

#include <algorithm>
#include <filesystem>

#include "compress/assignment.h"
#include "compress/config_schema.h"
#include "compress/summary.h"
#include "compress/target.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/printable.h"

namespace ctk::pipeline {
namespace {

namespace fs = std::filesystem;

// Fills the structs from checked values; every value is of its row's type by now.
class Binder {
 public:
  Binder(const CheckedValues& values, std::string base_folder) : values_(values), base_(std::move(base_folder)) {}

  // Leaves the target alone when the key is absent.
  template <class T, class Into>
  void set(const std::string& path, Into& into) const {
    if (const T* value = values_.get<T>(path)) into = static_cast<Into>(*value);
  }
  template <class T>
  void set(const std::string& path, std::optional<T>& into) const {
    if (const T* value = values_.get<T>(path)) into = *value;
  }
  void set_text(const std::string& path, std::string& into) const { set<std::string>(path, into); }

  // Paths of the file start at its folder, paths of the command line where the user stands.
  void set_path(const std::string& path, std::string& into) const {
    const std::string* text = values_.get<std::string>(path);
    if (text == nullptr) return;
    const bool is_override = values_.values.at(path).where.starts_with("--set");
    const fs::path given(*text);
    into = (given.is_absolute() || is_override ? given : fs::path(base_) / given).lexically_normal().string();
  }

  std::optional<SourceConfig> source(const std::string& split) const {
    const std::string at = "data." + split;
    if (!values_.has_section(at)) return {};
    SourceConfig source;
    set_path(at + ".path", source.spec.path);
    set_text(at + ".split", source.spec.split);
    if (const PairList* inputs = values_.get<PairList>(at + ".inputs")) source.spec.inputs = *inputs;
    set_text(at + ".labels", source.spec.labels);
    set(at + ".samples", source.spec.samples);
    set<std::int64_t>(at + ".skip", source.spec.skip);
    set(at + ".scale", source.spec.scale);
    set(at + ".zero_point", source.spec.zero_point);
    set<std::vector<double>>(at + ".mean", source.spec.mean);
    set<std::vector<double>>(at + ".std", source.spec.std);
    set(at + ".resize", source.spec.resize);
    set(at + ".crop", source.spec.crop);
    const std::string* on_bad_sample = values_.get<std::string>(at + ".on_bad_sample");
    if (on_bad_sample != nullptr && *on_bad_sample == "skip") source.spec.on_bad_sample = data::BadSample::skip;
    set_text(at + ".metric", source.spec.metric);
    set<bool>(at + ".augment.flip", source.flip);
    set<std::int64_t>(at + ".augment.shift", source.shift);
    set<std::int64_t>(at + ".augment.cutout", source.cutout);
    set<double>(at + ".augment.mixup", source.mixup);
    source.spec.text = text(at);
    return source;
  }

  // A source with a window's length, or of lines, is text. Its tokenizer is the model's unless it names another.
  std::optional<data::TextSpec> text(const std::string& at) const {
    if (values_.get<std::int64_t>(at + ".context") == nullptr) return {};
    data::TextSpec text;
    set<std::int64_t>(at + ".context", text.context);
    set(at + ".windows", text.windows);
    set<bool>(at + ".lines", text.lines);
    set<bool>(at + ".pairs", text.pairs);
    text.special_tokens = text.pairs;
    set<bool>(at + ".special_tokens", text.special_tokens);
    set<bool>(at + ".bos", text.bos);
    set_path("model", text.tokenizer_path);
    set_path(at + ".tokenizer", text.tokenizer_path);
    return text;
  }

  GateConfig gate(const std::string& at) const {
    GateConfig gate;
    set(at + ".gate.metric_drop", gate.metric_drop);
    const std::string* refusal = values_.get<std::string>(at + ".on_refusal");
    gate.continues = refusal != nullptr && *refusal == "continue";
    return gate;
  }

  std::optional<TrainConfig> train(const std::string& at) const {
    if (!values_.has_section(at)) return {};
    TrainConfig train;
    set_path(at + ".teacher", train.teacher);
    const std::pair<const char*, double*> numbers[] = {{"temperature", &train.temperature},
                                                       {"alpha", &train.alpha},
                                                       {"label_smoothing", &train.label_smoothing},
                                                       {"learning_rate", &train.learning_rate},
                                                       {"warmup", &train.warmup},
                                                       {"momentum", &train.momentum},
                                                       {"weight_decay", &train.weight_decay},
                                                       {"clip_norm", &train.clip_norm},
                                                       {"ema", &train.ema}};
    for (const auto& [key, into] : numbers) set<double>(at + "." + key, *into);
    const std::pair<const char*, std::int64_t*> counts[] = {{"epochs", &train.epochs},
                                                            {"batch_size", &train.batch_size},
                                                            {"accumulate", &train.accumulate},
                                                            {"patience", &train.patience}};
    for (const auto& [key, into] : counts) set<std::int64_t>(at + "." + key, *into);
    set_text(at + ".optimizer", train.optimizer);
    set_text(at + ".schedule", train.schedule);
    set<bool>(at + ".batch_norm", train.batch_norm);
    train.gate = gate(at);
    return train;
  }

  void quantize(PipelineConfig& config) const {
    if (!values_.has_section("stages.quantize")) return;
    QuantizeConfig quantize;
    const std::string at = "stages.quantize";
    set_text(at + ".method", quantize.method);
    if (const std::string* scheme = values_.get<std::string>(at + ".scheme")) quantize.scheme = *parse_scheme(*scheme);
    set_path(at + ".assignment", quantize.assignment);
    if (const std::int64_t* bits = values_.get<std::int64_t>(at + ".bits")) {
      QuantScheme scheme{static_cast<int>(*bits), 8, Granularity::per_channel, 0};
      set<std::int64_t>(at + ".activation_bits", scheme.activation_bits);
      set<std::int64_t>(at + ".group_size", scheme.group_size);
      if (scheme.group_size > 0) scheme.granularity = Granularity::per_group;
      quantize.scheme = scheme;
    }
    set<std::vector<std::string>>(at + ".targets", quantize.targets);
    set<std::vector<std::string>>(at + ".ignore", quantize.ignore);
    set<bool>(at + ".bias_correction", quantize.bias_correction);
    set<bool>(at + ".reduce_range", quantize.reduce_range);
    set<double>(at + ".damp_percent", quantize.damp_percent);
    set<std::int64_t>(at + ".low_rank", quantize.low_rank);
    set<std::int64_t>(at + ".revert", quantize.revert);
    config.quantize = std::move(quantize);
  }

  void stages(PipelineConfig& config) const {
    config.distill = train("stages.distill");
    config.finetune = train("stages.finetune");
    config.qat = train("stages.qat");
    if (values_.has_section("stages.prune")) {
      PruneConfig prune;
      set_text("stages.prune.method", prune.method);
      set("stages.prune.macs", prune.macs);
      set("stages.prune.pruning_ratio", prune.pruning_ratio);
      set<double>("stages.prune.max_ratio", prune.max_ratio);
      set_text("stages.prune.ratios", prune.ratios);
      const std::string* round_to = values_.get<std::string>("stages.prune.round_to");
      if (round_to != nullptr && *round_to != "auto") prune.round_to = std::stoll(*round_to);
      set<std::vector<std::string>>("stages.prune.targets", prune.targets);
      set<std::vector<std::string>>("stages.prune.ignore", prune.ignore);
      set("stages.prune.repair", prune.repair);
      prune.finetune = train("stages.prune.finetune");
      prune.gate = gate("stages.prune");
      config.prune = std::move(prune);
    }
    if (values_.has_section("stages.transform")) {
      config.transform.emplace();
      set<std::vector<std::string>>("stages.transform.methods", config.transform->methods);
      set("stages.transform.strength", config.transform->strength);
      set<bool>("stages.transform.insert_mul", config.transform->insert_mul);
    }
    if (values_.has_section("stages.calibrate")) {
      config.calibrate.emplace();
      set_text("stages.calibrate.method", config.calibrate->method);
      set<double>("stages.calibrate.percentile", config.calibrate->percentile);
    }
    if (values_.has_section("stages.sensitivity")) {
      config.sensitivity.emplace();
      set_text("stages.sensitivity.metric", config.sensitivity->metric);
      set<bool>("stages.sensitivity.curves", config.sensitivity->curves);
    }
    if (values_.has_section("stages.search")) {
      config.search.emplace();
      for (const std::string& text : *values_.get<std::vector<std::string>>("stages.search.schemes")) {
        config.search->schemes.push_back(*parse_scheme(text));
      }
      set_text("stages.search.solver", config.search->solver);
      set_text("stages.search.groups", config.search->groups);
      set<std::int64_t>("stages.search.finalists", config.search->finalists);
      set<std::int64_t>("stages.search.pairs", config.search->pairs);
      set<std::int64_t>("stages.search.corrections", config.search->corrections);
    }
    quantize(config);
    if (values_.has_section("stages.export")) {
      config.exports.emplace();
      set<std::vector<std::string>>("stages.export.formats", config.exports->formats);
    }
    if (values_.has_section("stages.validate")) {
      config.validate.emplace();
      set<std::vector<std::string>>("stages.validate.against", config.validate->against);
      set("stages.validate.gate.metric_drop", config.validate->gate_metric_drop);
    }
  }

  PipelineConfig run() const {
    PipelineConfig config;
    set_path("model", config.model);
    set_path("output", config.output);
    set<std::int64_t>("seed", config.seed);
    set_text("target", config.target);
    if (find_name(NameKind::target, config.target) == nullptr) set_path("target", config.target);
    set<std::int64_t>("threads", config.threads);
    config.train = source("train");
    config.calibrate_data = source("calibrate");
    config.score = source("score");
    config.select = source("select");
    config.evaluate = source("evaluate");
    set("budget.size", config.budget.size);
    set("budget.latency", config.budget.latency);
    set("budget.latency.decode", config.budget.latency_decode);
    set("budget.latency.prefill", config.budget.latency_prefill);
    set("budget.peak_memory", config.budget.peak_memory);
    if (const double* bits = values_.get<double>("budget.bits")) config.budget.bits = Limit{*bits, false};
    set("budget.metric_drop", config.budget.metric_drop);
    set_text("budget.minimize", config.budget.minimize);
    config.stages = values_.stages;
    stages(config);
    config.unavailable = values_.unavailable;
    for (const auto& [path, checked] : values_.values) config.canonical[path] = canonical_text(checked.value);
    std::string order;
    for (const std::string& stage : values_.stages) order += (order.empty() ? "" : ",") + stage;
    config.canonical["stages"] = order;
    return config;
  }

 private:
  const CheckedValues& values_;
  std::string base_;
};

Error joined(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) text += (text.empty() ? "" : "\n") + to_string(problem);
  return config_error(std::move(text));
}

// The schemes of stages.quantize.assignment. Whether the model has such layers is seen when it is read.
Status read_assignment(PipelineConfig& config) {
  if (!config.quantize || config.quantize->assignment.empty()) return {};
  CTK_TRY(config.quantize->schemes, read_schemes(config.quantize->assignment));
  for (const auto& [layer, scheme] : config.quantize->schemes) {
    if (!scheme.is_integer_activation() || config.has_stage("calibrate")) continue;
    return config_error(config.file_name +
                        ": stages.quantize.assignment: expected a stage \"calibrate\" before schemes " +
                        "with integer activations, found \"" + to_string(scheme) + "\" of \"" + printable(layer) +
                        "\" in " + config.quantize->assignment + ". Add \"- calibrate: {method: mse}\"");
  }
  return {};
}

// What a device card allows: its schemes, and its threads where the file leaves them open.
Status apply_target(PipelineConfig& config) {
  if (find_name(NameKind::target, config.target) != nullptr) return {};
  CTK_TRY(const TargetCard card, load_target(config.target));
  if (config.threads == 0) config.threads = card.threads;
  std::vector<QuantScheme> wanted = config.search ? config.search->schemes : std::vector<QuantScheme>{};
  if (config.quantize && config.quantize->scheme) wanted.push_back(*config.quantize->scheme);
  if (config.quantize && !config.quantize->schemes.empty()) wanted = allowed_schemes(config);
  for (const QuantScheme& scheme : wanted) {
    if (card.schemes.empty() || std::ranges::count(card.schemes, scheme) != 0) continue;
    return config_error(config.file_name + ": target: expected schemes that \"" + card.name +
                        "\" has kernels for, found \"" + to_string(scheme) + "\". See schemes in " + config.target +
                        ".");
  }
  return {};
}

bool is_at_or_below(std::string_view path, std::string_view section) {
  return path.starts_with(section) && (path.size() == section.size() || path[section.size()] == '.');
}

}  // namespace

std::string to_string(const Problem& problem) {
  // "--set stages.quantize.scheme" says the path already, without positions.
  std::string plain;
  bool is_inside = false;
  for (const char letter : problem.path) {
    is_inside = letter == '[' || (is_inside && letter != ']');
    if (!is_inside && letter != ']') plain += letter;
  }
  const bool is_told = problem.path.empty() || problem.where == "--set " + plain;
  return problem.where + ": " + (is_told ? "" : problem.path + ": ") + problem.message;
}

bool PipelineConfig::has_stage(std::string_view name) const {
  return std::ranges::count(stages, name) != 0;
}

bool PipelineConfig::changes_network() const {
  return std::ranges::any_of(stages, pipeline::changes_network);
}

bool PipelineConfig::compares_on_select() const {
  const bool holds_floor = quantize && budget.metric_drop && (quantize->revert > 0 || !budget.minimize.empty());
  return changes_network() || has_stage("qat") || select ||
         (search && (search->finalists > 1 || search->corrections > 0)) || holds_floor;
}

std::string PipelineConfig::fingerprint() const {
  Fingerprint print;
  for (const auto& [path, text] : canonical) {
    if (path != "output") print.add(path).add(text);
  }
  return print.hex();
}

std::string PipelineConfig::fingerprint_of(const std::vector<std::string>& paths) const {
  Fingerprint print;
  for (const auto& [path, text] : canonical) {
    const auto covers = [&path = path](const std::string& section) { return is_at_or_below(path, section); };
    if (std::ranges::any_of(paths, covers)) print.add(path).add(text);
  }
  return print.hex();
}

Result<PipelineConfig> parse_config_text(const std::string& yaml_text, const std::string& file_name,
                                         const std::string& base_folder, const std::vector<std::string>& overrides) {
  CTK_TRY(YamlNode root, parse_yaml(yaml_text, file_name));
  std::vector<Problem> override_problems;
  if (root.kind != YamlNode::Kind::null) {
    for (const std::string& assignment : overrides) apply_override(root, assignment, override_problems);
  }
  CheckedValues values = check_tree(root, file_name);
  values.problems.insert(values.problems.end(), override_problems.begin(), override_problems.end());
  if (root.kind == YamlNode::Kind::map) check_rules(values, file_name);
  if (!values.problems.empty()) return joined(values.problems);
  PipelineConfig config = Binder(values, base_folder).run();
  config.file_name = file_name;
  CTK_CHECK(read_assignment(config));
  CTK_CHECK(apply_target(config));
  return config;
}

Result<PipelineConfig> load_config(const std::string& path, const std::vector<std::string>& overrides) {
  CTK_TRY(const std::string text, read_text(path));
  return parse_config_text(text, path, fs::path(path).parent_path().string(), overrides);
}

Status require_available(const PipelineConfig& config) {
  if (config.unavailable.empty()) return {};
  return joined(config.unavailable);
}

std::string canonical_text(const KeyValue& value) {
  struct Writer {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return to_text(number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const Limit& limit) const {
      return limit.is_share ? to_text(limit, "") : to_text(limit.value);
    }
    std::string operator()(const MetricDrop& drop) const { return to_text(drop); }
    std::string operator()(const std::vector<std::string>& list) const {
      std::string text = "[";
      for (const std::string& item : list) text += (text.size() > 1 ? ", " : "") + item;
      return text + "]";
    }
    std::string operator()(const std::vector<double>& list) const {
      std::string text = "[";
      for (const double item : list) text += (text.size() > 1 ? ", " : "") + to_text(item);
      return text + "]";
    }
    std::string operator()(const PairList& pairs) const {
      std::string text = "{";
      for (const auto& [key, item] : pairs) text += (text.size() > 1 ? ", " : "") + key + ": " + item;
      return text + "}";
    }
  };
  return std::visit(Writer{}, value);
}

}  // namespace ctk::pipeline

// Rules of the pipeline file that need more than one key.
#include <algorithm>

#include "compress/config_rules_stages.h"
#include "compress/config_rules_teacher.h"
#include "compress/config_schema.h"
#include "compress/prune/importance.h"
#include "compress/prune/widths.h"
#include "compress/quantize/quantizers.h"
#include "compress/quantize/tune_blocks.h"
#include "compress/transform_rules.h"

namespace ctk::pipeline {
namespace {

class Rules {
 public:
  Rules(CheckedValues& values, const std::string& file_name) : values_(values), file_name_(file_name) {}

  void run() {
    stage_order();
    data_of_stages();
    select_split();
    schemes();
    budget();
    calibrate();
    prune();
    check_teachers(values_,
                   [this](const std::string& path, std::string message) { problem(path, std::move(message)); });
    for (const auto& [path, message] : transform_problems(values_)) problem(path, message);
    for (const auto& [path, message] : stage_problems(values_)) problem(path, message);
    text();
    idle_options();
  }

 private:
  bool has_stage(std::string_view name) const { return std::ranges::count(values_.stages, name) != 0; }

  void problem(const std::string& path, std::string message) {
    Place place{file_name_, path};
    if (const auto found = values_.values.find(path); found != values_.values.end() && !found->second.where.empty()) {
      place = {found->second.where, found->second.shown_path};
    } else if (const auto section = values_.sections.find(path); section != values_.sections.end()) {
      place = {section->second.first, section->second.second};
    }
    values_.problems.push_back({place.where, place.path, std::move(message)});
  }

  void stage_order() {
    std::size_t latest = 0;
    std::string latest_name;
    for (const std::string& name : values_.stages) {
      const auto known = names(NameKind::stage);
      const std::size_t rank = static_cast<std::size_t>(find_name(NameKind::stage, name) - known.data());
      if (rank < latest) {
        problem("stages." + name, "expected \"" + name + "\" before \"" + latest_name +
                                      "\", found it after. "
                                      "The order is distill, prune, finetune, early_exit, transform, calibrate, "
                                      "sensitivity, search, quantize, "
                                      "qat, export, validate.");
      } else {
        latest = rank;
        latest_name = name;
      }
    }
    if (has_stage("qat") && !has_stage("quantize")) {
      problem("stages.qat",
              "expected a stage \"quantize\" before it, found none. Add \"- quantize: {scheme: w8a8_c}\": "
              "its codes are what is trained.");
    }
    if (has_stage("search") && !has_stage("sensitivity")) {
      problem("stages.search",
              "expected a stage \"sensitivity\" before it, found none. Add \"- sensitivity: "
              "{metric: kl}\": the search adds up its losses.");
    }
    if (has_stage("sensitivity") && !has_stage("search") && !has_stage("quantize")) {
      problem("stages.sensitivity",
              "expected a stage \"search\" or \"quantize\" that says which schemes to measure, "
              "found neither. Add one of them.");
    }
  }

  void need_data(const std::string& stage, const std::string& split, bool train_will_do) {
    if (!has_stage(stage) || values_.has_section("data." + split)) return;
    if (train_will_do && values_.has_section("data.train")) return;
    problem("stages." + stage, "expected data." + split + ", found none. Add \"" + split + ": {path: ...}\" to data.");
  }

  // A split that nothing reads would be read, kept apart from the others, and never used.
  void select_split() {
    if (!values_.has_section("data.select")) return;
    const std::int64_t* finalists = values_.get<std::int64_t>("stages.search.finalists");
    const std::int64_t* corrections = values_.get<std::int64_t>("stages.search.corrections");
    if ((finalists != nullptr && *finalists > 1) || (corrections != nullptr && *corrections > 0)) return;
    if (has_stage("qat") || std::ranges::any_of(values_.stages, changes_network)) return;
    const std::string* method = values_.get<std::string>("stages.quantize.method");
    if (method != nullptr && quantization::needs_inputs(*method)) return;
    if (has_stage("quantize") && values_.has("budget.metric_drop")) return;  // the floor is held on it
    problem("data.select",
            "expected a stage that compares on it (distill, prune, finetune, early_exit, transform, qat, search with "
            "finalists "
            "above 1 or corrections, "
            "quantize by a method that looks at inputs or beside budget.metric_drop), "
            "found none. Remove this split.");
  }

  void data_of_stages() {
    need_data("calibrate", "calibrate", true);
    need_data("transform", "calibrate", true);
    need_data("sensitivity", "calibrate", true);
    need_data("validate", "evaluate", false);
    const std::string* method = values_.get<std::string>("stages.quantize.method");
    const std::int64_t* rank = values_.get<std::int64_t>("stages.quantize.low_rank");
    const bool corrects = rank != nullptr && *rank > 0;
    if (corrects || (method != nullptr && quantization::needs_inputs(*method)))
      need_data("quantize", "calibrate", true);
    for (const char* stage : {"distill", "finetune", "early_exit", "qat"}) {
      if (find_row(std::string("stages.") + stage)->needs.empty()) need_data(stage, "train", false);
    }
  }

  // Schemes of `quantize`, whichever way they are given.
  void schemes() {
    if (has_stage("quantize")) {
      const bool is_spelled_out = values_.has("stages.quantize.bits") || values_.has("stages.quantize.group_size") ||
                                  values_.has("stages.quantize.activation_bits");
      const bool has_file = values_.has("stages.quantize.assignment");
      const bool has_scheme = values_.has("stages.quantize.scheme");
      if (has_file && (has_scheme || is_spelled_out || has_stage("search"))) {
        problem("stages.quantize.assignment",
                std::string("expected schemes from one place, found ") +
                    (has_stage("search") ? "a stage \"search\"" : "a scheme for all layers") +
                    " beside the file. Keep one.");
      } else if (has_scheme && is_spelled_out) {
        problem("stages.quantize.scheme",
                "expected either scheme or bits, activation_bits and group_size, found both. "
                "Keep one.");
      } else if (is_spelled_out && !values_.has("stages.quantize.bits")) {
        problem("stages.quantize",
                "expected \"bits\" beside group_size or activation_bits, found none. Add \"bits: 4\", "
                "or write a scheme like w4a8_g32.");
      } else if (has_stage("search") && (has_scheme || is_spelled_out)) {
        problem(has_scheme ? "stages.quantize.scheme" : "stages.quantize.bits",
                "expected no scheme here, since \"search\" chooses it. Remove this key or the stage \"search\".");
      } else if (!has_stage("search") && !has_file && !has_scheme && !is_spelled_out &&
                 !has_problem_below("stages.quantize")) {
        problem("stages.quantize", "expected a scheme, found none. Add \"scheme: w8a8_c\" or a stage \"search\".");
      }
      const std::int64_t* bits = values_.get<std::int64_t>("stages.quantize.activation_bits");
      if (bits != nullptr && *bits != 8 && *bits != 16) {
        problem("stages.quantize.activation_bits",
                "expected 8, or 16 for float, found \"" + std::to_string(*bits) + "\". Choose one of them.");
      }
    }
    if (has_stage("calibrate")) return;
    for (const std::string path : {"stages.search.schemes", "stages.quantize.scheme"}) {
      std::vector<std::string> list;
      if (const auto* texts = values_.get<std::vector<std::string>>(path)) list = *texts;
      if (const auto* text = values_.get<std::string>(path)) list = {*text};
      for (const std::string& text : list) {
        const Result<QuantScheme> scheme = parse_scheme(text);
        if (scheme && scheme->is_integer_activation()) {
          problem(path, "expected a stage \"calibrate\" before a scheme with integer activations, found \"" + text +
                            "\" without one. Add \"- calibrate: {method: mse}\".");
          break;
        }
      }
    }
  }

  // True when a key of this section was given but found wrong: what is absent may be that key.
  bool has_problem_below(const std::string& path) const {
    const auto section = values_.sections.find(path);
    if (section == values_.sections.end()) return false;
    return std::ranges::any_of(values_.problems, [&](const Problem& problem) {
      return problem.path.starts_with(section->second.second + ".");
    });
  }

  void budget() {
    const MetricDrop* allowed = values_.get<MetricDrop>("budget.metric_drop");
    const MetricDrop* gate = values_.get<MetricDrop>("stages.validate.gate.metric_drop");
    if (allowed != nullptr && gate != nullptr && allowed->is_relative == gate->is_relative &&
        gate->value > allowed->value) {
      problem("stages.validate.gate.metric_drop",
              "expected at most budget.metric_drop (" + to_text(*allowed) + "), found \"" + to_text(*gate) +
                  "\": the gate would pass what the budget forbids. Make them equal.");
    }
    for (const std::string key : {"size", "latency", "peak_memory"}) {
      const Limit* limit = values_.get<Limit>("budget." + key);
      if (limit != nullptr && key != "latency" && !limit->is_share && limit->value < 1) {
        problem("budget." + key, "expected at least 1 B, found \"" + to_text(*limit, "B") + "\". Raise it.");
      }
    }
    for (const char* key : {"budget.metric_drop", "stages.validate.gate.metric_drop"}) drop_of_metric(key);
    need_stage("size", {"search", "export"}, "export: {formats: [bundle]}");
    need_stage("latency", {"search", "validate"}, "validate: {}");
    need_stage("latency.decode", {"search"}, "search: {schemes: [w8a16_g32, w4a16_g32]}");
    need_stage("latency.prefill", {"search"}, "search: {schemes: [w8a16_g32, w4a16_g32]}");
    need_stage("peak_memory", {"validate"}, "validate: {}");
    need_stage("metric_drop", {"validate"}, "validate: {}");
    need_stage("bits", {"search", "quantize"}, "quantize: {scheme: w4a8_c}");
    minimize(allowed != nullptr);
    if (allowed != nullptr && !values_.has_section("data.evaluate")) {
      problem("budget.metric_drop",
              "expected data.evaluate to measure it on, found none. Add \"evaluate: {path: ...}\" "
              "to data.");
    }
  }

  // Pairs are measured in KL, which their scores must be in too.
  // What is made small needs somebody to choose, and a floor that keeps the network of use.
  void minimize(bool has_floor) {
    const std::string* aim = values_.get<std::string>("budget.minimize");
    if (aim == nullptr) return;
    if (!has_stage("search"))
      problem("budget.minimize",
              "expected a stage \"search\" that chooses, found none. Add \"- search: {schemes: "
              "[w8a8_c, w4a8_c]}\", or remove this key.");
    if (!has_floor && !has_problem_below("budget"))
      problem("budget.minimize",
              "expected budget.metric_drop beside it, found none: nothing would keep the network of "
              "use. Add \"metric_drop: 1 %\".");
    if (values_.has("budget." + *aim))
      problem("budget.minimize", "expected another budget than one with a limit, found \"" + *aim +
                                     "\" as both. Remove the limit or minimize.");
  }

  // The float network against itself is 0 for kl and mse and infinite for sqnr_db.
  void drop_of_metric(const std::string& key) {
    const MetricDrop* drop = values_.get<MetricDrop>(key);
    const std::string* metric = values_.get<std::string>("data.evaluate.metric");
    if (drop == nullptr || metric == nullptr) return;
    if (*metric == "sqnr_db") {
      problem(key,
              "expected a metric that can drop, found \"sqnr_db\", which is infinite for the float network itself. "
              "Set data.evaluate.metric to agreement, kl or mse.");
    } else if (drop->is_relative && (*metric == "kl" || *metric == "mse")) {
      problem(key, "expected a drop in points, since " + *metric + " has a baseline of 0 (the float network itself), " +
                       "found \"" + to_text(*drop) + "\". Use points, an absolute limit: \"0.1 pt\".");
    }
  }

  // A budget that no stage predicts or measures would be passed over in silence.
  void need_stage(const std::string& budget, std::vector<std::string_view> any_of, const std::string& remedy) {
    const std::string key = "budget." + budget;
    if (!values_.has(key)) return;
    if (std::ranges::any_of(any_of, [this](std::string_view stage) { return has_stage(stage); })) return;
    std::string list;
    for (const std::string_view stage : any_of) list += (list.empty() ? "\"" : " or \"") + std::string(stage) + "\"";
    problem(key, "expected a stage " + list + " that measures it, found none. Add \"- " + remedy +
                     "\" to stages, or remove the budget.");
  }

  // Half of the elements outside on either side leaves no range.
  void calibrate() {
    const double* share = values_.get<double>("stages.calibrate.percentile");
    if (share != nullptr && *share <= 50) {
      problem("stages.calibrate.percentile",
              "expected a number above 50, found \"" + to_text(*share) + "\". Raise it.");
    }
  }

  void prune() {
    if (values_.has("stages.prune.macs") && values_.has("stages.prune.pruning_ratio")) {
      problem("stages.prune.pruning_ratio", "expected either macs or pruning_ratio, found both. Keep one.");
    }
    if (!has_stage("prune")) return;
    const std::int64_t* blocks = values_.get<std::int64_t>("stages.prune.blocks");
    const std::int64_t* rounds = values_.get<std::int64_t>("stages.prune.iterations");
    const bool has_aim = values_.has("stages.prune.macs") || values_.has("stages.prune.pruning_ratio");
    const std::string* shared = values_.get<std::string>("stages.prune.ratios");
    const bool is_joint = shared != nullptr && *shared == "joint";
    const bool has_latency = values_.has("stages.prune.latency"), cuts_channels = has_aim || has_latency || is_joint;
    if (has_latency && has_aim)
      problem("stages.prune.latency", "expected one aim, found macs or pruning_ratio beside it. Keep one.");
    if (!cuts_channels && (blocks == nullptr || *blocks == 0) && !has_problem_below("stages.prune")) {
      problem("stages.prune",
              "expected macs (share kept), pruning_ratio (share of channels cut), latency or blocks (how many go), "
              "found none. Add "
              "\"macs: 0.7\".");
    }
    if (rounds != nullptr && *rounds > 1 && (!cuts_channels || !values_.has_section("stages.prune.finetune"))) {
      problem("stages.prune.iterations",
              "expected macs or pruning_ratio, and finetune, beside it: rounds cut channels and train, found \"" +
                  std::to_string(*rounds) + "\" without. Add \"finetune: {epochs: 1}\", or remove this key.");
    }
    if (blocks != nullptr && *blocks > 0) need_data("prune", "calibrate", true);
    // With the whole of a layer cut there is no network left.
    for (const std::string key : {"stages.prune.pruning_ratio", "stages.prune.max_ratio"}) {
      const double* ratio = values_.get<double>(key);
      if (ratio != nullptr && *ratio >= 1)
        problem(key, "expected a share below 1, since no layer can lose all its channels, found \"" + to_text(*ratio) +
                         "\". Lower it.");
    }
    const std::string* method = values_.get<std::string>("stages.prune.method");
    const std::string* ratios = values_.get<std::string>("stages.prune.ratios");
    const bool* repair = values_.get<bool>("stages.prune.repair");
    if (ratios != nullptr && pruning::needs_curves(*ratios))
      need_data("prune", "calibrate", true);
    else if (repair != nullptr && *repair)
      need_data("prune", "calibrate", true);
    else if (method != nullptr && pruning::needs_data(*method))
      need_data("prune", "calibrate", true);
  }

  // Numbers of pictures and arrays mean nothing to tokens, and tokens have no class.
  void text_only(const std::string& at) {
    for (const char* key : {".scale", ".zero_point", ".mean", ".std"}) {
      if (values_.has(at + key))
        problem(at + key, "expected keys of text only beside context, found this one. Remove it.");
    }
    const std::string* metric = values_.get<std::string>(at + ".metric");
    if (metric != nullptr && (*metric == "top1" || *metric == "top5"))
      problem(at + ".metric",
              "expected perplexity, kl, agreement, mse, sqnr_db, cosine or spearman for text, found \"" + *metric +
                  "\", which needs labels. Choose one of them.");
  }

  bool truth(const std::string& path) const {
    const bool* value = values_.get<bool>(path);
    return value != nullptr && *value;
  }

  bool is_given(const std::string& path) const {
    const auto found = values_.values.find(path);
    return found != values_.values.end() && !found->second.where.empty();
  }

  // Options of quantize that the rest of the file leaves without effect.
  void idle_options() {
    const std::string at = "stages.quantize";
    const std::string* method = values_.get<std::string>(at + ".method");
    if (is_given(at + ".damp_percent") && method != nullptr && !quantization::needs_inputs(*method))
      problem(at + ".damp_percent", "expected method gptq beside it, found \"" + *method + "\". Remove this key.");
    if (is_given(at + ".steps") && method != nullptr && !quantization::tunes_blocks(*method))
      problem(at + ".steps", "expected method signround beside it, found \"" + *method + "\". Remove this key.");
    const bool* corrects = values_.get<bool>(at + ".bias_correction");
    if (corrects != nullptr && *corrects && !has_stage("calibrate"))
      problem(at + ".bias_correction",
              "expected a stage \"calibrate\", whose means of inputs it needs, found none. Add \"- calibrate: "
              "{method: mse}\".");
    const bool* reduces = values_.get<bool>(at + ".reduce_range");
    if (reduces == nullptr || !*reduces) return;
    std::vector<std::string> list;
    if (const auto* texts = values_.get<std::vector<std::string>>("stages.search.schemes")) list = *texts;
    if (const auto* text = values_.get<std::string>(at + ".scheme")) list = {*text};
    const std::int64_t* bits = values_.get<std::int64_t>(at + ".bits");
    const auto is_eight = [](const std::string& text) {
      const Result<QuantScheme> scheme = parse_scheme(text);
      return !scheme || scheme->weight_bits == 8;
    };
    if ((bits != nullptr && *bits == 8) || (list.empty() && bits == nullptr) || std::ranges::any_of(list, is_eight))
      return;
    problem(at + ".reduce_range", "expected a scheme with 8-bit weights, found none. Remove this key.");
  }

  // Keys of text come with the length of a window, and perplexity with text.
  void text() {
    for (const char* split : {"train", "calibrate", "score", "select", "evaluate"}) {
      const std::string at = std::string("data.") + split;
      const bool has_pairs = truth(at + ".pairs");
      const std::string* asked = values_.get<std::string>(at + ".metric");
      if (asked != nullptr && *asked == "spearman" && !has_pairs)
        problem(at + ".metric", "expected pairs of texts for spearman, found no " + at + ".pairs. Add pairs: true.");
      if (values_.has(at + ".context")) {
        text_only(at);
        if (has_pairs && truth(at + ".lines"))
          problem(at + ".lines", "expected either lines or pairs, found both. Remove one.");
        if (truth(at + ".special_tokens") && !has_pairs && !truth(at + ".lines"))
          problem(at + ".special_tokens", "expected lines or pairs beside it, found windows. Remove this key.");
        continue;
      }
      for (const char* key : {".windows", ".lines", ".pairs", ".special_tokens", ".bos", ".tokenizer"}) {
        if (values_.has(at + key))
          problem(at + key,
                  "expected " + at + ".context (tokens in a sample) beside it, found none. Add context: 512.");
      }
      const std::string* metric = values_.get<std::string>(at + ".metric");
      if (metric != nullptr && *metric == "perplexity")
        problem(at + ".metric", "expected text for perplexity, found no " + at + ".context. Add context: 512.");
    }
  }

  CheckedValues& values_;
  std::string file_name_;
};

}  // namespace

void check_rules(CheckedValues& values, const std::string& file_name) {
  Rules(values, file_name).run();
}

}  // namespace ctk::pipeline

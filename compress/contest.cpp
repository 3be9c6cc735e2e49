#include "compress/contest.h"

#include <algorithm>
#include <filesystem>

#include "compress/evaluate.h"
#include "compress/interrupt.h"
#include "compress/low_rank_layers.h"
#include "compress/quantize/tune_blocks.h"
#include "compress/select_metric.h"
#include "compress/stage_keys.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "train/trainer_loader.h"

namespace ctk::pipeline {
namespace {

using quantization::GivenCodes;
using quantization::InputCodes;
using quantization::SchemeMap;

constexpr std::size_t kLeastSamples = 8;
constexpr std::size_t kTunedBatch = 8;    // samples a step of tuning sees, where there are enough for
constexpr std::size_t kLeastBatches = 8;  // so many of them

bool looks_at_inputs(const Session& session) {
  return quantization::needs_inputs(session.config.quantize->method);
}

// Schemes that later finalists give a layer and the first does not.
std::map<std::string, std::vector<QuantScheme>> others_of(std::span<const Finalist> finalists) {
  std::map<std::string, std::vector<QuantScheme>> others;
  for (std::size_t f = 1; f < finalists.size(); ++f) {
    for (const auto& [layer, scheme] : finalists[f].schemes) {
      if (finalists[0].schemes.at(layer) == scheme) continue;
      std::vector<QuantScheme>& list = others[layer];
      if (std::ranges::find(list, scheme) == list.end()) list.push_back(scheme);
    }
  }
  return others;
}

// Of all that decides about codes beside the stage's fingerprint.
std::string fingerprint_of(std::span<const Finalist> finalists) {
  Fingerprint print;
  for (const Finalist& finalist : finalists) {
    for (const auto& [layer, scheme] : finalist.schemes) print.add(layer).add(to_string(scheme));
  }
  return print.hex();
}

// Codes of the first, and of the others where their schemes differ.
Result<InputCodes> codes_from_inputs(const Session& session, std::span<const Finalist> finalists) {
  const QuantizeConfig& config = *session.config.quantize;
  if (!looks_at_inputs(session)) return InputCodes{};
  if (!session.splits.calibrate)
    return input_error("stages.quantize: method " + config.method +
                       " fits codes to what layers are fed, found no calibration data. Give data.calibrate");
  quantization::FromInputsOptions options;
  options.damping = config.damp_percent / 100.0;
  options.reduce_range = config.reduce_range;
  options.also = others_of(finalists);
  options.ranks = &session.ranks();
  if (session.ranks().is_alone()) {  // several ranks share the work of a layer, and begin a stopped walk anew
    options.store = codes_folder(session) + "/" + fingerprint_of(finalists);
    options.folder = session.output + "/.cache";
  }
  std::error_code ignored;
  if (!session.options.resume && session.ranks().is_first()) {
    std::filesystem::remove_all(codes_folder(session), ignored);
  }
  const auto work = quantize_work(session);
  const std::int64_t parts = quantization::tunes_blocks(config.method) ? 2 : 1;  // of the work
  options.progress = [&session, work, parts](std::size_t done, std::size_t total) {
    session.advance(work / parts * static_cast<std::int64_t>(done) / static_cast<std::int64_t>(total));
  };
  return quantization::code_from_inputs(session.model.graph, finalists[0].schemes, config.method,
                                        *session.splits.calibrate, options);
}

// The codes that `network` starts from, tuned on whole blocks.
Result<GivenCodes> tuned_codes(const Session& session, const CodedNetwork& network, const GivenCodes& start) {
  const data::Split& split = *session.splits.calibrate;
  CTK_TRY(train::Trainer * trainer, train::load_trainer());
  quantization::BlockTuningOptions options;
  options.trainer = trainer;
  options.steps = tuning_steps(session.config);
  const bool is_of_lines = split.source->spec().text &&
                           (split.source->spec().text->lines || split.source->spec().text->pairs);  // lengths differ
  const std::size_t fitting = std::clamp<std::size_t>(split.count() / kLeastBatches, 1, kTunedBatch);
  options.batch = fixed_batch(session.model.graph, is_of_lines ? 1 : fitting);
  options.per_step = is_of_lines ? fitting : 1;
  options.seed = session.config.seed;
  options.threads = threads();
  const std::int64_t work = quantize_work(session), half = work / 2;
  options.on_step = [&session, work, half](std::size_t done, std::size_t total) -> Status {
    session.advance(half + (work - half) * static_cast<std::int64_t>(done) / static_cast<std::int64_t>(total));
    return check_interrupt();
  };
  CTK_TRY(quantization::TunedCodes tuned,
          quantization::tune_blocks(session.model.graph, network.graph, start, split, options));
  return std::move(tuned.given);
}

// Of one finalist, and how many of them were fitted behind another network's codes.
std::pair<GivenCodes, std::size_t> codes_of(const InputCodes& codes, const std::vector<Finalist>& finalists,
                                            std::size_t which) {
  if (which == 0) return {codes.given, 0};
  GivenCodes given;
  std::size_t borrowed = 0;
  for (const auto& [layer, scheme] : finalists[which].schemes) {
    if (scheme == finalists[0].schemes.at(layer)) {
      if (const auto same = codes.given.find(layer); same != codes.given.end()) given.insert(*same);
    } else if (const auto other = codes.also.find({layer, to_string(scheme)}); other != codes.also.end()) {
      given.emplace(layer, other->second);
      ++borrowed;
    }
  }
  return {std::move(given), borrowed};
}

// The metric that labels decide by; empty where KL does.
std::string label_metric(const Session& session) {
  if (!session.splits.select->source->has_labels()) return "";
  for (const auto* source : {&session.config.select, &session.config.evaluate}) {
    if (!*source || (*source)->spec.metric.empty()) continue;
    const auto info = data::find_metric((*source)->spec.metric);
    if (info && (*info)->needs_labels) return fits_select(session, **info) ? (*source)->spec.metric : "";
  }
  const std::string usual = usual_metric(session);
  return usual == "top1" ? usual : "";
}

// What a method gained over rounding, layer by layer.
search_table::Costs gains_of(const GivenCodes& given) {
  // Codes that also make up for what layers before them lost err less than their own rounding would, or not at all by
  // this measure: what is theirs is not told apart, so no layer is taken to gain more.
  constexpr double kLeastGain = 0.25;
  search_table::Costs gains;
  for (const auto& [layer, outcome] : given) {
    if (!outcome.receipt || !(outcome.receipt->error_rounding > 0)) continue;
    gains[{layer, to_string(outcome.tensor.scheme)}] =
        std::clamp(outcome.receipt->error / outcome.receipt->error_rounding, kLeastGain, 1.0);
  }
  return gains;
}

search_table::MeasuredLoss loss_in(const exporter::FinalistRow& row, const GivenCodes& given) {
  return {*row.measured, row.standard_error.value_or(0), gains_of(given)};
}

class Judge {
 public:
  static Result<Judge> open(const Session& session) {
    Judge judge(session);
    CTK_TRY(judge.split_, compared_part(session));
    CTK_TRY(judge.reference_, collect_outputs(session.model.graph, judge.split_, session.output + "/.cache"));
    return judge;
  }

  Status measure(const graph::Graph& graph, exporter::FinalistRow& row) const {
    CTK_TRY(const Evaluation found, evaluate(graph, split_, metric_, &reference_));
    row.measured = found.kl.value;
    row.standard_error = found.kl.standard_error;
    if (!metric_.empty()) row.metric = found.metric.value;
    return {};
  }

  bool is_better(const exporter::FinalistRow& a, const exporter::FinalistRow& b) const {
    if (!metric_.empty() && *a.metric != *b.metric) return *a.metric > *b.metric;
    return *a.measured < *b.measured;
  }

  std::size_t samples() const { return split_.count(); }

 private:
  explicit Judge(const Session& session)
      : split_(*session.splits.select), metric_(label_metric(session)), reference_(session.output + "/.cache") {}

  data::Split split_;
  std::string metric_;
  OutputCache reference_;
};

}  // namespace

std::string codes_folder(const Session& session) {
  return session.output + "/.cache/codes-" + session.fingerprint;
}

Result<data::Split> compared_part(const Session& session) {
  const auto first = [&](std::size_t count) {
    data::Split part = *session.splits.select;
    part.indices.resize(std::min(part.indices.size(), count));
    return part;
  };
  const std::size_t batch = fixed_batch(session.model.graph, 1);
  std::size_t bytes = 0;  // of the outputs of a batch
  CTK_CHECK(for_each_batch(session.model.graph, first(batch), {}, {},
                           [&](const std::vector<Tensor>& outputs, const data::Batch&, std::size_t) -> Status {
                             bytes = outputs[0].bytes();
                             return {};
                           }));
  const std::size_t least = (kLeastSamples + batch - 1) / batch;
  return first(batch * std::max(least, kReferenceBytes / std::max<std::size_t>(1, bytes)));
}

bool needs_contest(const Session& session) {
  return session.splits.select && (session.finalists.size() > 1 || looks_at_inputs(session) ||
                                   (session.config.search && session.config.search->corrections > 0));
}

Result<CodedNetwork> code_network(const Session& session, const SchemeMap& schemes, const GivenCodes& given) {
  quantization::ApplyOptions options = session.plain_options();
  options.method = session.config.quantize->method;
  options.bias_correction = session.config.quantize->bias_correction;
  options.input_means = &session.input_means;
  options.given = &given;
  CodedNetwork network{session.model.graph.clone(), {}};
  CTK_TRY(network.outcome, quantization::apply_schemes(network.graph, schemes, session.ranges, options));
  if (session.config.quantize->low_rank > 0) {
    CTK_TRY(network.corrections, correct_layers(session, network.graph));
  }
  return network;
}

Result<Contest> hold_contest(const Session& session) {
  const std::vector<Finalist>& finalists = session.finalists;
  CTK_TRY(const InputCodes codes, codes_from_inputs(session, finalists));
  const std::string& method = session.config.quantize->method;
  const bool tunes = quantization::tunes_blocks(method);
  Contest contest;
  if (!needs_contest(session)) {
    CTK_TRY(contest.taken, code_network(session, finalists[0].schemes, codes.given));
    contest.given = codes.given;
    if (!tunes) return contest;
    CTK_TRY(contest.given, tuned_codes(session, contest.taken, codes.given));
    CTK_TRY(contest.taken, code_network(session, finalists[0].schemes, contest.given));
    return contest;
  }
  CTK_TRY(const Judge judge, Judge::open(session));
  const std::string walked = tunes ? "gptq" : method;  // what coded layer by layer
  std::size_t best = 0;
  const auto at = [&](std::size_t which) -> const Finalist& {
    return which < finalists.size() ? finalists[which] : contest.further[which - finalists.size()];
  };
  const auto enter = [&](std::size_t which, const std::string& by, const GivenCodes& given,
                         const std::string& note) -> Status {
    CTK_TRY(CodedNetwork network, code_network(session, at(which).schemes, given));
    exporter::FinalistRow row;
    row.name = at(which).origin;
    row.method = by;
    row.predicted = at(which).predicted_loss;
    row.codes = note + "; " + std::to_string(judge.samples()) + " samples compared";
    CTK_CHECK(judge.measure(network.graph, row));
    contest.rows.push_back(std::move(row));
    if (contest.rows.size() > 1 && !judge.is_better(contest.rows.back(), contest.rows[best])) return {};
    best = contest.rows.size() - 1;
    contest.finalist = which;
    contest.taken = std::move(network);
    contest.given = given;
    return {};
  };
  for (std::size_t f = 0; f < finalists.size(); ++f) {
    const auto [given, borrowed] = codes_of(codes, finalists, f);
    CTK_CHECK(enter(f, walked, given,
                    borrowed == 0 ? "of its own"
                                  : std::to_string(borrowed) + " layers fitted behind the first network's codes, the "
                                                               "others shared with it"));
  }
  if (tunes) {
    CTK_TRY(const GivenCodes tuned, tuned_codes(session, contest.taken, contest.given));
    CTK_CHECK(enter(contest.finalist, method, tuned, "those of gptq, tuned on blocks"));
  }
  if (session.config.search && session.config.search->corrections > 0) {
    const auto code = [&](const Finalist& next) -> Result<search_table::MeasuredLoss> {
      contest.further.push_back(next);
      CTK_TRY(const InputCodes own, codes_from_inputs(session, std::span(&next, 1)));
      CTK_CHECK(enter(finalists.size() + contest.further.size() - 1, walked, own.given, "of its own"));
      return loss_in(contest.rows.back(), own.given);
    };
    CTK_TRY(search_table::LossRounds rounds,
            search_table::correct_losses(session, finalists[0], loss_in(contest.rows[0], codes.given),
                                         static_cast<std::size_t>(session.config.search->corrections), code));
    contest.rounds = std::move(rounds.rows);
    contest.correction = std::move(rounds.correction);
  }
  if (looks_at_inputs(session)) CTK_CHECK(enter(contest.finalist, "rtn", {}, "of its own"));
  contest.rows[best].is_chosen = true;
  return contest;
}

}  // namespace ctk::pipeline

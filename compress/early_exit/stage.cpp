#include "compress/early_exit/stage.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "compress/early_exit/figures.h"
#include "compress/early_exit/heads.h"
#include "compress/early_exit/sites.h"
#include "compress/gate.h"
#include "compress/interrupt.h"
#include "compress/network_stage.h"
#include "compress/select_metric.h"
#include "compress/stage_keys.h"
#include "core/parallel.h"
#include "core/printable.h"
#include "graph/shapes.h"
#include "train/trainer_loader.h"

namespace ctk::pipeline {
namespace {

using exits::Head;
using graph::Graph;
using graph::ValueId;
using nlohmann::json;

const std::string kStage = "stages.early_exit";

constexpr double kErrors = 1;  // standard errors that thresholds leave of max_drop

struct Built {
  Graph graph;
  exits::Leaving leaving;
  std::vector<double> cost;  // [exits + 1], multiply-adds of a sample that leaves there
};

exits::HeadOptions options_of(const Session& session, const EarlyExitKeys& keys) {
  exits::HeadOptions options{keys.epochs, keys.batch_size,     keys.learning_rate, keys.temperature,
                             keys.alpha,  session.config.seed, threads()};
  options.on_step = [&session](std::int64_t step) -> Status {
    session.advance(step);
    return check_interrupt();
  };
  return options;
}

// The least samples of `count` that must come out right, where the network alone has `right`.
Result<std::size_t> least_right(const MetricDrop& limit, const std::string& metric, std::size_t right,
                                std::size_t count) {
  std::size_t least = right;
  const auto share = [&](std::size_t n) { return static_cast<double>(n) / static_cast<double>(count); };
  while (least > 0) {
    CTK_TRY(const GateVerdict verdict, hold_gate(limit, metric, share(right), share(least - 1)));
    if (!verdict.is_met) break;
    --least;
  }
  return least;
}

// The network with these heads, under the thresholds that cost least.
Result<Built> build(const Session& session, const std::vector<Head>& heads, const std::string& metric,
                    const std::vector<std::int64_t>& answers, const MetricDrop& limit) {
  CTK_TRY(const auto before, graph::infer_shapes(session.model.graph, batch_shapes(session.model, 1), true));
  Built built{session.model.graph.clone(), {}, {}};
  CTK_CHECK(exits::add_exits(built.graph, heads, before));
  CTK_TRY(const exits::Exits names, exits::exits_of(built.graph));
  CTK_TRY(const auto infos, graph::infer_shapes(built.graph, batch_shapes(session.model, 1), true));
  CTK_TRY(const auto stages, exits::stages_of(built.graph, names, infos));
  CTK_TRY(const auto costs, exits::stage_costs(session, stages, infos));
  built.cost = exits::macs_until(costs, stages.size());
  CTK_TRY(const exits::Outcomes outcomes, exits::outcomes_of(built.graph, names, *session.splits.select, answers));
  std::size_t right = 0;
  for (const bool is_right : outcomes.is_right.back()) right += is_right ? 1 : 0;
  CTK_TRY(const std::size_t least, least_right(limit, metric, right, outcomes.samples()));
  built.leaving = exits::choose_thresholds(outcomes, built.cost, {least, kErrors});
  return built;
}

// Heads at which somebody leaves, with their thresholds.
std::vector<Head> used(std::vector<Head> heads, const exits::Leaving& leaving) {
  std::vector<Head> kept;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (leaving.samples[i] == 0) continue;
    heads[i].threshold = leaving.thresholds[i];
    kept.push_back(heads[i]);
  }
  return kept;
}

json notes_of(const Built& built, double macs) {
  const auto count = static_cast<double>(std::max<std::size_t>(1, [&] {
    std::size_t sum = 0;
    for (std::size_t samples : built.leaving.samples) sum += samples;
    return sum;
  }()));
  json shares = json::array();
  for (std::size_t samples : built.leaving.samples) shares.push_back(static_cast<double>(samples) / count);
  return {{"shares", shares}, {"mean_macs", built.leaving.mean_cost}, {"macs", macs}};
}

// No graph: with these heads nobody can leave early, or all of it costs more than it saves.
Result<ChangedNetwork> change(Session& session, const EarlyExitKeys& keys) {
  CTK_TRY(train::Trainer * trainer, train::load_trainer());
  CTK_TRY(const auto sites, exits::find_sites(session.model, keys, kStage));
  CTK_TRY(const auto infos, graph::infer_shapes(session.model.graph, batch_shapes(session.model, 1), true));
  std::vector<ValueId> features;
  for (const exits::Site& site : sites) features.push_back(site.feature);
  CTK_TRY(std::vector<Head> heads, exits::train_heads(session.model.graph, features, infos, *session.splits.train,
                                                      *trainer, options_of(session, keys)));
  CTK_TRY(const SelectMetric metric, SelectMetric::open(session));
  auto answers = exits::right_answers(session, *session.splits.select, metric.name());
  if (!answers) return std::move(answers).error().with_context(kStage);
  const auto macs = static_cast<double>(total_macs(session.model));
  while (!heads.empty()) {
    CTK_TRY(Built built, build(session, heads, metric.name(), *answers, keys.max_drop));
    std::vector<Head> kept = used(heads, built.leaving);
    if (kept.size() == heads.size()) {
      if (!(built.leaving.mean_cost < macs)) break;
      CTK_CHECK(exits::set_thresholds(built.graph, built.leaving.thresholds));
      return ChangedNetwork{std::move(built.graph), notes_of(built, macs).dump()};
    }
    heads = std::move(kept);  // without the others the rest costs less
  }
  ChangedNetwork unchanged{session.model.graph.clone(), ""};
  unchanged.notes = json{{"refused", true}}.dump();
  return unchanged;
}

std::string percent(double share) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

}  // namespace

Status prepare_early_exit(const Session& session) {
  if (!session.config.has_stage("early_exit")) return {};
  if (auto trainer = train::load_trainer(); !trainer) return std::move(trainer).error().with_context(kStage);
  if (!session.splits.train || !session.splits.select) {
    const std::string missing = session.splits.train ? "data.select" : "data.train";
    return input_error(kStage + ": expected samples in " + missing + ", found none. Add it");
  }
  const Graph& graph = session.model.graph;
  CTK_TRY(const auto infos, graph::infer_shapes(graph, batch_shapes(session.model, 1), true));
  const graph::InferredValue& output = infos[graph.outputs()[0].index];
  if (graph.outputs().size() != 1 || !output.known || output.info.dtype != DType::f32 ||
      output.info.shape.size() != 2) {
    return input_error(kStage + ": expected a network with one output [batch, classes], found " +
                       std::to_string(graph.outputs().size()) + ", the first " +
                       (output.known ? ctk::to_string(output.info.shape) : "of unknown shape") +
                       ". Leave the stage out");
  }
  CTK_CHECK(exits::find_sites(session.model, early_exit_keys(session.config), kStage));
  for (const auto* source : {&session.config.select, &session.config.evaluate}) {
    if (!*source || (*source)->spec.metric.empty()) continue;
    auto fits = exits::require_sample_metric((*source)->spec.metric);
    if (!fits) return std::move(fits).error().with_context(kStage);
    break;  // what is compared is the first that is named
  }
  return {};
}

std::int64_t early_exit_work(const Session& session) {
  const EarlyExitKeys keys = early_exit_keys(session.config);
  if (!session.splits.train) return 0;
  const auto sites = exits::find_sites(session.model, keys, kStage);
  const auto count = static_cast<std::int64_t>(session.splits.train->count());
  const std::int64_t batches = count / std::max<std::int64_t>(1, std::min(keys.batch_size, count));
  return static_cast<std::int64_t>(sites ? sites->size() : 1) * keys.epochs * batches;
}

Status run_early_exit(Session& session, bool& cached) {
  const EarlyExitKeys keys = early_exit_keys(session.config);
  GateConfig gate;
  gate.metric_drop = keys.max_drop;
  gate.key = "max_drop";
  gate.continues = keys.continues;
  std::string notes;
  const std::vector<std::string> depends{session.config.fingerprint_of({"seed"})};
  CTK_CHECK(run_network_stage(
      session, "early_exit", depends, gate, [&] { return change(session, keys); }, cached, notes));
  const json told = json::parse(notes, nullptr, false);
  if (told.is_discarded()) return internal_error("the early_exit artifact is not JSON");
  if (told.contains("refused")) {
    session.stage_row.accepted = false;
    const std::string why = kStage + ".max_drop: expected exits at which samples leave within " +
                            to_text(keys.max_drop) + " of the select split's metric and save multiply-adds, found none";
    if (!keys.continues) {
      return Error{ErrorCode::gate_refused,
                   why +
                       ". Allow a greater drop, train heads for more epochs, name other places "
                       "under `at`, or set on_refusal: continue to go on without them"};
    }
    session.warn("stage_refused", why + "; the run went on with the network before it");
    return {};
  }
  const double macs = told["macs"].get<double>();
  std::string text;
  for (const json& share : told["shares"]) text += (text.empty() ? "" : ", ") + percent(share.get<double>());
  session.warn("early_exit", "on the select split " + text + " of the samples leave at each exit and the end; " +
                                 percent(macs > 0 ? told["mean_macs"].get<double>() / macs : 1) +
                                 " of the multiply-adds are done by stages: early_exit/exits.json");
  return {};
}

}  // namespace ctk::pipeline

// The prune stage: cuts the least important channels with all that is coupled to them, to an aim in multiply-adds or
// channels, and refits what reads them. No labels, no training.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "compress/interrupt.h"
#include "compress/network_stage.h"
#include "compress/patterns.h"
#include "compress/prune/blocks.h"
#include "compress/prune/curves.h"
#include "compress/prune/evenly.h"
#include "compress/prune/importance.h"
#include "compress/prune/joint.h"
#include "compress/prune/repair.h"
#include "compress/prune/timed_aim.h"
#include "compress/prune/width_times.h"
#include "compress/prune/widths.h"
#include "compress/session.h"
#include "compress/stage_keys.h"
#include "compress/train_stage.h"
#include "core/parallel.h"

namespace ctk::pipeline {
namespace {

using graph::CoupledGroup;
using graph::Coupling;
using nlohmann::json;

// Addresses of the layers that make the channels of each group.
std::vector<std::vector<std::string>> makers_of(const Coupling& coupling) {
  std::vector<std::vector<std::string>> makers;
  for (const CoupledGroup& group : coupling.groups()) {
    std::vector<std::string>& names = makers.emplace_back();
    for (const graph::CoupledAxis& axis : group.axes) {
      for (const graph::AxisClaim& claim : axis.readers) {
        if (claim.role == graph::AxisRole::produces) names.push_back(coupling.graph().address(claim.node));
      }
    }
  }
  return makers;
}

// Which groups may be cut; the others get a reason.
struct Wanted {
  std::vector<bool> is_wanted;
  std::vector<std::string> reasons;
};

Result<Wanted> wanted_groups(const PruneConfig& config, const Coupling& coupling) {
  const auto makers = makers_of(coupling);
  std::vector<std::string> addresses;
  for (const auto& names : makers) addresses.insert(addresses.end(), names.begin(), names.end());
  CTK_TRY(const auto is_target, match_patterns(config.targets, addresses, "stages.prune.targets"));
  CTK_TRY(const auto is_ignored, match_patterns(config.ignore, addresses, "stages.prune.ignore"));
  Wanted wanted;
  std::size_t at = 0, count = 0;
  for (std::size_t g = 0; g < makers.size(); ++g) {
    const CoupledGroup& group = coupling.groups()[g];
    bool is_named = false, is_left_out = false;
    for (std::size_t i = 0; i < makers[g].size(); ++i, ++at) {
      is_named |= is_target[at];
      is_left_out |= is_ignored[at];
    }
    std::string reason = group.reason;
    if (reason.empty() && is_left_out) reason = "matches `ignore`";
    if (reason.empty() && !config.targets.empty() && !is_named) reason = "matches no pattern of `targets`";
    if (reason.empty() && !group.statistics.empty() && !is_named)
      reason = group.statistics + " takes its statistics over them; name the layer in `targets` to cut them anyway";
    wanted.is_wanted.push_back(reason.empty());
    count += reason.empty() ? 1 : 0;
    wanted.reasons.push_back(std::move(reason));
  }
  if (count > 0) return wanted;
  std::string why;
  for (std::size_t g = 0; g < wanted.reasons.size() && g < 5; ++g) {
    why += (g == 0 ? "" : "; ") + coupling.groups()[g].name + " " + wanted.reasons[g];
  }
  return config_error("stages.prune: expected a layer whose channels can be cut, found none" +
                      (why.empty() ? std::string() : ": " + why) +
                      ". Loosen `targets` and `ignore`, or drop the stage");
}

bool has_curves(const Session& session) {
  return session.config.prune->ratios != "global" && session.config.prune->ratios != "uniform" &&
         session.splits.score.has_value();
}
// A clock has a say where time is the aim, or where it is asked for: widths that do not pay are no choices then.
bool is_timed(const Session& session) {
  return has_curves(session) && (prune_keys(session.config).latency || session.config.prune->ratios == "timed");
}
bool repairs(const Session& session) {
  return session.config.prune->repair.value_or(true) && session.splits.calibrate.has_value();
}

// About seven points a layer.
std::int64_t curve_work(const Session& session) {
  return has_curves(session) ? 7 * static_cast<std::int64_t>(graph::layers_of(session.model.graph).size()) : 0;
}

pruning::WidthTask task_of(const PruneConfig& config, const Coupling& coupling, const pruning::MacsCount& macs,
                           const Wanted& wanted) {
  pruning::WidthTask task{coupling, macs, {}, wanted.is_wanted, config.max_ratio, config.round_to, config.macs, {}};
  if (!config.macs) task.ratio = config.pruning_ratio;
  for (const CoupledGroup& group : coupling.groups()) {
    std::vector<std::size_t>& order = task.ranking.emplace_back(group.units.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  return task;
}

json figure(double value) {
  return std::isfinite(value) ? json(value) : json();
}

json to_json(const Coupling& coupling, const Wanted& wanted, const pruning::Widths& widths,
             const pruning::Curves& curves) {
  json rows = json::array();
  for (std::size_t g = 0; g < widths.size(); ++g) {
    json curve = json::array();
    for (std::size_t i = 0; g < curves.size() && i < curves[g].size(); ++i) {
      curve.push_back({curves[g][i].width, figure(curves[g][i].loss)});
    }
    const CoupledGroup& group = coupling.groups()[g];
    rows.push_back({{"name", group.name},
                    {"units", group.units.size()},
                    {"kept", widths[g]},
                    {"reason", wanted.reasons[g]},
                    {"curve", std::move(curve)}});
  }
  return rows;
}

bool cuts_channels(const PruneConfig& config, const PruneKeys& keys) {
  return config.macs || config.pruning_ratio || keys.latency || config.ratios == "joint";
}

// What is left of the aim for one round: after all of them together it is met. `now` and `whole` are multiply-adds.
void aim_of_round(const PruneConfig& config, std::int64_t iterations, std::int64_t round, double now, double whole,
                  pruning::WidthTask& task) {
  const double rounds = static_cast<double>(iterations), share = static_cast<double>(round + 1) / rounds;
  if (config.macs) task.macs_kept = std::min(1.0, whole * std::pow(*config.macs, share) / now);
  if (task.ratio) task.ratio = 1 - std::pow(1 - *config.pruning_ratio, 1 / rounds);
}

struct CutNetwork {
  graph::Graph graph;
  json groups, repaired, timed, joint;
  double macs_before = 0, macs_after = 0;
};

Result<CutNetwork> cut_channels(Session& session, const graph::Graph& graph, std::int64_t round, double whole) {
  const PruneConfig& config = *session.config.prune;
  const PruneKeys keys = prune_keys(session.config);
  CTK_TRY(const Coupling coupling, Coupling::find(graph, batch_shapes(session.model, 1)));
  CTK_TRY(const Wanted wanted, wanted_groups(config, coupling));
  const pruning::MacsCount macs(coupling);
  CTK_TRY(const pruning::ImportanceMethod* method, pruning::find_importance(config.method));
  const data::Split* samples = session.splits.calibrate ? &*session.splits.calibrate : nullptr;
  CTK_TRY(const pruning::Scores scores, method->score({coupling, samples, session.config.seed}));
  pruning::WidthTask task = task_of(config, coupling, macs, wanted);
  const auto now = static_cast<double>(macs.whole());
  aim_of_round(config, keys.iterations, round, now, whole > 0 ? whole : now, task);
  task.ranking = pruning::ranking_of(scores);
  for (std::size_t g = 0; g < task.ranking.size(); ++g) task.ranking[g].resize(coupling.groups()[g].units.size());
  const auto advance = [&](std::size_t done, std::size_t) { session.advance(static_cast<std::int64_t>(done)); };
  pruning::Curves curves;
  if (has_curves(session)) {
    pruning::CurveOptions options{session.output + "/.cache", nullptr, 1e-3, advance};
    pruning::InputSums sums;
    if (repairs(session)) {
      CTK_TRY(sums, pruning::input_sums(coupling, *samples, {}));
      options.repair = &sums;
    }
    CTK_TRY(curves, pruning::measure_curves(task, *session.splits.score, options));
  }
  json joint;
  if (is_timed(session)) {
    CTK_CHECK(pruning::time_curves(task, batch_shapes(session.model, 1), curves));
    pruning::drop_slow_widths(curves);
  }
  const auto widen = [&](const pruning::WidthTask& aimed) {
    if (has_curves(session)) return pruning::widths_from_curves(aimed, curves);
    return config.ratios == "global" ? pruning::global_widths(aimed, scores) : pruning::uniform_widths(aimed);
  };
  const pruning::Widen widen_to = [&](double share) -> Result<pruning::Widths> {
    if (is_timed(session)) return pruning::widths_within_time(task, curves, share);
    pruning::WidthTask aimed = task;
    aimed.macs_kept = share;
    if (auto reach = pruning::require_reachable(aimed); !reach)
      return Error{ErrorCode::budget_infeasible, std::move(reach).error().message};
    return widen(aimed);
  };
  json timed = json::array();
  pruning::Widths widths;
  if (config.ratios == "joint") {
    CTK_TRY(const pruning::JointAnswer answer, pruning::joint_widths(session, task, curves));
    widths = answer.widths;
    joint = pruning::to_json(answer);
  } else if (keys.latency) {
    CTK_TRY(const double share, pruning::share_of_time(session, *keys.latency));
    const double rounds = static_cast<double>(keys.iterations), part = static_cast<double>(round + 1) / rounds;
    CTK_TRY(widths, pruning::widths_for_time(session, task, std::pow(share, part), widen_to, timed));
  } else {
    CTK_TRY(widths, widen(task));
  }
  const Coupling::Units removed = pruning::removed_by(task, widths);
  CutNetwork cut{{},  to_json(coupling, wanted, widths, curves), json::array(), std::move(timed), std::move(joint),
                 now, static_cast<double>(macs.of(removed))};
  CTK_TRY(cut.graph, coupling.cut(removed));
  if (!repairs(session)) return cut;
  CTK_TRY(const auto lines, pruning::repair(coupling, removed, cut.graph, *samples, {}));
  for (const pruning::RepairedLayer& line : lines)
    cut.repaired.push_back(
        {{"name", line.name}, {"before", figure(line.error_before)}, {"after", figure(line.error_after)}});
  return cut;
}

// Units as they were before all rounds, kept as after the last.
void join_rounds(json& all, const json& round) {
  for (const json& row : round) {
    const auto same = std::ranges::find_if(all, [&](const json& other) { return other["name"] == row["name"]; });
    if (same == all.end()) {
      all.push_back(row);
    } else {
      (*same)["kept"] = row["kept"];
    }
  }
}

Result<ChangedNetwork> prune(Session& session) {
  const PruneConfig& config = *session.config.prune;
  const PruneKeys keys = prune_keys(session.config);
  graph::Graph net = session.model.graph.clone();
  json groups = json::array(), repaired = json::array(), trained = json::array(), blocks = json::array();
  json timed = json::array(), joint;
  if (keys.blocks > 0) {
    CTK_TRY(const auto removed,
            pruning::remove_least(net, keys.blocks, batch_shapes(session.model, 1), *session.splits.calibrate));
    for (const pruning::RemovedBlock& block : removed)
      blocks.push_back({{"name", block.name}, {"influence", block.influence}});
  }
  double whole = 0, after = 0;
  for (std::int64_t round = 0; round < keys.iterations; ++round) {
    if (cuts_channels(config, keys)) {
      CTK_TRY(CutNetwork cut, cut_channels(session, net, round, whole));
      net = std::move(cut.graph);
      if (round == 0) whole = cut.macs_before;
      after = cut.macs_after;
      join_rounds(groups, cut.groups);
      timed = std::move(cut.timed);
      joint = std::move(cut.joint);
      repaired = std::move(cut.repaired);  // the last round's stand beside the last widths
    }
    if (!config.finetune) continue;
    std::string notes;
    CTK_TRY(net, fine_tune(session, net, *config.finetune, "prune", &notes));
    trained.push_back(json::parse(notes, nullptr, false));
  }
  json notes{{"method", config.method},
             {"ratios", has_curves(session)         ? "sensitivity"
                        : config.ratios == "global" ? "global"
                                                    : "uniform"},
             {"macs_before", whole},
             {"macs_after", after},
             {"groups", std::move(groups)},
             {"blocks", std::move(blocks)},
             {"timed", std::move(timed)},
             {"joint", std::move(joint)},
             {"repaired", std::move(repaired)},
             {"finetune", std::move(trained)}};
  return ChangedNetwork{std::move(net), notes.dump()};
}

exporter::Figure figure_of(const json& value) {
  return value.is_number() ? exporter::Figure(value.get<double>()) : exporter::Figure{};
}

Status report_notes(Session& session, const std::string& text) {
  const json notes = json::parse(text, nullptr, false);
  if (notes.is_discarded()) return internal_error("the notes of prune are not JSON");
  for (const json& block : notes["blocks"]) {
    char why[80];
    std::snprintf(why, sizeof why, "whole block, 1 - cosine %.4f", block["influence"].get<double>());
    session.report.pruned.push_back({block["name"], 1, 0, why, {}});
  }
  for (const json& group : notes["groups"]) {
    exporter::PruneRow row{group["name"], group["units"], group["kept"], group["reason"], {}};
    for (const json& point : group["curve"]) row.curve.push_back({point[0], figure_of(point[1])});
    session.report.pruned.push_back(std::move(row));
  }
  if (notes["joint"].is_object()) session.warn("joint_widths", pruning::told(notes["joint"]));
  for (const json& line : notes["repaired"]) {
    session.report.repaired.push_back({line["name"], figure_of(line["before"]), figure_of(line["after"])});
  }
  return {};
}

// As many blocks as are to go, and samples to tell them apart by.
Status require_blocks(const Session& session) {
  const PruneKeys keys = prune_keys(session.config);
  if (keys.blocks == 0) return {};
  if (!session.splits.calibrate) {
    return input_error(
        "stages.prune.blocks: expected samples in data.calibrate to measure blocks on, found none. Add it");
  }
  CTK_TRY(const auto blocks, pruning::whole_blocks(session.model.graph, batch_shapes(session.model, 1)));
  if (static_cast<std::size_t>(keys.blocks) <= blocks.size()) return {};
  return config_error("stages.prune.blocks: expected at most " + std::to_string(blocks.size()) +
                      ", the blocks whose input and output have one shape and add up, found \"" +
                      std::to_string(keys.blocks) + "\". Lower it");
}

}  // namespace

Result<graph::Graph> cut_evenly(const Session& session, const graph::Graph& graph, double ratio) {
  CTK_TRY(const Coupling coupling, Coupling::find(graph, batch_shapes(session.model, 1)));
  PruneConfig config;
  config.pruning_ratio = ratio;
  CTK_TRY(const Wanted wanted, wanted_groups(config, coupling));
  const pruning::MacsCount macs(coupling);
  CTK_TRY(const pruning::ImportanceMethod* method, pruning::find_importance(config.method));
  CTK_TRY(const pruning::Scores scores, method->score({coupling, nullptr, session.config.seed}));
  pruning::WidthTask task = task_of(config, coupling, macs, wanted);
  task.ranking = pruning::ranking_of(scores);
  for (std::size_t g = 0; g < task.ranking.size(); ++g) task.ranking[g].resize(coupling.groups()[g].units.size());
  CTK_TRY(const pruning::Widths widths, pruning::uniform_widths(task));
  return coupling.cut(pruning::removed_by(task, widths));
}

std::int64_t prune_work(const Session& session) {
  const std::optional<TrainConfig>& finetune = session.config.prune->finetune;
  return prune_keys(session.config).iterations *
         (curve_work(session) + (finetune ? train_work(session, *finetune) : 0));
}

Status prepare_prune(const Session& session) {
  if (!session.config.prune || !session.config.has_stage("prune")) return {};
  const PruneConfig& config = *session.config.prune;
  CTK_CHECK(require_blocks(session));
  if (!config.macs && !config.pruning_ratio && config.ratios != "joint")
    return {};  // times are only known once measured
  auto coupling = Coupling::find(session.model.graph, batch_shapes(session.model, 1));
  if (!coupling) return std::move(coupling).error().with_context(session.config.model);
  CTK_TRY(const Wanted wanted, wanted_groups(config, *coupling));
  const pruning::MacsCount macs(*coupling);
  const bool has_aim = config.macs || config.pruning_ratio;
  auto reachable = has_aim ? pruning::require_reachable(task_of(config, *coupling, macs, wanted)) : Status();
  if (!reachable) {
    Error error = std::move(reachable).error();
    error.message = "stages.prune." + error.message;
    return error;
  }
  const auto needs = [&](bool is_needed, const std::optional<data::Split>& split, const char* key,
                         const std::string& what) -> Status {
    if (!is_needed || split) return {};
    return input_error(std::string("data.") + key + ": expected samples for " + what + ", found none. Give data." +
                       key + ", or a data.train with samples to spare");
  };
  CTK_CHECK(needs(pruning::needs_data(config.method), session.splits.calibrate, "calibrate",
                  "stages.prune.method: " + config.method));
  CTK_CHECK(needs(config.repair.value_or(false), session.splits.calibrate, "calibrate", "stages.prune.repair"));
  return needs(pruning::needs_curves(config.ratios), session.splits.score, "score",
               "stages.prune.ratios: " + config.ratios);
}

Status run_prune(Session& session, bool& cached) {
  std::string notes;
  std::vector<std::string> extra{std::to_string(session.config.seed)};
  if (session.splits.score) extra.push_back("score=" + session.splits.score->fingerprint);
  const bool is_joint = session.config.prune->ratios == "joint";
  if (is_joint) {  // the widths are an answer to the budget, under these schemes and ranges
    extra.push_back(session.config.fingerprint_of(
        {"budget", "stages.calibrate", "stages.search", "stages.quantize", "stages.export"}));
    extra.push_back(std::to_string(session.model.file_bytes));
    if (session.splits.calibrate) extra.push_back("calibrate=" + session.splits.calibrate->fingerprint);
  }
  if (is_timed(session) || (is_joint && session.config.budget.latency)) {  // another machine's times are other widths
    extra.push_back(session.report.machine.cpu + session.report.machine.isa + std::to_string(threads()));
  }
  if (const auto& finetune = session.config.prune->finetune) {
    CTK_TRY(const auto depends, training_depends(session, *finetune));
    extra.insert(extra.end(), depends.begin(), depends.end());
  }
  const Status status = run_network_stage(
      session, "prune", extra, session.config.prune->gate, [&] { return prune(session); }, cached, notes);
  if (!notes.empty()) CTK_CHECK(report_notes(session, notes));
  return status;
}

}  // namespace ctk::pipeline

// The prune stage: cuts the least important channels with all that is coupled to them, to an aim in multiply-adds or
// channels, and refits what reads them. No labels, no training.
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "compress/network_stage.h"
#include "compress/patterns.h"
#include "compress/prune/curves.h"
#include "compress/prune/importance.h"
#include "compress/prune/repair.h"
#include "compress/prune/widths.h"
#include "compress/session.h"
#include "compress/train_stage.h"

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

Result<ChangedNetwork> prune(Session& session) {
  const PruneConfig& config = *session.config.prune;
  const graph::Graph& graph = session.model.graph;
  CTK_TRY(const Coupling coupling, Coupling::find(graph, batch_shapes(session.model, 1)));
  CTK_TRY(const Wanted wanted, wanted_groups(config, coupling));
  const pruning::MacsCount macs(coupling);
  CTK_TRY(const pruning::ImportanceMethod* method, pruning::find_importance(config.method));
  const data::Split* samples = session.splits.calibrate ? &*session.splits.calibrate : nullptr;
  CTK_TRY(const pruning::Scores scores, method->score({coupling, samples, session.config.seed}));
  pruning::WidthTask task = task_of(config, coupling, macs, wanted);
  task.ranking = pruning::ranking_of(scores);
  for (std::size_t g = 0; g < task.ranking.size(); ++g) task.ranking[g].resize(coupling.groups()[g].units.size());
  const auto advance = [&](std::size_t done, std::size_t) { session.advance(static_cast<std::int64_t>(done)); };
  pruning::Curves curves;
  pruning::Widths widths;
  if (has_curves(session)) {
    pruning::CurveOptions options{session.output + "/.cache", nullptr, 1e-3, advance};
    pruning::InputSums sums;
    if (repairs(session)) {
      CTK_TRY(sums, pruning::input_sums(coupling, *samples, {}));
      options.repair = &sums;
    }
    CTK_TRY(curves, pruning::measure_curves(task, *session.splits.score, options));
    CTK_TRY(widths, pruning::widths_from_curves(task, curves));
  } else if (config.ratios == "global") {
    CTK_TRY(widths, pruning::global_widths(task, scores));
  } else {
    CTK_TRY(widths, pruning::uniform_widths(task));
  }
  const Coupling::Units removed = pruning::removed_by(task, widths);
  CTK_TRY(graph::Graph cut, coupling.cut(removed));
  json repaired = json::array();
  if (repairs(session)) {
    CTK_TRY(const auto lines, pruning::repair(coupling, removed, cut, *samples, {}));
    for (const pruning::RepairedLayer& line : lines)
      repaired.push_back(
          {{"name", line.name}, {"before", figure(line.error_before)}, {"after", figure(line.error_after)}});
  }
  std::string trained;
  if (config.finetune) {
    CTK_TRY(cut, fine_tune(session, cut, *config.finetune, "prune", &trained));
  }
  const json notes{{"method", config.method},
                   {"ratios", has_curves(session)         ? "sensitivity"
                              : config.ratios == "global" ? "global"
                                                          : "uniform"},
                   {"macs_before", macs.whole()},
                   {"macs_after", macs.of(removed)},
                   {"groups", to_json(coupling, wanted, widths, curves)},
                   {"repaired", std::move(repaired)},
                   {"finetune", trained.empty() ? json() : json::parse(trained, nullptr, false)}};
  return ChangedNetwork{std::move(cut), notes.dump()};
}

exporter::Figure figure_of(const json& value) {
  return value.is_number() ? exporter::Figure(value.get<double>()) : exporter::Figure{};
}

Status report_notes(Session& session, const std::string& text) {
  const json notes = json::parse(text, nullptr, false);
  if (notes.is_discarded()) return internal_error("the notes of prune are not JSON");
  for (const json& group : notes["groups"]) {
    exporter::PruneRow row{group["name"], group["units"], group["kept"], group["reason"], {}};
    for (const json& point : group["curve"]) row.curve.push_back({point[0], figure_of(point[1])});
    session.report.pruned.push_back(std::move(row));
  }
  for (const json& line : notes["repaired"]) {
    session.report.repaired.push_back({line["name"], figure_of(line["before"]), figure_of(line["after"])});
  }
  return {};
}

}  // namespace

std::int64_t prune_work(const Session& session) {
  const std::optional<TrainConfig>& finetune = session.config.prune->finetune;
  return curve_work(session) + (finetune ? train_work(session, *finetune) : 0);
}

Status prepare_prune(const Session& session) {
  if (!session.config.prune || !session.config.has_stage("prune")) return {};
  const PruneConfig& config = *session.config.prune;
  auto coupling = Coupling::find(session.model.graph, batch_shapes(session.model, 1));
  if (!coupling) return std::move(coupling).error().with_context(session.config.model);
  CTK_TRY(const Wanted wanted, wanted_groups(config, *coupling));
  const pruning::MacsCount macs(*coupling);
  auto reachable = pruning::require_reachable(task_of(config, *coupling, macs, wanted));
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
  return needs(config.ratios == "sensitivity", session.splits.score, "score", "stages.prune.ratios: sensitivity");
}

Status run_prune(Session& session, bool& cached) {
  std::string notes;
  std::vector<std::string> extra{std::to_string(session.config.seed)};
  if (session.splits.score) extra.push_back("score=" + session.splits.score->fingerprint);
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

#include "compress/prune/joint.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "compress/interrupt.h"
#include "compress/network_stage.h"
#include "compress/search_table.h"
#include "compress/sensitivity/metrics.h"
#include "compress/size.h"
#include "compress/summary.h"
#include "graph/layer.h"
#include "search/problem.h"

namespace ctk::pruning {
namespace {

using graph::Graph;
using pipeline::Session;
using pipeline::search_table::Group;
using pipeline::search_table::Table;

constexpr std::size_t kMostLevels = 6;                                          // widths of a group
constexpr double kShares[] = {0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4};  // of multiply-adds, cut first

// Layers by address that make or read channels of a group.
std::vector<std::set<std::string>> layers_of_groups(const graph::Coupling& coupling) {
  std::vector<std::set<std::string>> layers;
  for (const graph::CoupledGroup& group : coupling.groups()) {
    std::set<std::string>& names = layers.emplace_back();
    for (const graph::CoupledAxis& axis : group.axes) {
      for (const graph::AxisClaim& claim : axis.readers) {
        if (graph::layer_of(coupling.graph(), claim.node)) names.insert(coupling.graph().address(claim.node));
      }
    }
  }
  return layers;
}

// Another network in the session's place for a while, with what is told of layers.
class InItsPlace {
 public:
  InItsPlace(Session& session, Graph& graph) : session_(session), graph_(graph), skipped_(session.report.skipped) {
    std::swap(session_.model.graph, graph_);
  }
  ~InItsPlace() {
    std::swap(session_.model.graph, graph_);
    session_.report.skipped = std::move(skipped_);
  }
  InItsPlace(const InItsPlace&) = delete;
  InItsPlace& operator=(const InItsPlace&) = delete;

 private:
  Session& session_;
  Graph& graph_;
  std::vector<exporter::SkippedRow> skipped_;
};

// Bytes and times of every layer under every scheme in the network cut to one level everywhere. Times are at the rate
// of the first table: the whole network is timed beside each.
Result<Table> table_of(Session& session, Graph cut, double& whole_us) {
  Table table;
  {
    const InItsPlace place(session, cut);
    CTK_TRY(table.groups, pipeline::search_table::make_groups(session));
    CTK_CHECK(pipeline::search_table::fill_bytes(session, table));
    if (!session.config.budget.latency) return table;
    CTK_TRY(const auto runs,
            pipeline::search_table::uniform_runs(session, table.groups, session.ranges, {true, false}));
    CTK_CHECK(pipeline::search_table::fill_times(runs, table));
    CTK_CHECK(pipeline::search_table::fill_baseline(session, table));
  }
  const Graph* const whole[] = {&session.model.graph};
  CTK_TRY(const std::vector<double> now, pipeline::median_times_us(session, whole));
  if (whole_us == 0) whole_us = now[0];
  const double drift = whole_us / std::max(now[0], 1e-3);
  for (auto& [key, us] : table.latency_us) us *= drift;
  table.base_us *= drift;
  return table;
}

// KL of the outputs with one group of layers alone on a scheme.
Result<double> loss_of(const Session& session, const Group& group, const QuantScheme& scheme,
                       std::optional<pipeline::OutputCache>& reference) {
  if (scheme == QuantScheme{}) return 0.0;
  CTK_CHECK(check_interrupt());
  quantization::SchemeMap schemes;
  for (const std::string& layer : group.layers) schemes[layer] = scheme;
  CTK_TRY(const data::MetricValue kl, pipeline::kl_of(session, schemes, reference));
  return std::max(0.0, kl.value);
}

// A few widths of each group whose layers no group before it touches; groups of few layers come first, since channels
// that run through the whole network would leave no other.
std::vector<std::vector<CurvePoint>> levels_of(const WidthTask& task, const Curves& curves,
                                               const std::vector<std::set<std::string>>& layers) {
  std::set<std::string> taken;
  std::vector<std::vector<CurvePoint>> levels(layers.size());
  std::vector<std::size_t> order(layers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t g) { return layers[g].size(); });
  for (const std::size_t g : order) {
    std::vector<CurvePoint>& points = levels[g];
    points.push_back({task.coupling.groups()[g].units.size(), 0.0});
    if (!task.is_wanted[g] || curves[g].size() < 2) continue;
    if (std::ranges::any_of(layers[g], [&](const std::string& layer) { return taken.contains(layer); })) continue;
    taken.insert(layers[g].begin(), layers[g].end());
    points = spread(curves[g], kMostLevels);
  }
  return levels;
}

Widths widths_at(const std::vector<std::vector<CurvePoint>>& levels, const std::vector<std::size_t>& chosen) {
  Widths widths;
  for (std::size_t g = 0; g < levels.size(); ++g) widths.push_back(levels[g][chosen[g]].width);
  return widths;
}

Result<JointProgramme> programme_of(Session& session, const WidthTask& task,
                                    std::vector<std::vector<CurvePoint>> levels,
                                    const std::vector<std::set<std::string>>& layers) {
  std::vector<Table> tables;
  double whole_us = 0;
  CTK_TRY(Graph uncut, task.coupling.cut(removed_by(task, whole_widths(task))));
  CTK_TRY(tables.emplace_back(), table_of(session, std::move(uncut), whole_us));
  JointProgramme programme;
  programme.levels = std::move(levels);
  // Layers with one scheme for all that lie in two groups of channels: the first of the two alone is cut.
  std::vector<std::optional<std::size_t>> group_of;
  for (const Group& group : tables[0].groups) {
    std::optional<std::size_t>& own = group_of.emplace_back();
    for (std::size_t g = 0; g < layers.size(); ++g) {
      const bool touches =
          std::ranges::any_of(group.layers, [&](const auto& name) { return layers[g].contains(name); });
      if (!touches || programme.levels[g].size() == 1) continue;
      if (own) programme.levels[g].resize(1);
      own = own.value_or(g);
    }
  }
  std::size_t count = 1;
  for (const auto& points : programme.levels) count = std::max(count, points.size());
  for (std::size_t level = 1; level < count; ++level) {
    CTK_CHECK(check_interrupt());
    std::vector<std::size_t> chosen;
    for (const auto& points : programme.levels) chosen.push_back(std::min(level, points.size() - 1));
    CTK_TRY(Graph cut, task.coupling.cut(removed_by(task, widths_at(programme.levels, chosen))));
    CTK_TRY(Table table, table_of(session, std::move(cut), whole_us));
    tables.push_back(std::move(table));
  }
  std::optional<pipeline::OutputCache> reference;
  for (std::size_t i = 0; i < tables[0].groups.size(); ++i) {
    const Group& group = tables[0].groups[i];
    JointLayer layer;
    layer.name = group.layers[0];
    layer.members = group.layers;
    layer.group = group_of[i];
    const std::size_t own = layer.group ? programme.levels[*layer.group].size() : 1;
    for (std::size_t level = 0; level < own; ++level) {
      const Table& table = tables[level];
      layer.size.emplace_back();
      layer.latency.emplace_back();
      for (const QuantScheme& scheme : group.choices) {
        layer.size[level].push_back(pipeline::search_table::group_cost(table.bytes, group, scheme, false));
        layer.latency[level].push_back(pipeline::search_table::group_cost(table.latency_us, group, scheme, true));
      }
    }
    for (const QuantScheme& scheme : group.choices) {
      CTK_TRY(const double loss, loss_of(session, group, scheme, reference));
      layer.loss.push_back(loss);
      layer.schemes.push_back(to_string(scheme));
    }
    programme.layers.push_back(std::move(layer));
  }
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const pipeline::BudgetConfig& budget = session.config.budget;
  programme.fixed_size = tables[0].base_bytes;
  programme.fixed_latency = tables[0].base_us;
  programme.size_limit =
      budget.size ? std::floor(budget.size->absolute(static_cast<double>(session.model.file_bytes))) : kNone;
  programme.latency_limit = budget.latency ? budget.latency->absolute(tables[0].baseline_us) : kNone;
  return programme;
}

// Widths for a share of the multiply-adds first, schemes for what is left of the budgets then: the best such share.
Status add_sequential(WidthTask task, const JointProgramme& programme, JointAnswer& answer) {
  Curves curves = programme.levels;
  for (std::vector<CurvePoint>& curve : curves) {
    if (curve.size() == 1) curve.clear();
  }
  for (const double share : kShares) {
    task.macs_kept = share;
    task.ratio.reset();
    const auto widths = widths_from_curves(task, curves);
    if (!widths) continue;
    std::vector<std::size_t> given;
    for (std::size_t g = 0; g < widths->size(); ++g) {
      const auto& points = programme.levels[g];
      const auto at = std::ranges::find(points, (*widths)[g], &CurvePoint::width);
      given.push_back(at == points.end() ? 0 : static_cast<std::size_t>(at - points.begin()));
    }
    const auto choice = solve_joint(programme, given);
    if (!choice && choice.error().code != ErrorCode::budget_infeasible) return choice.error();
    if (!choice || (answer.sequential_loss && choice->loss >= *answer.sequential_loss)) continue;
    answer.sequential_loss = choice->loss;
    answer.sequential_macs = static_cast<double>(task.macs.of(removed_by(task, *widths))) /
                             static_cast<double>(std::max<std::int64_t>(1, task.macs.whole()));
  }
  return {};
}

// What the file of an answer takes: cut, coded by rounding, written.
Result<double> written_bytes(Session& session, const WidthTask& task, const JointProgramme& programme,
                             const JointChoice& choice) {
  CTK_TRY(Graph cut, task.coupling.cut(removed_by(task, widths_at(programme.levels, choice.levels))));
  quantization::SchemeMap schemes;
  for (std::size_t l = 0; l < programme.layers.size(); ++l) {
    CTK_TRY(const QuantScheme scheme, parse_scheme(programme.layers[l].schemes[choice.schemes[l]]));
    for (const std::string& member : programme.layers[l].members) schemes[member] = scheme;
  }
  CTK_TRY(const auto applied, quantization::apply_schemes(cut, schemes, session.ranges, session.plain_options()));
  CTK_TRY(const std::size_t bytes,
          pipeline::file_bytes(cut, pipeline::budget_format(session.config), session.config.model));
  return static_cast<double>(bytes);
}

// Sums over layers miss what they share in a file: what the answer as written takes more becomes a fixed part, and the
// programme is solved again.
Result<JointChoice> solve_as_written(Session& session, const WidthTask& task, JointProgramme& programme) {
  constexpr int kMostCorrections = 8;
  for (int round = 0;; ++round) {
    auto solved = solve_joint(programme);
    if (!solved && solved.error().code == ErrorCode::budget_infeasible)
      return std::move(solved).error().with_context("stages.prune.ratios: joint: widths and schemes together");
    CTK_TRY(JointChoice choice, std::move(solved));
    CTK_TRY(const double bytes, written_bytes(session, task, programme, choice));
    if (bytes <= programme.size_limit) {
      choice.size = bytes;
      return choice;
    }
    if (round == kMostCorrections)
      return Error{ErrorCode::budget_infeasible, "stages.prune.ratios: joint: budget.size: expected at most " +
                                                     search::format_amount(programme.size_limit, "B") + ", found " +
                                                     search::format_amount(bytes, "B") + " as written, " +
                                                     std::to_string(kMostCorrections) +
                                                     " answers in a row. Raise the budget"};
    programme.fixed_size += std::max(1.0, bytes - choice.size);
  }
}

}  // namespace

nlohmann::json to_json(const JointAnswer& answer) {
  nlohmann::json line{
      {"schemes", answer.schemes}, {"loss", answer.loss}, {"size", answer.size}, {"latency", answer.latency}};
  if (answer.sequential_loss) {
    line["sequential_loss"] = *answer.sequential_loss;
    line["sequential_macs"] = *answer.sequential_macs;
  }
  return line;
}

std::string told(const nlohmann::json& answer) {
  char text[160];
  std::snprintf(text, sizeof text, "widths and schemes chosen together, before any tuning: %.4g nats predicted",
                answer["loss"].get<double>());
  std::string line = text;
  if (!answer.contains("sequential_loss"))
    return line + "; no widths chosen first, of nine shares of the multiply-adds, leave schemes that keep the budgets";
  std::snprintf(text, sizeof text,
                "; widths first, at the share of the multiply-adds that suits best (%.0f %%), then schemes, in the "
                "same sums: %.4g",
                100 * answer["sequential_macs"].get<double>(), answer["sequential_loss"].get<double>());
  return line + text;
}

Result<JointAnswer> joint_widths(Session& session, const WidthTask& task, const Curves& curves) {
  const auto ranges = session.ranges;
  if (session.config.has_stage("calibrate")) CTK_CHECK(pipeline::measure_ranges(session));
  const auto layers = layers_of_groups(task.coupling);
  auto made = programme_of(session, task, levels_of(task, curves, layers), layers);
  auto chosen = made ? solve_as_written(session, task, *made) : Result<JointChoice>(made.error());
  session.ranges = ranges;
  CTK_TRY(const JointChoice choice, std::move(chosen));
  const JointProgramme& programme = *made;
  JointAnswer answer;
  answer.widths = widths_at(programme.levels, choice.levels);
  for (std::size_t l = 0; l < programme.layers.size(); ++l)
    answer.schemes[programme.layers[l].name] = programme.layers[l].schemes[choice.schemes[l]];
  answer.loss = choice.loss;
  answer.size = choice.size;
  answer.latency = session.config.budget.latency ? choice.latency : 0;
  CTK_CHECK(add_sequential(task, programme, answer));
  return answer;
}

}  // namespace ctk::pruning

#include "compress/revert.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "compress/search_files.h"
#include "compress/size.h"
#include "compress/summary.h"
#include "graph/layer.h"
#include "search/problem.h"

namespace ctk::pipeline {
namespace {

using quantization::SchemeMap;
using search_table::Group;

// Layers that climb together, and the schemes they may climb through, the present one first.
struct Ladder {
  std::vector<std::string> layers;
  std::vector<QuantScheme> rungs;
  std::vector<double> loss;  // [rungs], by the scores; empty: there are none
};

// One rung of one ladder.
struct Step {
  std::size_t ladder = 0;
  QuantScheme from, to;
  double bytes = 0;          // more of weights
  double rank = 0;           // benefit a byte
  exporter::Figure benefit;  // measured, nats
  bool is_kept = false;
};

std::vector<Ladder> ladders_of_search(const search_table::Table& table, const SchemeMap& schemes) {
  std::vector<Ladder> ladders;
  for (const Group& group : table.groups) {
    const auto found = schemes.find(group.layers[0]);
    if (found == schemes.end()) continue;
    const auto loss_of = [&](const QuantScheme& scheme) {
      return search_table::group_cost(table.loss, group, scheme, true);
    };
    std::vector<QuantScheme> better;
    for (const QuantScheme& scheme : group.choices) {
      if (loss_of(scheme) < loss_of(found->second)) better.push_back(scheme);
    }
    std::ranges::stable_sort(better, std::ranges::greater{}, loss_of);
    Ladder ladder{group.layers, {found->second}, {loss_of(found->second)}};
    for (const QuantScheme& scheme : better) {
      ladder.rungs.push_back(scheme);
      ladder.loss.push_back(loss_of(scheme));
    }
    ladders.push_back(std::move(ladder));
  }
  return ladders;
}

// Layers of one weight go together, each to float.
std::vector<Ladder> ladders_of_one_scheme(const graph::Graph& graph, const SchemeMap& schemes) {
  std::vector<Ladder> ladders;
  std::map<graph::ValueId, std::size_t> by_weight;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    const auto found = schemes.find(graph.address(layer.node));
    if (found == schemes.end() || found->second == QuantScheme{}) continue;
    const auto [at, is_new] = by_weight.emplace(layer.weight, ladders.size());
    if (is_new) ladders.push_back({{}, {found->second, QuantScheme{}}, {}});
    ladders[at->second].layers.push_back(found->first);
  }
  return ladders;
}

class Revert {
 public:
  Revert(const Session& session, Floor& floor, const Contest& contest, std::vector<Ladder> ladders)
      : session_(session), floor_(floor), contest_(contest), ladders_(std::move(ladders)) {
    for (const graph::Layer& layer : graph::layers_of(session.model.graph)) {
      const graph::Value& weight = session.model.graph.value(layer.weight);
      weights_[session.model.graph.address(layer.node)] = {layer, weight.constant ? weight.constant->size() : 0};
    }
    for (const quantization::LayerOutcome& layer : contest.taken.outcome.layers)
      weight_error_[layer.address] = layer.error_method;
  }

  // The state before: measured already.
  Result<Reverted> run(const Floor::Verdict& before, SchemeMap schemes) {
    kl_below_ = before.kl;
    CTK_TRY(const std::size_t level, climb(schemes));
    SchemeMap below = schemes;
    set_level(below, level - 1);
    steps_ = steps_from(level - 1);
    CTK_CHECK(rank(below));
    CTK_CHECK(bisect(below));
    CTK_CHECK(take_back(below));
    Reverted out{std::move(held_network_), with_kept(below), {}};
    out.part.metric = floor_.metric();
    out.part.limit = floor_.limit().value;
    out.part.drop_before = before.drop;
    out.part.kl_before = before.kl;
    out.part.drop_after = held_.drop;
    out.part.kl_after = held_.kl;
    out.part.evaluations = floor_.evaluations();
    out.part.most_evaluations = most();
    // Rungs below the last step were needed by all.
    for (std::size_t l = 0; l < ladders_.size(); ++l) {
      const Ladder& ladder = ladders_[l];
      const std::size_t rung = std::min(level - 1, ladder.rungs.size() - 1);
      if (rung > 0)
        tell(out.part, ladder, {l, ladder.rungs[0], ladder.rungs[rung], bytes_more(ladder, 0, rung), 0, {}, true});
    }
    for (const Step& step : steps_) tell(out.part, ladders_[step.ladder], step);
    return out;
  }

 private:
  std::int64_t most() const { return session_.config.quantize->revert; }
  std::int64_t left() const { return most() - floor_.evaluations(); }

  static void tell(exporter::FloorPart& part, const Ladder& ladder, const Step& step) {
    for (const std::string& layer : ladder.layers)
      part.layers.push_back({layer, to_string(step.from), to_string(step.to), step.benefit, step.bytes, step.is_kept});
  }

  // Codes found for the network as it was serve layers that keep their scheme.
  Result<CodedNetwork> code(const SchemeMap& schemes) const {
    quantization::GivenCodes given;
    for (const auto& [layer, codes] : contest_.given) {
      const auto now = schemes.find(layer);
      if (now != schemes.end() && now->second == was(layer)) given.emplace(layer, codes);
    }
    return code_network(session_, schemes, given);
  }
  QuantScheme was(const std::string& layer) const {
    for (const Ladder& ladder : ladders_) {
      if (std::ranges::find(ladder.layers, layer) != ladder.layers.end()) return ladder.rungs[0];
    }
    return {};
  }

  Result<Floor::Verdict> measure(const SchemeMap& schemes) {
    CTK_TRY(const CodedNetwork network, code(schemes));
    return floor_.hold(network.graph);
  }

  // A candidate for the answer: what is within the floor takes the place of the candidate before it.
  Result<Floor::Verdict> try_on(const SchemeMap& schemes) {
    CTK_TRY(CodedNetwork network, code(schemes));
    CTK_TRY(const Floor::Verdict found, floor_.hold(network.graph));
    if (found.is_within) {
      held_ = found;
      held_network_ = std::move(network);
    }
    return found;
  }

  void set_level(SchemeMap& schemes, std::size_t level) const {
    for (const Ladder& ladder : ladders_) {
      for (const std::string& layer : ladder.layers)
        schemes[layer] = ladder.rungs[std::min(level, ladder.rungs.size() - 1)];
    }
  }

  // The least level at which the floor holds with all ladders there.
  Result<std::size_t> climb(const SchemeMap& schemes) {
    std::size_t highest = 0;
    for (const Ladder& ladder : ladders_) highest = std::max(highest, ladder.rungs.size() - 1);
    std::string last;
    for (std::size_t level = 1; level <= highest && left() > 0; ++level) {
      SchemeMap all = schemes;
      set_level(all, level);
      CTK_TRY(const Floor::Verdict found, try_on(all));
      if (found.is_within) return level;
      last = found.text;
      kl_below_ = found.kl;
      if (level == highest) break;
      if (left() > 0) continue;
      return Error{ErrorCode::gate_refused,
                   "budget.metric_drop: expected a drop of at most " + to_text(floor_.limit()) +
                       " on the select split, found " + last + " after " + std::to_string(floor_.evaluations()) +
                       " networks, all that stages.quantize.revert allows. Raise it, allow larger schemes, or loosen "
                       "the limit"};
    }
    return Error{ErrorCode::gate_refused,
                 "budget.metric_drop: expected a drop of at most " + to_text(floor_.limit()) +
                     " on the select split, found " +
                     (last.empty() ? "no more precise scheme for any layer"
                                   : last + " with every layer at its most precise scheme") +
                     ". Allow larger schemes, exclude sensitive layers with `ignore`, or loosen the limit"};
  }

  double bytes_at(const Ladder& ladder, const QuantScheme& scheme) const {
    const auto& [layer, count] = weights_.at(ladder.layers[0]);
    return static_cast<double>(coded_bytes(layer, count, scheme));
  }
  double bytes_more(const Ladder& ladder, std::size_t from, std::size_t to) const {
    return bytes_at(ladder, ladder.rungs[to]) - bytes_at(ladder, ladder.rungs[from]);
  }

  std::vector<Step> steps_from(std::size_t rung) const {
    std::vector<Step> steps;
    for (std::size_t l = 0; l < ladders_.size(); ++l) {
      const Ladder& ladder = ladders_[l];
      if (rung + 1 >= ladder.rungs.size()) continue;
      Step step{l, ladder.rungs[rung], ladder.rungs[rung + 1], bytes_more(ladder, rung, rung + 1), 0, {}, false};
      double worth = 0;
      if (!ladder.loss.empty()) {
        worth = ladder.loss[rung] - ladder.loss[rung + 1];
      } else {
        for (const std::string& layer : ladder.layers) {
          const auto error = weight_error_.find(layer);
          if (error != weight_error_.end()) worth += error->second;
        }
      }
      step.rank = worth / std::max(1.0, step.bytes);
      steps.push_back(step);
    }
    std::ranges::stable_sort(steps, std::ranges::greater{}, &Step::rank);
    return steps;
  }

  // Measures steps alone, the most promising first, with half of what may be measured; measured ones go by that.
  Status rank(const SchemeMap& below) {
    const auto alone = std::min<std::int64_t>(static_cast<std::int64_t>(steps_.size()), left() / 2);
    if (alone <= 0) return {};
    for (std::int64_t s = 0; s < alone; ++s) {
      Step& step = steps_[static_cast<std::size_t>(s)];
      SchemeMap one = below;
      for (const std::string& layer : ladders_[step.ladder].layers) one[layer] = step.to;
      CTK_TRY(const Floor::Verdict found, measure(one));
      step.benefit = kl_below_ - found.kl;
      step.rank = *step.benefit / std::max(1.0, step.bytes);
    }
    const auto measured =
        std::ranges::stable_partition(steps_, [](const Step& step) { return step.benefit.has_value(); });
    std::ranges::stable_sort(steps_.begin(), measured.begin(), std::ranges::greater{}, &Step::rank);
    return {};
  }

  SchemeMap with_kept(const SchemeMap& below) const {
    SchemeMap schemes = below;
    for (const Step& step : steps_) {
      if (!step.is_kept) continue;
      for (const std::string& layer : ladders_[step.ladder].layers) schemes[layer] = step.to;
    }
    return schemes;
  }

  // The shortest prefix of the order that holds the floor; all steps do.
  Status bisect(const SchemeMap& below) {
    std::size_t low = 0, high = steps_.size();
    while (high - low > 1 && left() > 0) {
      const std::size_t middle = low + (high - low) / 2;
      for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s].is_kept = s < middle;
      CTK_TRY(const Floor::Verdict found, try_on(with_kept(below)));
      (found.is_within ? high : low) = middle;
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s].is_kept = s < high;
    return {};
  }

  // Steps whose absence the floor does not notice, the least useful first.
  Status take_back(const SchemeMap& below) {
    for (std::size_t s = steps_.size(); s-- > 0 && left() > 0;) {
      if (!steps_[s].is_kept) continue;
      if (std::ranges::count(steps_, true, &Step::is_kept) == 1) return {};
      steps_[s].is_kept = false;
      CTK_TRY(const Floor::Verdict found, try_on(with_kept(below)));
      if (!found.is_within) steps_[s].is_kept = true;
    }
    return {};
  }

  const Session& session_;
  Floor& floor_;
  const Contest& contest_;
  std::vector<Ladder> ladders_;
  std::vector<Step> steps_;
  double kl_below_ = 0;        // of the network that the last steps start from
  CodedNetwork held_network_;  // the most economical one found within the floor
  Floor::Verdict held_;        // of it
  std::map<std::string, std::pair<graph::Layer, std::size_t>> weights_;
  std::map<std::string, double> weight_error_;
};

// Precision costs what other budgets may not have.
Status hold_budgets(const Session& session, const Reverted& found) {
  const BudgetConfig& budget = session.config.budget;
  std::string broken, raised;
  const auto hold = [&](const char* name, const char* unit, double limit, double value) {
    if (value <= limit * (1 + 1e-9)) return;
    broken += (broken.empty() ? "" : ", ") + std::string(name) + " " + search::format_amount(value, unit) +
              " (at most " + search::format_amount(limit, unit) + ")";
  };
  if (budget.size) {
    CTK_TRY(const std::size_t bytes,
            file_bytes(found.network.graph, budget_format(session.config), session.config.model));
    hold("size", "B", budget.size->absolute(static_cast<double>(session.model.file_bytes)), static_cast<double>(bytes));
  }
  if (budget.bits) hold("bits", "", budget.bits->value, average_bits(found.network.graph));
  if (budget.peak_memory) {
    CTK_TRY(const auto before, runtime::CpuExecutor::create(session.float_graph(), batch_shapes(session.model, 1)));
    CTK_TRY(const auto after, runtime::CpuExecutor::create(found.network.graph, batch_shapes(session.model, 1)));
    hold("peak_memory", "B", budget.peak_memory->absolute(search_table::peak_bytes(*before)),
         search_table::peak_bytes(*after));
  }
  if (broken.empty()) return {};
  for (const exporter::RevertRow& row : found.part.layers) {
    if (row.is_kept) raised += (raised.empty() ? "" : ", ") + row.name + " " + row.from + " -> " + row.to;
  }
  return Error{ErrorCode::budget_infeasible,
               "budget.metric_drop: expected a drop of at most " + to_text(session.config.budget.metric_drop.value()) +
                   " on the select split, found " + search::format_amount(*found.part.drop_before, "") +
                   " (in the unit of the limit); giving back precision (" + raised + ") brings it to " +
                   search::format_amount(*found.part.drop_after, "") + ", but takes " + broken +
                   ". Raise that budget, or the drop"};
}

}  // namespace

Result<std::optional<Reverted>> revert_to_floor(const Session& session, Floor& floor, const Contest& contest) {
  if (session.config.quantize->revert == 0) return std::optional<Reverted>{};
  CTK_TRY(const Floor::Verdict before, floor.hold(contest.taken.graph));
  if (before.is_within) return std::optional<Reverted>{};
  const SchemeMap& schemes = session.finalists[contest.finalist].schemes;
  std::vector<Ladder> ladders;
  if (session.config.quantize->scheme) {
    ladders = ladders_of_one_scheme(session.model.graph, schemes);
  } else {
    std::vector<std::string> warnings;
    CTK_TRY(const search_table::SavedSearch saved, search_table::read_search_files(session.output, warnings));
    ladders = ladders_of_search(saved.table, schemes);
  }
  auto found = Revert(session, floor, contest, std::move(ladders)).run(before, schemes);
  if (!found) {
    // What the select split cannot tell from chance, the test split decides.
    if (found.error().code == ErrorCode::gate_refused && !before.is_clearly_broken) return std::optional<Reverted>{};
    return std::move(found).error();
  }
  CTK_CHECK(hold_budgets(session, *found));
  return std::optional<Reverted>(std::move(*found));
}

}  // namespace ctk::pipeline

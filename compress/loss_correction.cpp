// Minimises the sum over layers of loss * gain * scale under the limits of the run.
// In: the search's files, a coded network with what it measured. Out: further networks, a row a round.
// Cost: a solve a round, and what coding and measuring take.
// What is corrected: scores are of rounding, so a method that fits codes to inputs gains, in some layers far more than
// in others (gain: squared error of the layer's output over rounding's, on held-out rows); and losses do not quite add
// up (scale). One scale alone would leave every choice as it was. Source: HAWQ-V3 and its like score once and solve
// once; the loop is ours.
#include "compress/loss_correction.h"

#include <algorithm>
#include <cmath>

#include "compress/search_build.h"
#include "compress/search_files.h"

namespace ctk::pipeline::search_table {
namespace {

constexpr double kAgreement = 0.1;

class Gains {
 public:
  explicit Gains(const Correction& correction) : correction_(correction) {
    for (const auto& [key, gain] : correction.gains) {
      by_layer_[key.first].first += gain;
      by_layer_[key.first].second += 1;
      all_ += gain;
    }
  }

  double of(const std::string& layer, const std::string& scheme) const {
    if (correction_.gains.empty() || scheme == to_string(QuantScheme{})) return 1;
    if (const auto own = correction_.gains.find({layer, scheme}); own != correction_.gains.end()) return own->second;
    if (const auto others = by_layer_.find(layer); others != by_layer_.end())
      return others->second.first / others->second.second;
    return all_ / static_cast<double>(correction_.gains.size());
  }

 private:
  const Correction& correction_;
  std::map<std::string, std::pair<double, double>> by_layer_;  // sum, count
  double all_ = 0;
};

double loss_of(const Table& table, const quantization::SchemeMap& schemes) {
  std::vector<std::size_t> choices;
  for (const Group& group : table.groups) {
    const auto scheme = schemes.find(group.layers[0]);
    const auto at = std::ranges::find(group.choices, scheme == schemes.end() ? QuantScheme{} : scheme->second);
    choices.push_back(at == group.choices.end() ? 0 : static_cast<std::size_t>(at - group.choices.begin()));
  }
  return search::total_of(make_problem(table, kNoLimits, {}), std::move(choices)).loss;
}

std::int64_t changed_between(const quantization::SchemeMap& a, const quantization::SchemeMap& b) {
  return std::ranges::count_if(a, [&](const auto& entry) {
    const auto other = b.find(entry.first);
    return other == b.end() || !(other->second == entry.second);
  });
}

Finalist finalist_of(const Table& table, const Solution& found, const Limits& prices, const Finalist& first,
                     int round) {
  Finalist next;
  next.schemes = found.schemes;
  next.origin = "losses put right, round " + std::to_string(round);
  next.predicted_loss = found.answer.loss;
  next.predicted = first.predicted;  // of the float network
  next.predicted["size"] = found.built.bytes;
  next.predicted["bits"] = found.built.bits;
  next.predicted["loss"] = found.answer.loss;
  for (std::size_t b = 0; b < std::size(kBudgets); ++b) {
    if (kBudgets[b].is_of_running && has_costs(table, b))
      next.predicted[std::string(kBudgets[b].name)] = found.answer.costs[b];
  }
  for (const Group& group : table.groups) {
    for (const std::string& layer : group.layers)
      next.reasons[layer] = reason_for(table, group, found.schemes.at(layer), prices);
  }
  return next;
}

}  // namespace

Table corrected(const Table& table, const Correction& correction) {
  const Gains gains(correction);
  Table right = table;
  for (auto& [key, loss] : right.loss) loss *= correction.scale * gains.of(key.first, key.second);
  for (auto& [key, error] : right.loss_error) error *= correction.scale * gains.of(key.first, key.second);
  for (PairLoss& pair : right.pairs) {
    const double both = correction.scale *
                        std::sqrt(gains.of(pair.first, pair.first_scheme) * gains.of(pair.second, pair.second_scheme));
    pair.sum *= both;
    pair.together *= both;
  }
  return right;
}

Result<LossRounds> correct_losses(const Session& session, const Finalist& first, const MeasuredLoss& measured,
                                  std::size_t most, const CodeAndMeasure& code) {
  LossRounds rounds;
  std::vector<std::string> ignored;
  CTK_TRY(const SavedSearch saved, read_search_files(session.output, ignored));
  CTK_TRY(const search::Solver* solver, search::find_solver(session.config.search->solver));
  Limits extra = saved.extra;
  std::vector<quantization::SchemeMap> known{first.schemes};
  MeasuredLoss found = measured;
  double predicted = first.predicted_loss.value_or(0);
  std::int64_t changed = 0;
  for (;;) {
    for (const auto& [key, gain] : found.gains) rounds.correction.gains[key] = gain;
    rounds.correction.scale = 1;
    const double sum = loss_of(corrected(saved.table, rounds.correction), known.back());
    if (sum > 0) rounds.correction.scale = found.kl / sum;
    exporter::LossRoundRow& row = rounds.rows.emplace_back();
    row.predicted = predicted;
    row.measured = found.kl;
    row.scale = rounds.correction.scale;
    row.changed = changed;
    const double off = std::abs(predicted - found.kl);
    if (off <= std::max(kAgreement * found.kl, 2 * found.standard_error)) {
      row.result = "agrees";
      return rounds;
    }
    if (rounds.finalists.size() == most) {
      row.result = "as many networks as allowed";
      return rounds;
    }
    const Table right = corrected(saved.table, rounds.correction);
    CTK_TRY(const Solution next, solve_and_build(session, right, nullptr, *solver, saved.limit, saved.limit, extra));
    if (std::ranges::find(known, next.schemes) != known.end()) {
      row.result = "the same schemes again";
      return rounds;
    }
    row.result = "solved again";
    const Limits prices = prices_of(*solver, right, saved.limit, extra, next.answer.loss);
    const int round = static_cast<int>(rounds.finalists.size()) + 1;
    rounds.finalists.push_back(finalist_of(right, next, prices, first, round));
    changed = changed_between(next.schemes, known.back());
    known.push_back(next.schemes);
    predicted = next.answer.loss;
    CTK_TRY(found, code(rounds.finalists.back()));
  }
}

}  // namespace ctk::pipeline::search_table

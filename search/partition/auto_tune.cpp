#include "search/partition/auto_tune.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "search/partition/explain.h"
#include "search/problem.h"

namespace ctk::search::partition {
namespace {

Status check_profile(const Task& task, const Profile& profile) {
  const auto is_time = [](double us) { return std::isfinite(us) && us >= 0; };
  bool fits = profile.node_us.size() == task.nodes.size() && profile.value_us.size() == task.values.size() &&
              is_time(profile.total_us) && std::all_of(profile.node_us.begin(), profile.node_us.end(), is_time);
  for (const auto& row : profile.value_us)
    fits = fits && row.size() == task.units.size() && std::all_of(row.begin(), row.end(), is_time);
  if (fits) return {};
  return input_error("partition.profile: expected finite times >= 0 of " + std::to_string(task.nodes.size()) +
                     " nodes and of " + std::to_string(task.values.size()) + " values on " +
                     std::to_string(task.units.size()) + " units, found others. Profile this task");
}

// Corrects the task in place; the notes say what.
std::vector<std::string> correct(Task& task, const Plan& plan, const Profile& profile) {
  constexpr double kClose = 0.05;  // a prediction this near to the measurement stays
  const auto differs = [](double predicted, double took) { return std::abs(predicted - took) > kClose * took; };
  const auto told = [](double predicted, double took) {
    return ": predicted " + format_amount(predicted, "us") + ", took " + format_amount(took, "us");
  };
  std::vector<std::string> notes;
  const std::vector<Segment> segments = segments_of(task, plan.unit_of);
  std::vector<double> segment_us(task.nodes.size(), 0);  // [nodes], of the segment the node is in
  for (const Segment& segment : segments) {
    double sum = segment.launch_us;
    for (std::size_t i = segment.begin; i < segment.end; ++i) sum += profile.node_us[i];
    std::fill(segment_us.begin() + static_cast<std::ptrdiff_t>(segment.begin),
              segment_us.begin() + static_cast<std::ptrdiff_t>(segment.end), sum);
  }
  std::set<std::size_t> corrected;
  for (const Transfer& transfer : transfers_of(task, plan.unit_of)) {
    Value& value = task.values[transfer.value];
    double waits = 0;
    for (std::size_t consumer : value.consumers) {
      if (plan.unit_of[consumer] == transfer.to) waits = std::max(waits, segment_us[consumer]);
    }
    const double took = profile.value_us[transfer.value][transfer.to];
    if (!corrected.insert(transfer.value).second) continue;  // one scale a value: its first transfer decides
    if (took <= kMostTransfer * (waits + took) || transfer.us <= 0 || !differs(transfer.us, took)) continue;
    value.transfer_scale *= took / transfer.us;
    notes.push_back("value " + value.name + " to " + task.units[transfer.to].name + told(transfer.us, took));
  }
  for (std::size_t i = 0; i < task.nodes.size(); ++i) {
    NodeTime& time = task.nodes[i].on[plan.unit_of[i]];
    const double took = profile.node_us[i];
    if (took <= kMostNode * segment_us[i] || !differs(time.us, took)) continue;
    notes.push_back("node " + task.nodes[i].name + " on " + task.units[plan.unit_of[i]].name + told(time.us, took));
    time.us = took;
    time.source = "measured";
  }
  return notes;
}

}  // namespace

Result<Tuned> auto_tune(Task task, const Solver& solver, const Options& options,
                        const std::function<Result<Profile>(const Plan&)>& run, int most_rounds) {
  Tuned tuned;
  tuned.measured_us = kCannotRun;
  std::set<std::vector<std::size_t>> seen;
  for (int round = 0; round < std::max(1, most_rounds); ++round) {
    CTK_TRY(Plan plan, solve(task, solver, options));
    if (!seen.insert(plan.unit_of).second) break;
    CTK_TRY(const Profile profile, run(plan));
    CTK_CHECK(check_profile(task, profile));
    ++tuned.rounds;
    std::vector<std::string> notes = correct(task, plan, profile);
    if (profile.total_us < tuned.measured_us) {
      tuned.measured_us = profile.total_us;
      tuned.plan = std::move(plan);
    }
    if (notes.empty()) break;
    tuned.notes.insert(tuned.notes.end(), std::make_move_iterator(notes.begin()), std::make_move_iterator(notes.end()));
  }
  tuned.task = std::move(task);
  return tuned;
}

}  // namespace ctk::search::partition

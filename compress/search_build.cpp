#include "compress/search_build.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "compress/infeasible_budgets.h"
#include "compress/size.h"
#include "compress/summary.h"
#include "graph/layer.h"
#include "runtime/measure.h"

namespace ctk::pipeline::search_table {

using graph::Graph;

namespace {

constexpr int kMostCorrections = 6;
constexpr double kLeastRoom = 64;   // bytes that a sum counts too many and that are worth solving again for
constexpr double kRounding = 1e-9;  // sums of bits of groups against bits of the network

// Peak memory is no plain sum: what the corrections made of it is no figure to tell. Told is what was really built, the
// network of the smallest packed weights among it.
Error peak_error(const Session& session, const Table& table, const UniformRun& reference, double limit, double least) {
  quantization::SchemeMap schemes;
  for (const Group& group : table.groups) {
    const auto smallest =
        std::min_element(group.choices.begin(), group.choices.end(), [&](const QuantScheme& a, const QuantScheme& b) {
          return group_cost(table.packed, group, a, true) < group_cost(table.packed, group, b, true);
        });
    for (const std::string& layer : group.layers) schemes[layer] = *smallest;
  }
  auto built = build(session, table, &reference, schemes);
  if (!built) return std::move(built).error();
  return Error{ErrorCode::budget_infeasible,
               "budget.peak_memory: expected at most " + search::format_amount(limit, "B") +
                   ", the smallest network built needs " + search::format_amount(std::min(least, built->peak), "B") +
                   " (packed weights, activations and scratch). Raise the budget, or one that keeps layers large"};
}

// One phase: layers as in the table, the rest as measured, at the rate the machine had while the table was made.
void predict_phase(const PhaseTimes& now, const PhaseTimes& reference, const PhaseCosts& costs,
                   const quantization::SchemeMap& schemes, double& predicted, double& whole) {
  const double drift = reference.us > 0 ? costs.float_us / reference.us : 1.0;
  whole = drift * now.us;
  predicted = drift * now.other_us;
  for (const auto& [layer, scheme] : schemes) {
    if (const auto found = costs.us.find({layer, to_string(scheme)}); found != costs.us.end())
      predicted += found->second;
  }
}

Status measure_phases(const Session& session, const Table& table, const UniformRun& reference,
                      const quantization::SchemeMap& schemes, const Graph& graph, Built& built) {
  CTK_TRY(const auto reader, make_reader(session, graph));
  runtime::Generator* const turn[] = {reader.get(), reference.reader.get()};
  const Graph* const graphs[] = {&graph, reference.graph.get()};
  CTK_TRY(const auto times, measure_readers(turn, graphs, prompt_tokens(session)));
  predict_phase(times[0].decode, times[1].decode, table.decode, schemes, built.decode_us, built.whole_decode_us);
  predict_phase(times[0].prefill, times[1].prefill, table.prefill, schemes, built.prefill_us, built.whole_prefill_us);
  return {};
}

}  // namespace

Result<Built> build(const Session& session, const Table& table, const UniformRun* reference,
                    const quantization::SchemeMap& schemes) {
  Graph graph = session.model.graph.clone();
  quantization::ApplyOptions options = session.plain_options();
  options.bias_correction = session.config.quantize && session.config.quantize->bias_correction;
  options.input_means = &session.input_means;
  CTK_TRY(const auto applied, quantization::apply_schemes(graph, schemes, session.ranges, options));
  Built built;
  CTK_TRY(const std::size_t bytes, file_bytes(graph, budget_format(session.config), session.config.model));
  built.bytes = static_cast<double>(bytes);
  built.bits = average_bits(graph);
  if (reference != nullptr && reference->reader != nullptr)
    CTK_CHECK(measure_phases(session, table, *reference, schemes, graph, built));
  if (reference == nullptr || reference->executor == nullptr) return built;
  for (const auto& [layer, scheme] : schemes) {
    const auto found = table.latency_us.find({layer, to_string(scheme)});
    if (found != table.latency_us.end()) built.latency_us += found->second;
  }
  CTK_TRY(auto executor, runtime::CpuExecutor::create(graph, batch_shapes(session.model, 1)));
  built.peak = peak_bytes(*executor);
  runtime::CpuExecutor* const turn[] = {executor.get(), reference->executor.get()};
  CTK_TRY(const auto whole, runtime::measure_interleaved(turn, {0.2, 20, 2000, 5}));
  CTK_TRY(const auto steps, runtime::measure_steps(turn, {0.2, 20, 2000, 5}));
  const double drift = whole[1].median_us > 0 ? table.float_us / whole[1].median_us : 1.0;
  built.whole_us = whole[0].median_us * drift;
  double other = 0;
  for (const runtime::StepTime& step : steps[0]) {
    if (!step.node.is_valid() || !graph::layer_of(graph, step.node)) other += step.median_us;
  }
  built.latency_us += clock_share(built.whole_us, steps[0]) * other;
  return built;
}

bool add_missed(const Built& built, const search::Assignment& answer, const Limits& limit, Limits& extra) {
  const auto correct = [](double found, double allowed, double summed, double least, double& missed) {
    if (found > allowed) missed += std::max(least, found - summed);
    return found > allowed;
  };
  const bool size = correct(built.bytes, limit.size, answer.costs[0], 1.0, extra.size);
  const bool latency = correct(std::max(built.latency_us, built.whole_us), limit.latency, answer.costs[1],
                               0.01 * limit.latency, extra.latency);
  const bool peak = correct(built.peak, limit.peak, answer.costs[2], 64.0, extra.peak);
  const bool bits = correct(built.bits, limit.bits * (1 + kRounding), answer.costs[3], 1e-6, extra.bits);
  const bool decode = correct(std::max(built.decode_us, built.whole_decode_us), limit.decode, answer.costs[4],
                              0.01 * limit.decode, extra.decode);
  const bool prefill = correct(std::max(built.prefill_us, built.whole_prefill_us), limit.prefill, answer.costs[5],
                               0.01 * limit.prefill, extra.prefill);
  return size || latency || peak || bits || decode || prefill;
}

Result<Solution> solve_and_build(const Session& session, const Table& table, const UniformRun* reference,
                                 const search::Solver& solver, const Limits& limit, const Limits& held, Limits& extra) {
  double least_peak = std::numeric_limits<double>::infinity();  // of what was built
  std::optional<std::pair<Solution, Limits>> kept;              // keeps the limits; what was missed when it was found
  for (int round = 0;; ++round) {
    auto solved = solver.solve(make_problem(table, limit, extra));
    if (!solved && solved.error().code == ErrorCode::budget_infeasible && extra.peak > 0 && reference != nullptr &&
        reference->executor != nullptr)
      return peak_error(session, table, *reference, limit.peak, least_peak);
    if (!solved && solved.error().code == ErrorCode::budget_infeasible)
      return infeasible_error(make_problem(table, limit, extra), true, search::solve_ilp, session.output);
    CTK_TRY(search::Assignment answer, std::move(solved));
    quantization::SchemeMap schemes = to_schemes(table, answer);
    CTK_TRY(const Built built, build(session, table, reference, schemes));
    least_peak = std::min(least_peak, built.peak);
    Solution found{std::move(answer), std::move(schemes), built, round};
    const bool is_broken = add_missed(built, found.answer, held, extra);
    if (!is_broken && (!kept || found.answer.loss < kept->first.answer.loss)) {
      const double unseen = found.answer.costs[0] - built.bytes;
      kept = {std::move(found), extra};
      if (round == kMostCorrections || !std::isfinite(limit.size) || unseen < kLeastRoom) return std::move(kept->first);
      extra.size -= unseen;
      continue;
    }
    if (kept) {
      extra = kept->second;
      return std::move(kept->first);
    }
    if (round == kMostCorrections) return found;
  }
}

}  // namespace ctk::pipeline::search_table

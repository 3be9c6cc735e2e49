// The search stage: one scheme a layer, by an integer programme over measured losses, exact bytes and measured times.
//
// Bytes: what the written file grows by when the layer alone takes the scheme, asked from the exporter. Times: the
// layer's step in a network that has this scheme everywhere, measured interleaved on this machine. Peak memory: the
// layer's packed weights in that network, with buffers as a fixed part. All are sums over layers; what they miss (notes
// shared by neighbours, conversions at borders, buffers) is found by building the answer, and the programme is solved
// again with the difference as a fixed cost until the built network keeps the limits.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "compress/search_files.h"
#include "compress/search_plan.h"
#include "compress/session.h"
#include "compress/size.h"
#include "compress/summary.h"
#include "core/cpu_isa.h"
#include "core/parallel.h"
#include "graph/layer.h"
#include "runtime/measure.h"
#include "search/infeasible.h"
#include "search/solvers/solvers.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;
using graph::Layer;
using nlohmann::json;

using namespace search_table;

constexpr int kMostCorrections = 6;

// The answer as it will really be: bytes by the exporter, memory by its plan, times of layers from the table and of all
// other steps measured. Times are of the minute in which the table was made: the float network, run in turn with the
// answer, says how much slower or faster the machine has become since.
struct Built {
  double bytes = 0, peak = 0;
  double latency_us = 0;  // sum over layers and other steps: the prediction
  double whole_us = 0;    // the whole network, measured
};

// reference: the float network; null when only bytes are asked.
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
  if (reference == nullptr) return built;
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
  double sum = 0, other = 0;
  for (const runtime::StepTime& step : steps[0]) {
    sum += step.median_us;
    if (!step.node.is_valid() || !graph::layer_of(graph, step.node)) other += step.median_us;
  }
  built.latency_us += sum > 0 ? other / sum * built.whole_us : 0;
  return built;
}

// What the sums missed for this answer becomes a fixed cost of the next one. True: some limit is broken.
bool add_missed(const Built& built, const search::Assignment& answer, const Limits& limit, Limits& extra) {
  const auto correct = [](double found, double allowed, double summed, double least, double& missed) {
    if (found > allowed) missed += std::max(least, found - summed);
    return found > allowed;
  };
  const bool size = correct(built.bytes, limit.size, answer.costs[0], 1.0, extra.size);
  const bool latency = correct(std::max(built.latency_us, built.whole_us), limit.latency, answer.costs[1],
                               0.01 * limit.latency, extra.latency);
  const bool peak = correct(built.peak, limit.peak, answer.costs[2], 64.0, extra.peak);
  return size || latency || peak;
}

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

// Networks of one scheme, float first, with their memory and times in the table; none where no budget asks about
// running.
Result<std::vector<UniformRun>> measure_runs(const Session& session, Table& table) {
  const BudgetConfig& budget = session.config.budget;
  if (!budget.latency && !budget.peak_memory) return std::vector<UniformRun>{};
  CTK_TRY(auto runs, uniform_runs(session, table.groups, session.ranges));
  fill_peak(runs, table);
  CTK_CHECK(fill_times(runs, table));
  CTK_CHECK(fill_baseline(session, table));
  return runs;
}

// The best answer whose network, as built, keeps the limits.
struct Solution {
  search::Assignment answer;
  quantization::SchemeMap schemes;
  Built built;
  int corrections = 0;
};

Result<Solution> solve_and_build(const Session& session, const Table& table, const UniformRun* reference,
                                 const search::Solver& solver, const Limits& limit, Limits& extra) {
  double least_peak = std::numeric_limits<double>::infinity();  // of what was built
  for (int round = 0;; ++round) {
    auto solved = solver.solve(make_problem(table, limit, extra));
    if (!solved && solved.error().code == ErrorCode::budget_infeasible && extra.peak > 0 && reference != nullptr)
      return peak_error(session, table, *reference, limit.peak, least_peak);
    CTK_TRY(search::Assignment answer, std::move(solved));
    quantization::SchemeMap schemes = to_schemes(table, answer);
    CTK_TRY(const Built built, build(session, table, reference, schemes));
    least_peak = std::min(least_peak, built.peak);
    if (!add_missed(built, answer, limit, extra) || round == kMostCorrections)
      return Solution{std::move(answer), std::move(schemes), built, round};
  }
}

json describe(const Table& table, const quantization::SchemeMap& schemes, const Limits& prices) {
  json line{{"schemes", json::object()}, {"reasons", json::object()}};
  for (const Group& group : table.groups) {
    for (const std::string& layer : group.layers) {
      line["schemes"][layer] = to_string(schemes.at(layer));
      line["reasons"][layer] = reason_for(table, group, schemes.at(layer), prices);
    }
  }
  return line;
}

// The answers to measure as a whole: the best one, and others that keep the limits as built.
Result<json> finalists_of(const Session& session, const Table& table, const UniformRun* reference,
                          const search::Solver& solver, const Limits& limit, const Limits& extra, const Solution& best,
                          const Limits& prices) {
  json finalists = json::array();
  const auto add = [&](const quantization::SchemeMap& schemes, const Built& built, double loss,
                       const std::string& origin) {
    json line = describe(table, schemes, prices);
    line["predicted"] = {{"size", built.bytes}, {"loss", loss}};
    if (reference != nullptr) {
      line["predicted"]["latency"] = built.latency_us;
      line["predicted"]["peak_memory"] = built.peak;
      line["predicted"]["float_us"] = table.baseline_us;
    }
    line["origin"] = origin;
    finalists.push_back(std::move(line));
  };
  add(best.schemes, best.built, best.answer.loss, "best by the scores");
  const auto wanted = static_cast<std::size_t>(session.config.search->finalists - 1);
  for (const Alternative& other :
       alternatives_to(best.answer, solver, table, limit, extra, wanted, session.config.seed)) {
    const quantization::SchemeMap schemes = to_schemes(table, other.answer);
    CTK_TRY(const Built built, build(session, table, reference, schemes));
    Limits missed;
    if (!add_missed(built, other.answer, limit, missed)) add(schemes, built, other.answer.loss, other.origin);
  }
  return finalists;
}

Result<std::string> search_all(Session& session) {
  Table table;
  CTK_TRY(table.groups, make_groups(session));
  for (const Score& score : session.scores) {
    table.loss[{score.layer, score.scheme}] = score.loss;
    table.loss_error[{score.layer, score.scheme}] = score.standard_error;
  }
  CTK_CHECK(fill_bytes(session, table));
  CTK_TRY(const std::vector<UniformRun> runs, measure_runs(session, table));
  const UniformRun* reference = runs.empty() ? nullptr : &runs[0];
  const BudgetConfig& budget = session.config.budget;
  const auto limit_of = [](const std::optional<Limit>& given, double baseline) {
    return given ? given->absolute(baseline) : std::numeric_limits<double>::infinity();
  };
  const Limits limit{std::floor(limit_of(budget.size, static_cast<double>(session.model.file_bytes))),
                     limit_of(budget.latency, table.baseline_us), limit_of(budget.peak_memory, table.baseline_peak)};
  CTK_TRY(const search::Solver* solver, search::find_solver(session.config.search->solver));
  Limits extra;
  CTK_TRY(const Solution best, solve_and_build(session, table, reference, *solver, limit, extra));
  const Limits prices = prices_of(*solver, table, limit, extra, best.answer.loss);
  CTK_TRY(json finalists, finalists_of(session, table, reference, *solver, limit, extra, best, prices));
  json artifact{{"finalists", std::move(finalists)},
                {"skipped", json::array()},
                {"prices", json::object()},
                {"corrections", best.corrections},
                {"proved_optimal", best.answer.proved_optimal},
                {"bound", best.answer.bound},
                {"gap", best.answer.gap},
                {"limits",
                 {{"size", budget.size ? json(limit.size) : json()},
                  {"latency", budget.latency ? json(limit.latency) : json()},
                  {"peak_memory", budget.peak_memory ? json(limit.peak) : json()}}}};
  const auto tell_price = [&](const char* name, double at, double price) {
    if (std::isfinite(at)) artifact["prices"][name] = price;
  };
  tell_price("size", limit.size, prices.size);
  tell_price("latency", limit.latency, prices.latency);
  tell_price("peak_memory", limit.peak, prices.peak);
  const Limits baseline{static_cast<double>(session.model.file_bytes), table.baseline_us, table.baseline_peak};
  artifact["files"] = to_json(
      {std::move(table), limit, extra, baseline, reference != nullptr ? session.report.machine.cpu : std::string()});
  for (const exporter::SkippedRow& row : session.report.skipped)
    artifact["skipped"].push_back({row.name, row.op, row.reason});
  return artifact.dump(1);
}

Status restore(Session& session, const std::string& text) {
  const json artifact = json::parse(text, nullptr, false);
  if (artifact.is_discarded()) return internal_error("the search artifact is not JSON");
  CTK_CHECK(write_search_files(artifact["files"], artifact["finalists"][0]["schemes"], session.output));
  session.finalists.clear();
  for (const json& line : artifact["finalists"]) {
    Finalist finalist;
    for (const auto& [layer, name] : line["schemes"].items()) {
      CTK_TRY(finalist.schemes[layer], parse_scheme(name.get<std::string>()));
      finalist.reasons[layer] = line["reasons"][layer];
    }
    finalist.origin = line["origin"];
    finalist.predicted_loss = line["predicted"]["loss"].get<double>();
    for (const auto& [name, value] : line["predicted"].items()) finalist.predicted[name] = value;
    session.finalists.push_back(std::move(finalist));
  }
  session.schemes = session.finalists[0].schemes;
  session.reasons = session.finalists[0].reasons;
  session.report.skipped.clear();
  for (const json& row : artifact["skipped"]) session.report.skipped.push_back({row[0], row[1], row[2]});
  for (const auto& [name, value] : session.finalists[0].predicted) session.predicted[name] = value;
  for (const auto& [name, value] : artifact["prices"].items()) session.prices[name] = value;
  list_losses(session);
  session.report.certificate = exporter::CertificatePart{session.finalists[0].predicted_loss.value_or(0),
                                                         artifact["bound"],
                                                         artifact["gap"],
                                                         artifact["proved_optimal"],
                                                         artifact["corrections"],
                                                         {}};
  return {};
}

}  // namespace

void list_losses(Session& session) {
  for (exporter::LayerRow& row : session.report.layers) {
    for (const Score& score : session.scores) {
      const auto found = session.schemes.find(row.name);
      if (found != session.schemes.end() && score.layer == row.name && score.scheme == to_string(found->second))
        row.loss = score.loss;
    }
  }
}

Status run_search(Session& session, bool& cached) {
  if (session.scores.empty()) return config_error("expected a sensitivity stage before it, found no scores. Add one");
  const BudgetConfig& budget = session.config.budget;
  std::vector<std::string> extra{session.config.fingerprint_of({"budget", "stages.quantize", "stages.export"})};
  extra.push_back(std::to_string(session.model.file_bytes));
  if (budget.latency) {  // times of another machine or thread count are another problem
    extra.push_back(session.report.machine.cpu + session.report.machine.isa + std::to_string(threads()));
  }
  session.fingerprint = stage_fingerprint(session, "search", extra);
  auto artifact = session.cache.get("search", session.fingerprint);
  cached = artifact.has_value();
  if (!cached) {
    CTK_TRY(artifact, search_all(session));
    CTK_CHECK(session.cache.put("search", session.fingerprint, *artifact));
  }
  return restore(session, *artifact);
}

}  // namespace ctk::pipeline

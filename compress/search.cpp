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
#include <set>

#include "compress/search_table.h"
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

// Limits in the unit of each budget, infinity where the file sets none, and what the sums over layers were found to
// miss.
struct Limits {
  double size, latency, peak;
};

search::Problem make_problem(const Table& table, const Limits& limit, const Limits& extra) {
  search::Problem problem;
  problem.budgets.push_back({"size", limit.size, table.base_bytes + extra.size, "B"});
  problem.budgets.push_back({"latency", limit.latency, std::max(0.0, table.base_us + extra.latency), "us"});
  problem.budgets.push_back({"peak_memory", limit.peak, table.base_peak + extra.peak, "B"});
  for (const Group& group : table.groups) {
    search::Item item;
    item.name = group.layers[0];
    for (const QuantScheme& scheme : group.choices) {
      item.choices.push_back(
          {to_string(scheme),
           group_cost(table.loss, group, scheme, true),
           {group_cost(table.bytes, group, scheme, false), group_cost(table.latency_us, group, scheme, true),
            group_cost(table.packed, group, scheme, true)}});
    }
    problem.items.push_back(std::move(item));
  }
  return problem;
}

quantization::SchemeMap to_schemes(const Table& table, const search::Assignment& answer) {
  quantization::SchemeMap schemes;
  for (std::size_t g = 0; g < table.groups.size(); ++g) {
    for (const std::string& layer : table.groups[g].layers) schemes[layer] = table.groups[g].choices[answer.choices[g]];
  }
  return schemes;
}

// The answer as it will really be: bytes by the exporter, memory by its plan, times of layers from the table and of all
// other steps measured. Times are of the minute in which the table was made: the float network, run in turn with the
// answer, says how much slower or faster the machine has become since.
struct Built {
  double bytes = 0, peak = 0;
  double latency_us = 0;  // sum over layers and other steps: the prediction
  double whole_us = 0;    // the whole network, measured
};

Result<Built> build(const Session& session, const Table& table, const UniformRun& reference,
                    const quantization::SchemeMap& schemes) {
  Graph graph = session.model.graph.clone();
  quantization::ApplyOptions options = session.plain_options();
  options.bias_correction = session.config.quantize && session.config.quantize->bias_correction;
  options.input_means = &session.input_means;
  CTK_TRY(const auto applied, quantization::apply_schemes(graph, schemes, session.ranges, options));
  Built built;
  CTK_TRY(const std::size_t bytes, file_bytes(graph, budget_format(session.config), session.config.model));
  built.bytes = static_cast<double>(bytes);
  for (const auto& [layer, scheme] : schemes) {
    const auto found = table.latency_us.find({layer, to_string(scheme)});
    if (found != table.latency_us.end()) built.latency_us += found->second;
  }
  CTK_TRY(auto executor, runtime::CpuExecutor::create(graph, batch_shapes(session.model, 1)));
  built.peak = peak_bytes(*executor);
  runtime::CpuExecutor* const turn[] = {executor.get(), reference.executor.get()};
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
  auto built = build(session, table, reference, schemes);
  if (!built) return std::move(built).error();
  return Error{ErrorCode::budget_infeasible,
               "budget.peak_memory: expected at most " + search::format_amount(limit, "B") +
                   ", the smallest network built needs " + search::format_amount(std::min(least, built->peak), "B") +
                   " (packed weights, activations and scratch). Raise the budget, or one that keeps layers large"};
}

// "w4a8_c would save 9.2 kB and lose 0.0213 nats more": what the next smaller choice would have meant.
std::string reason_for(const Table& table, const Group& group, const QuantScheme& chosen) {
  const double bytes = group_cost(table.bytes, group, chosen, false);
  const double loss = group_cost(table.loss, group, chosen, true);
  const QuantScheme* next = nullptr;
  for (const QuantScheme& other : group.choices) {
    const double other_bytes = group_cost(table.bytes, group, other, false);
    if (other_bytes < bytes && (next == nullptr || other_bytes > group_cost(table.bytes, group, *next, false)))
      next = &other;
  }
  char text[200];
  std::string mates;
  for (const std::string& layer : group.layers) mates += (mates.empty() ? "" : ", ") + layer;
  const std::string shares = group.layers.size() > 1 ? "; one scheme for all that share its weight: " + mates : "";
  if (group.choices.size() == 1) return "the only scheme it can take" + shares;
  if (next == nullptr) {
    std::snprintf(text, sizeof text, "the smallest choice; it costs %.4g nats alone", loss);
  } else {
    std::snprintf(text, sizeof text, "%s would save %.1f kB and cost %.4g nats more", to_string(*next).c_str(),
                  (bytes - group_cost(table.bytes, group, *next, false)) / 1000.0,
                  group_cost(table.loss, group, *next, true) - loss);
  }
  return text + shares;
}

// What a budget costs: nats saved for each unit that its limit is raised, from solving again with a hundredth more.
json prices_of(const search::Solver& solver, const Table& table, const Limits& limit, const Limits& extra,
               double loss) {
  json prices = json::object();
  const auto price = [&](const char* name, double Limits::*which) {
    const double more = 0.01 * (limit.*which);
    if (!std::isfinite(more) || more <= 0) return;
    Limits raised = limit;
    raised.*which += more;
    if (const auto answer = solver.solve(make_problem(table, raised, extra)))
      prices[name] = std::max(0.0, loss - answer->loss) / more;
  };
  price("size", &Limits::size);
  price("latency", &Limits::latency);
  price("peak_memory", &Limits::peak);
  return prices;
}

Result<std::string> search_all(Session& session) {
  Table table;
  CTK_TRY(table.groups, make_groups(session));
  for (const Score& score : session.scores) table.loss[{score.layer, score.scheme}] = score.loss;
  CTK_CHECK(fill_bytes(session, table));
  CTK_TRY(const std::vector<UniformRun> runs, uniform_runs(session, table.groups, session.ranges));
  const UniformRun& reference = runs[0];
  fill_peak(runs, table);
  CTK_CHECK(fill_times(runs, table));
  CTK_CHECK(fill_baseline(session, table));
  const BudgetConfig& budget = session.config.budget;
  const auto limit_of = [](const std::optional<Limit>& given, double baseline) {
    return given ? given->absolute(baseline) : std::numeric_limits<double>::infinity();
  };
  const Limits limit{std::floor(limit_of(budget.size, static_cast<double>(session.model.file_bytes))),
                     limit_of(budget.latency, table.baseline_us), limit_of(budget.peak_memory, table.baseline_peak)};
  CTK_TRY(const search::Solver* solver, search::find_solver(session.config.search->solver));
  Limits extra{0, 0, 0};
  double least_peak = std::numeric_limits<double>::infinity();  // of what was built
  for (int round = 0;; ++round) {
    const search::Problem problem = make_problem(table, limit, extra);
    auto solved = solver->solve(problem);
    if (!solved && solved.error().code == ErrorCode::budget_infeasible && extra.peak > 0)
      return peak_error(session, table, reference, limit.peak, least_peak);
    CTK_TRY(const search::Assignment answer, std::move(solved));
    const quantization::SchemeMap schemes = to_schemes(table, answer);
    CTK_TRY(const Built built, build(session, table, reference, schemes));
    least_peak = std::min(least_peak, built.peak);
    // What the sums missed for this answer becomes a fixed cost of the next one.
    const auto correct = [](double found, double allowed, double summed, double least, double& missed) {
      if (found > allowed) missed += std::max(least, found - summed);
      return found > allowed;
    };
    const bool is_over = correct(built.bytes, limit.size, answer.costs[0], 1.0, extra.size) |
                         correct(std::max(built.latency_us, built.whole_us), limit.latency, answer.costs[1],
                                 0.01 * limit.latency, extra.latency) |
                         correct(built.peak, limit.peak, answer.costs[2], 64.0, extra.peak);
    if (is_over && round < kMostCorrections) continue;
    json artifact{
        {"schemes", json::object()},
        {"reasons", json::object()},
        {"skipped", json::array()},
        {"latency_us", json::object()},
        {"predicted",
         {{"size", built.bytes}, {"latency", built.latency_us}, {"peak_memory", built.peak}, {"loss", answer.loss}}},
        {"float_us", table.baseline_us},
        {"prices", prices_of(*solver, table, limit, extra, answer.loss)},
        {"corrections", round},
        {"proved_optimal", answer.proved_optimal},
        {"gap", answer.gap},
        {"limits",
         {{"size", budget.size ? json(limit.size) : json()},
          {"latency", budget.latency ? json(limit.latency) : json()},
          {"peak_memory", budget.peak_memory ? json(limit.peak) : json()}}}};
    for (const Group& group : table.groups) {
      for (const std::string& layer : group.layers) {
        const QuantScheme scheme = schemes.at(layer);
        artifact["schemes"][layer] = to_string(scheme);
        artifact["reasons"][layer] = reason_for(table, group, scheme);
        artifact["latency_us"][layer] = group_cost(table.latency_us, {{layer}, {}}, scheme, true);
      }
    }
    for (const exporter::SkippedRow& row : session.report.skipped)
      artifact["skipped"].push_back({row.name, row.op, row.reason});
    return artifact.dump(1);
  }
}

Status restore(Session& session, const std::string& text) {
  const json artifact = json::parse(text, nullptr, false);
  if (artifact.is_discarded()) return internal_error("the search artifact is not JSON");
  session.schemes.clear();
  for (const auto& [layer, name] : artifact["schemes"].items()) {
    CTK_TRY(const QuantScheme scheme, parse_scheme(name.get<std::string>()));
    session.schemes[layer] = scheme;
    session.reasons[layer] = artifact["reasons"][layer];
  }
  session.report.skipped.clear();
  for (const json& row : artifact["skipped"]) session.report.skipped.push_back({row[0], row[1], row[2]});
  for (const auto& [name, value] : artifact["predicted"].items()) session.predicted[name] = value;
  session.predicted["float_us"] = artifact["float_us"];
  for (const auto& [name, value] : artifact["prices"].items()) session.prices[name] = value;
  for (exporter::LayerRow& row : session.report.layers) {
    for (const Score& score : session.scores) {
      const auto found = session.schemes.find(row.name);
      if (found != session.schemes.end() && score.layer == row.name && score.scheme == to_string(found->second))
        row.loss = score.loss;
    }
  }
  return {};
}

}  // namespace

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

// The search stage: one scheme a layer, by an integer programme over measured losses, exact bytes and measured times.
//
// Bytes: what the written file grows by when the layer alone takes the scheme, asked from the exporter. Times: the
// layer's step in a network that has this scheme everywhere, measured interleaved on this machine. Peak memory: the
// layer's packed weights in that network, with buffers as a fixed part. All are sums over layers, with conversions
// between neighbours as edges (search_borders.h); what they miss (notes shared by neighbours, buffers) is found by
// building the answer, and the programme is solved again with the difference as a fixed cost until the built network
// keeps the limits.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "compress/search_borders.h"
#include "compress/search_build.h"
#include "compress/search_files.h"
#include "compress/search_front.h"
#include "compress/search_objective.h"
#include "compress/search_pairs.h"
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

// Networks of one scheme, float first, with their memory and times in the table; none where no budget asks about
// running.
Result<std::vector<UniformRun>> measure_runs(const Session& session, Table& table) {
  const Running running = running_of(session.config.budget);
  if (!running.any()) return std::vector<UniformRun>{};
  CTK_TRY(auto runs, uniform_runs(session, table.groups, session.ranges, running));
  if (running.whole) {
    fill_peak(runs, table);
    CTK_CHECK(fill_times(runs, table));
    CTK_CHECK(fill_baseline(session, table));
    CTK_CHECK(fill_borders(session, runs[0], table));
  }
  if (running.phases) CTK_CHECK(fill_phases(session, runs, table));
  return runs;
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
                          const search::Solver& solver, const Limits& limit, const Limits& held, const Limits& extra,
                          const Solution& best, const Limits& prices) {
  json finalists = json::array();
  const auto add = [&](const quantization::SchemeMap& schemes, const Built& built, double loss,
                       const std::string& origin) {
    json line = describe(table, schemes, prices);
    line["predicted"] = {{"size", built.bytes}, {"bits", built.bits}, {"loss", loss}};
    if (reference != nullptr && reference->executor != nullptr) {
      line["predicted"]["latency"] = built.latency_us;
      line["predicted"]["peak_memory"] = built.peak;
      line["predicted"]["float_us"] = table.baseline_us;
    }
    if (reference != nullptr && reference->reader != nullptr) {
      line["predicted"]["latency.decode"] = built.decode_us;
      line["predicted"]["latency.prefill"] = built.prefill_us;
      line["predicted"]["float_decode_us"] = table.decode.baseline_us;
      line["predicted"]["float_prefill_us"] = table.prefill.baseline_us;
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
    if (!add_missed(built, other.answer, held, missed)) add(schemes, built, other.answer.loss, other.origin);
  }
  return finalists;
}

json figures_json(const exporter::BudgetFigures& figures) {
  json line;
  for (const BudgetRow& budget : kBudgets) {
    const exporter::Figure& figure = figures.*budget.figure;
    line[std::string(budget.name)] = figure ? json(*figure) : json();
  }
  return line;
}

exporter::BudgetFigures figures_from(const json& line) {
  exporter::BudgetFigures figures;
  for (const BudgetRow& budget : kBudgets) {
    const json& value = line[std::string(budget.name)];
    if (value.is_number()) figures.*budget.figure = value.get<double>();
  }
  return figures;
}

// The front from the table as it is; what keeps it from being drawn is no reason to end a run.
json front_part(const Session& session, const Table& table, const Limits& limit, const Limits& extra,
                const search::Assignment& taken) {
  constexpr std::size_t kPoints = 12, kPointsOfTwo = 5;
  json part{{"metric", session.config.sensitivity->metric}, {"front", json::array()}};
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::size_t> axes = usual_axes(table);
  const auto front = front_of(table, limit, extra, axes, axes.size() == 1 ? kPoints : kPointsOfTwo, &taken);
  if (!front) {
    part["failure"] = front.error().message;
    return part;
  }
  for (const FrontPoint& point : *front) {
    part["front"].push_back({{"loss", point.row.loss},
                             {"cost", figures_json(point.row.cost)},
                             {"price", figures_json(point.row.price)},
                             {"chosen", point.row.is_chosen}});
  }
  part["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return part;
}

json trial_json(const exporter::TrialRow& row) {
  return {{"limit", row.limit},    {"loss", row.loss},  {"measured", *row.measured},
          {"metric", *row.metric}, {"drop", *row.drop}, {"within", row.is_within}};
}

exporter::SearchPart part_from(const json& line, const json& trials, const json& pairs, const std::string& objective) {
  exporter::SearchPart part{line["metric"], objective, {}, {}, {}, {}};
  for (const json& row : pairs) {
    const double sum = row["sum"], together = row["together"];
    part.pairs.push_back(
        {row["first"], row["first_scheme"], row["second"], row["second_scheme"], sum, together, together - sum});
  }
  for (const json& row : trials) {
    part.trials.push_back({row["limit"],
                           {},
                           row["loss"],
                           row["measured"].get<double>(),
                           row["metric"].get<double>(),
                           row["drop"].get<double>(),
                           row["within"]});
  }
  for (const json& row : line["front"])
    part.front.push_back({row["loss"], figures_from(row["cost"]), figures_from(row["price"]), row["chosen"]});
  if (line.contains("seconds")) part.front_seconds = line["seconds"].get<double>();
  return part;
}

Result<std::string> search_all(Session& session) {
  Table table;
  CTK_TRY(table.groups, make_groups(session));
  for (const Score& score : session.scores) {
    table.loss[{score.layer, score.scheme}] = score.loss;
    table.loss_error[{score.layer, score.scheme}] = score.standard_error;
  }
  CTK_CHECK(fill_bytes(session, table));
  fill_bits(session.model.graph, table);
  CTK_TRY(const std::vector<UniformRun> runs, measure_runs(session, table));
  const UniformRun* reference = runs.empty() ? nullptr : &runs[0];
  const BudgetConfig& budget = session.config.budget;
  const auto limit_of = [](const std::optional<Limit>& given, double baseline) {
    return given ? given->absolute(baseline) : std::numeric_limits<double>::infinity();
  };
  Limits limit{std::floor(limit_of(budget.size, static_cast<double>(session.model.file_bytes))),
               limit_of(budget.latency, table.baseline_us),
               limit_of(budget.peak_memory, table.baseline_peak),
               limit_of(budget.bits, 0),
               limit_of(budget.latency_decode, table.decode.baseline_us),
               limit_of(budget.latency_prefill, table.prefill.baseline_us)};
  CTK_TRY(const search::Solver* solver, search::find_solver(session.config.search->solver));
  Limits extra;
  Limits held = limit;
  CTK_TRY(auto floor, Floor::open(session));
  json trials = json::array();
  const bool is_aimed = !budget.minimize.empty();
  if (is_aimed) {
    if (!floor)
      return input_error(
          "budget.minimize: expected samples to measure the metric on, found no select split with what it needs. Give "
          "data.select, or a data.calibrate with samples to spare");
    const std::size_t aim = *find_budget(budget.minimize);
    // What sums miss under the other limits first.
    CTK_TRY(const Solution first, solve_and_build(session, table, reference, *solver, limit, held, extra));
    CTK_TRY(const Objective found, smallest_within(session, *floor, table, limit, extra, aim));
    for (const exporter::TrialRow& row : found.trials) trials.push_back(trial_json(row));
    if (!found.is_within) return floor_error(session, *floor, table, limit, extra, first.answer);
    limit.*kBudgets[aim].of = found.limit * (1 + 1e-9);
  }
  CTK_TRY(Solution best, solve_and_build(session, table, reference, *solver, limit, held, extra));
  PairMeter pairs(session, table);
  for (;;) {
    CTK_TRY(const std::size_t count, pairs.measure(best.answer));
    if (count == 0) break;
    CTK_TRY(best, solve_and_build(session, table, reference, *solver, limit, held, extra));
  }
  if (floor && !is_aimed) CTK_CHECK(require_floor(session, *floor, table, limit, extra, best.answer));
  const Limits prices = prices_of(*solver, table, limit, extra, best.answer.loss);
  CTK_TRY(json finalists, finalists_of(session, table, reference, *solver, limit, held, extra, best, prices));
  json artifact{{"finalists", std::move(finalists)},
                {"skipped", json::array()},
                {"prices", json::object()},
                {"corrections", best.corrections},
                {"proved_optimal", best.answer.proved_optimal},
                {"bound", best.answer.bound},
                {"gap", best.answer.gap},
                {"search", front_part(session, table, held, extra, best.answer)},
                {"trials", std::move(trials)}};
  for (const BudgetRow& row : kBudgets) {
    if (std::isfinite(limit.*row.of)) artifact["prices"][std::string(row.name)] = prices.*row.of;
  }
  const Limits baseline{static_cast<double>(session.model.file_bytes),
                        table.baseline_us,
                        table.baseline_peak,
                        32,
                        table.decode.baseline_us,
                        table.prefill.baseline_us};
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
  if (!session.report.certificate->proved_optimal)
    session.warn("not_proved", "the answer is the best that solver " + session.config.search->solver +
                                   " found; its loss is at most " +
                                   search::format_amount(session.report.certificate->gap, "nats") +
                                   " above the least there is");
  const std::string& objective = session.config.budget.minimize;
  if (artifact["search"].contains("failure"))
    session.warn("front_not_drawn", artifact["search"]["failure"].get<std::string>());
  const json& files = artifact["files"];
  session.report.search = part_from(artifact["search"], artifact["trials"], files.value("pairs", json::array()),
                                    objective.empty() ? "loss" : objective);
  return {};
}

}  // namespace

void list_losses(Session& session) {
  for (exporter::LayerRow& row : session.report.layers) {
    for (const Score& score : session.scores) {
      const auto found = session.schemes.find(row.name);
      if (found != session.schemes.end() && score.layer == row.name && score.scheme == to_string(found->second)) {
        row.loss = score.loss;
        row.loss_error = score.standard_error;
      }
    }
  }
}

Status run_search(Session& session, bool& cached) {
  if (session.scores.empty()) return config_error("expected a sensitivity stage before it, found no scores. Add one");
  const BudgetConfig& budget = session.config.budget;
  std::vector<std::string> extra{session.config.fingerprint_of({"budget", "stages.quantize", "stages.export"})};
  extra.push_back(std::to_string(session.model.file_bytes));
  if (budget.latency || running_of(budget).phases) {  // times of another machine or thread count are another problem
    extra.push_back(session.report.machine.cpu + session.report.machine.isa + std::to_string(threads()));
    extra.push_back(std::to_string(prompt_tokens(session)));
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

#include "compress/summary.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compress/gate.h"
#include "compress/patterns.h"
#include "compress/size.h"
#include "graph/layer.h"
#include "search/problem.h"

namespace ctk::pipeline {
namespace {

using graph::Layer;

Result<std::size_t> assigned_size(const PipelineConfig& config, const LoadedModel& model,
                                  const quantization::SchemeMap& schemes) {
  graph::Graph graph = model.graph.clone();
  quantization::ApplyOptions options;
  options.input_shapes = model.sample_shapes;
  options.codes_weights = false;  // bytes follow from shapes
  CTK_TRY(const auto applied, quantization::apply_schemes(graph, schemes, placeholder_ranges(graph), options));
  return file_bytes(graph, budget_format(config), config.model);
}

// Of the machine as it ran while the result was measured: the float network was timed then and during the search, and
// the prediction goes with it.
exporter::Figure predicted_time(const Session& session, const std::string& name, const std::string& float_name,
                                const exporter::Figure& now) {
  const auto guess = session.predicted.find(name), base = session.predicted.find(float_name);
  if (guess == session.predicted.end()) return {};
  if (!now || base == session.predicted.end() || base->second <= 0) return guess->second;
  return guess->second * *now / base->second;
}

}  // namespace

std::map<std::string, calibrate::Range> placeholder_ranges(const graph::Graph& graph) {
  std::map<std::string, calibrate::Range> ranges;
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const graph::Value& value = graph.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (value.is_removed) continue;
    calibrate::Range range;
    range.value = value.name;
    range.low = -1.0f;
    range.high = 1.9230769f;
    ranges[value.name] = range;
  }
  return ranges;
}

std::size_t coded_bytes(const graph::Layer& layer, std::size_t count, const QuantScheme& scheme) {
  if (!scheme.is_integer_weight()) return count * static_cast<std::size_t>(scheme.weight_bits) / 8;
  std::size_t scales = scheme.granularity == Granularity::per_tensor ? 1 : static_cast<std::size_t>(layer.channels);
  if (scheme.granularity == Granularity::per_group) {
    const auto size = static_cast<std::size_t>(scheme.group_size);
    scales *= (static_cast<std::size_t>(layer.reduction) + size - 1) / size;
  }
  const std::size_t width = scheme.is_integer_activation() ? 4 : 2;
  const auto bits = static_cast<std::size_t>(scheme.weight_bits);
  return (count * bits + 7) / 8 + width * scales + (scheme.is_affine ? (scales * bits + 7) / 8 : 0);
}

std::vector<QuantScheme> allowed_schemes(const PipelineConfig& config) {
  if (config.search) return config.search->schemes;
  if (config.quantize && config.quantize->scheme) return {*config.quantize->scheme};
  std::vector<QuantScheme> schemes;
  if (config.quantize) {
    for (const auto& [layer, scheme] : config.quantize->schemes) {
      if (std::ranges::find(schemes, scheme) == schemes.end()) schemes.push_back(scheme);
    }
  }
  if (schemes.empty()) schemes.push_back({});
  return schemes;
}

std::vector<QuantScheme> allowed_schemes(const PipelineConfig& config, const std::string& layer) {
  if (!config.quantize || config.quantize->assignment.empty()) return allowed_schemes(config);
  const auto found = config.quantize->schemes.find(layer);
  return {found == config.quantize->schemes.end() ? QuantScheme{} : found->second};
}

Result<ReachableSize> reachable_size(const PipelineConfig& config, const LoadedModel& model) {
  ReachableSize reach;
  reach.float_bytes = model.file_bytes;
  quantization::SchemeMap least, most;
  const std::vector<Layer> layers = graph::layers_of(model.graph);
  std::vector<std::string> addresses;
  for (const Layer& layer : layers) addresses.push_back(model.graph.address(layer.node));
  const QuantizeConfig quantize = config.quantize.value_or(QuantizeConfig{});
  CTK_TRY(const std::vector<bool> is_free, select_layers(quantize.targets, quantize.ignore, addresses));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    const std::string& address = addresses[i];
    const graph::Value& weight = model.graph.value(layer.weight);
    const std::size_t count = weight.constant ? weight.constant->size() : weight.quantized->codes.size();
    // Somebody who needs the float original keeps it in the file, beside any copy.
    const bool is_kept =
        model.graph.is_output(layer.weight) || !graph::other_readers(model.graph, layer.weight).empty();
    const auto bytes_at = [&](const QuantScheme& scheme) {
      const bool is_copy = is_kept && !(scheme == QuantScheme{});
      return coded_bytes(layer, count, scheme) + (is_copy ? 4 * count : 0);
    };
    std::optional<QuantScheme> smallest, largest;
    for (const QuantScheme& scheme : is_free[i] ? allowed_schemes(config, address) : std::vector<QuantScheme>{}) {
      if (!quantization::infeasible_reason(model.graph, layer, scheme).empty()) continue;
      if (!smallest || bytes_at(scheme) < bytes_at(*smallest)) smallest = scheme;
      if (!largest || bytes_at(scheme) > bytes_at(*largest)) largest = scheme;
    }
    const QuantScheme floor = smallest.value_or(QuantScheme{});
    least[address] = floor;
    most[address] = largest.value_or(QuantScheme{});
    reach.holders.emplace_back(address + " (" + to_string(floor) + ")", bytes_at(floor));
  }
  std::stable_sort(reach.holders.begin(), reach.holders.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  CTK_TRY(reach.least, assigned_size(config, model, least));
  if (most == least) {  // a size may cost coding the whole network
    reach.most = reach.least;
    return reach;
  }
  CTK_TRY(reach.most, assigned_size(config, model, most));
  return reach;
}

Status require_reachable_size(const Session& session) {
  const auto& limit = session.config.budget.size;
  if (!limit || !(session.config.has_stage("quantize") || session.config.has_stage("search"))) return {};
  CTK_TRY(const ReachableSize reach, reachable_size(session.config, session.model));
  const double allowed = limit->absolute(static_cast<double>(reach.float_bytes));
  if (static_cast<double>(reach.least) <= allowed) return {};
  std::string holders;
  for (std::size_t i = 0; i < reach.holders.size() && i < 5; ++i) {
    holders += (i == 0 ? "" : ", ") + reach.holders[i].first + " " +
               search::format_amount(static_cast<double>(reach.holders[i].second), "B");
  }
  const std::size_t more = reach.holders.size() > 5 ? reach.holders.size() - 5 : 0;
  return Error{ErrorCode::budget_infeasible,
               session.config.file_name + ": budget.size: expected at most " + search::format_amount(allowed, "B") +
                   ", smallest reachable is " + search::format_amount(static_cast<double>(reach.least), "B") + " (" +
                   std::to_string(reach.least) + " B, " + budget_format(session.config) + "); held by " + holders +
                   (more > 0 ? " and " + std::to_string(more) + " smaller layers" : "") +
                   ". Raise the budget or allow smaller schemes"};
}

void warn_of_unmeasured_budgets(Session& session) {
  const PipelineConfig& config = session.config;
  const auto warn = [&session](const char* name, const char* stage) {
    session.warn("budget_not_measured", std::string("budget.") + name + ": the search keeps it by prediction only, " +
                                            "since no stage \"" + stage +
                                            "\" measures the result. Add one to have it proved");
  };
  if (config.budget.latency && !config.has_stage("validate")) warn("latency", "validate");
  if (config.budget.latency_decode && !config.has_stage("validate")) warn("latency.decode", "validate");
  if (config.budget.latency_prefill && !config.has_stage("validate")) warn("latency.prefill", "validate");
  if (config.budget.size && !config.has_stage("export")) warn("size", "export");
}

Status require_met_budgets(const Session& session) {
  std::string missed;
  for (const exporter::BudgetRow& row : session.report.budget) {
    if (!row.met || *row.met || row.name == "metric_drop") continue;  // that one is the gate's
    const std::string kind = row.unit == "bytes" ? "B" : row.unit;
    missed += (missed.empty() ? "" : "; ") + row.name + ": expected at most " +
              search::format_amount(*row.limit, kind) + ", measured " + search::format_amount(*row.measured, kind);
  }
  if (missed.empty()) return {};
  return Error{ErrorCode::budget_infeasible, "budget: " + missed + ". The files and the report are in \"" +
                                                 session.output +
                                                 "\"; raise the budget, or allow the search more schemes"};
}

void fill_budget_rows(Session& session) {
  exporter::Report& report = session.report;
  const BudgetConfig& budget = session.config.budget;
  report.budget.clear();
  report.size.before = static_cast<double>(session.model.file_bytes);
  const std::string format = budget_format(session.config);
  for (const exporter::FileRow& file : report.files) {
    if (file.format == format) report.size.after = static_cast<double>(file.bytes);
  }
  const auto predicted = [&](const char* name) -> exporter::Figure {
    const auto found = session.predicted.find(name);
    return found == session.predicted.end() ? exporter::Figure{} : exporter::Figure{found->second};
  };
  const auto add = [&](const char* name, const char* unit, exporter::Figure limit, exporter::Figure guess,
                       exporter::Figure measured) {
    exporter::BudgetRow row{name, unit, limit, guess, measured, {}, {}, {}, {}};
    if (limit && measured) row.met = *measured <= *limit;
    if (guess && measured && *measured != 0) row.error = *guess / *measured - 1;
    row.role = limit ? "limit" : budget.minimize == name ? "objective" : "reported";
    if (const auto price = session.prices.find(name); price != session.prices.end()) row.price = price->second;
    const std::string kind = std::string_view(unit) == "bytes" ? "B" : unit;
    if (row.met && !*row.met)
      session.warn("budget_missed", std::string(name) + ": measured " + search::format_amount(*measured, kind) +
                                        ", the budget is " + search::format_amount(*limit, kind));
    report.budget.push_back(row);
  };
  const bool has_search = session.config.search.has_value();
  if (budget.size || has_search) {
    add("size", "bytes",
        budget.size ? exporter::Figure(budget.size->absolute(*report.size.before)) : exporter::Figure{},
        predicted("size"), report.size.after);
  }
  if (budget.latency || has_search) {
    exporter::Figure base = report.latency.baseline.median;
    if (!base) base = predicted("float_us");
    exporter::Figure limit;
    if (budget.latency && (base || !budget.latency->is_share)) limit = budget.latency->absolute(base.value_or(0));
    add("latency", "us", limit, predicted_time(session, "latency", "float_us", report.latency.baseline.median),
        report.latency.final.median);
  }
  const auto add_phase = [&](const char* name, const char* float_name, const std::optional<Limit>& asked,
                             const exporter::PhaseFigures& phase) {
    if (!asked && budget.minimize != name) return;
    exporter::Figure base = phase.baseline.median;
    if (!base) base = predicted(float_name);
    exporter::Figure limit;
    if (asked && (base || !asked->is_share)) limit = asked->absolute(base.value_or(0));
    add(name, "us", limit, predicted_time(session, name, float_name, phase.baseline.median), phase.final.median);
  };
  const exporter::PhasesPart phases = report.latency.phases.value_or(exporter::PhasesPart{});
  add_phase("latency.decode", "float_decode_us", budget.latency_decode, phases.decode);
  add_phase("latency.prefill", "float_prefill_us", budget.latency_prefill, phases.prefill);
  if (has_search) add("loss", "nats", {}, predicted("loss"), session.measured_loss);
  if (budget.peak_memory || has_search) {
    exporter::Figure limit;
    if (budget.peak_memory && (report.memory.baseline_peak || !budget.peak_memory->is_share))
      limit = budget.peak_memory->absolute(report.memory.baseline_peak.value_or(0));
    add("peak_memory", "bytes", limit, predicted("peak_memory"), report.memory.final_peak);
  }
  if (budget.bits || has_search) {
    exporter::Figure measured;
    if (session.quantized) measured = average_bits(*session.quantized);
    // A sum over layers against one over the network: the same number but for its last digits.
    if (measured && budget.bits && *measured > budget.bits->value && *measured < budget.bits->value * (1 + 1e-9))
      measured = budget.bits->value;
    add("bits", "bits", budget.bits ? exporter::Figure(budget.bits->value) : exporter::Figure{}, predicted("bits"),
        measured);
  }
  if (budget.metric_drop) {
    exporter::BudgetRow row{"metric_drop",
                            budget.metric_drop->is_relative ? "ratio" : "points",
                            budget.metric_drop->value,
                            {},
                            {},
                            {},
                            {},
                            {},
                            "limit"};
    const auto& metric = report.metric;
    auto verdict = metric ? hold_gate(*budget.metric_drop, metric->name, metric->baseline.value_or(NAN),
                                      metric->final.value_or(NAN))
                          : Result<GateVerdict>(Error{});
    if (verdict) {
      row.measured = verdict->drop;
      row.met = verdict->is_met;
    }
    report.budget.push_back(std::move(row));
  }
  for (const exporter::BudgetRow& row : report.budget) {
    if (row.met) continue;
    const bool is_asked = (row.name == "size" && budget.size) || (row.name == "latency" && budget.latency) ||
                          (row.name == "peak_memory" && budget.peak_memory) || (row.name == "bits" && budget.bits) ||
                          (row.name == "latency.decode" && budget.latency_decode) ||
                          (row.name == "latency.prefill" && budget.latency_prefill) || row.name == "metric_drop";
    const std::string key = "budget." + row.name + ": ";
    const bool is_told = std::ranges::any_of(report.warnings, [&key](const exporter::WarningRow& warning) {
      return warning.code == "budget_not_measured" && warning.text.starts_with(key);
    });
    if (is_asked && !is_told) session.warn("budget_not_measured", key + "the run ended before it was measured");
  }
}

}  // namespace ctk::pipeline

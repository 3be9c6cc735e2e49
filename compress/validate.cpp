// The validate stage: what the written network is worth. Metric of float and final network on the test split by the
// kernels that run them, latency of both interleaved, agreement of other runtimes on the written files, gates.
#include <nlohmann/json.hpp>

#include <cmath>

#include "compress/gate.h"
#include "compress/language_check.h"
#include "compress/onnxruntime_check.h"
#include "compress/search_table.h"
#include "compress/session.h"
#include "compress/summary.h"
#include "core/parallel.h"
#include "runtime/measure.h"
#include "search/problem.h"

namespace ctk::pipeline {
namespace {

struct Measured {
  runtime::LatencyFigure baseline, final;
  std::size_t baseline_bytes = 0, final_bytes = 0;           // activations, scratch, packed weights
  std::vector<std::pair<std::string, std::string>> unfused;  // layer, reason
};

// One real sample in the input slots, so that no run meets denormals or zeros only.
Status load_sample(runtime::CpuExecutor& executor, const data::Split& split, std::size_t batch) {
  CTK_TRY(const data::Batch sample, split.read(0, std::min(split.count(), batch)));
  auto ran = executor.run(sample.inputs);
  if (!ran) return std::move(ran).error();
  return {};
}

Result<Measured> measure_latency(Session& session) {
  const data::Split& split = *session.splits.test;
  CTK_TRY(const data::Batch sample, split.read(0, std::min(split.count(), fixed_batch(session.float_graph(), 1))));
  std::vector<Shape> shapes;
  for (const Tensor& input : sample.inputs) shapes.push_back(input.shape());
  CTK_TRY(auto before, runtime::CpuExecutor::create(session.float_graph(), shapes));
  CTK_TRY(auto after, runtime::CpuExecutor::create(session.final_graph(), shapes));
  CTK_CHECK(load_sample(*before, split, fixed_batch(session.float_graph(), 1)));
  CTK_CHECK(load_sample(*after, split, fixed_batch(session.float_graph(), 1)));
  runtime::CpuExecutor* const executors[] = {before.get(), after.get()};
  CTK_TRY(const auto figures, runtime::measure_interleaved(executors, {}));
  CTK_TRY(const auto steps, runtime::measure_steps(std::span(executors).subspan(1), {0.2, 10, 500, 3}));
  for (const runtime::StepTime& step : steps[0]) {
    if (!step.node.is_valid()) continue;
    for (exporter::LayerRow& line : session.report.layers) {
      if (line.name == session.final_graph().address(step.node)) {
        line.latency_us = line.latency_us.value_or(0) + step.median_us;
      }
    }
  }
  Measured measured{figures[0],
                    figures[1],
                    before->activation_bytes() + before->packed_bytes(),
                    after->activation_bytes() + after->packed_bytes(),
                    {}};
  return measured;
}

// Of a language model whose budget names phases: as the search times them, both networks in turn.
Status measure_phases(Session& session) {
  if (!search_table::running_of(session.config.budget).phases) return {};
  CTK_TRY(const auto before, search_table::make_reader(session, session.float_graph()));
  CTK_TRY(const auto after, search_table::make_reader(session, session.final_graph()));
  runtime::Generator* const readers[] = {before.get(), after.get()};
  const graph::Graph* const graphs[] = {&session.float_graph(), &session.final_graph()};
  CTK_TRY(const auto times, search_table::measure_readers(readers, graphs, search_table::prompt_tokens(session)));
  const auto median = [](double us) { return exporter::LatencyFigure{us, {}, 0}; };
  exporter::PhasesPart part;
  part.decode = {median(times[0].decode.us), median(times[1].decode.us)};
  part.prefill = {median(times[0].prefill.us), median(times[1].prefill.us)};
  session.report.latency.phases = part;
  return {};
}

exporter::LatencyFigure to_row(const runtime::LatencyFigure& figure) {
  return {figure.median_us, figure.p95_us, static_cast<std::int64_t>(figure.runs)};
}

Status compare_metric(Session& session) {
  const data::Split& split = *session.splits.test;
  const std::string name =
      session.config.evaluate->spec.metric.empty() ? "agreement" : session.config.evaluate->spec.metric;
  CTK_TRY(const data::MetricInfo* info, data::find_metric(name));
  OutputCache reference(session.output + "/.cache");
  exporter::MetricPart part;
  part.name = name;
  part.higher_is_better = info->better == data::Better::higher;
  std::int64_t done = static_cast<std::int64_t>(split.count());
  if (info->needs_reference) {
    CTK_TRY(reference, collect_outputs(session.float_graph(), split, session.output + "/.cache"));
    // Of the float network against itself. Its signal-to-noise ratio is infinite: there is no drop from that.
    if (name != "sqnr_db") part.baseline = name == "agreement" ? 1.0 : 0.0;
  } else {
    CTK_TRY(const Evaluation baseline, evaluate(session.float_graph(), split, name, nullptr, &reference));
    part.baseline = baseline.metric.value;
  }
  session.advance(done);
  CTK_TRY(const Evaluation final, evaluate(session.final_graph(), split, name, &reference));
  session.advance(2 * done);
  part.final = final.metric.value;
  part.standard_error = final.metric.standard_error;
  if (part.baseline) {
    CTK_TRY(const data::Drop drop, data::drop_of(*part.baseline, *part.final, info->better, false));
    part.drop = drop.value;
  }
  session.report.metric = part;
  exporter::CheckRow row;
  row.against = "float";
  row.file = "this run's float network";
  row.agreement = final.agreement.value;
  row.result = "KL " + std::to_string(final.kl.value) + " nats, SQNR " + std::to_string(final.sqnr_db.value) + " dB";
  session.report.checks.push_back(row);
  session.measured_loss = final.kl.value;
  if (session.original && session.config.has_stage("search")) {  // the search predicts for the network it was given
    CTK_TRY(const OutputCache given, collect_outputs(session.model.graph, split, session.output + "/.cache"));
    CTK_TRY(const Evaluation loss, evaluate(session.final_graph(), split, "", &given));
    session.measured_loss = loss.kl.value;
  }
  return {};
}

// The gate and the budget are held both: one may be in points, the other in per cent.
Status check_gates(const Session& session) {
  const std::pair<const char*, const std::optional<MetricDrop>&> limits[] = {
      {"stages.validate.gate.metric_drop", session.config.validate->gate_metric_drop},
      {"budget.metric_drop", session.config.budget.metric_drop}};
  for (const auto& [key, limit] : limits) {
    if (!limit) continue;
    const exporter::MetricPart& metric = *session.report.metric;
    auto verdict = hold_gate(*limit, metric.name, metric.baseline.value_or(NAN), metric.final.value_or(NAN));
    if (!verdict) return std::move(verdict).error().with_context(key);
    if (verdict->is_met) continue;
    return Error{ErrorCode::gate_refused,
                 std::string(key) + ": expected a drop of at most " + to_text(*limit) + ", found " + verdict->text +
                     ". Allow larger schemes, exclude sensitive layers with `ignore`, or loosen the limit"};
  }
  return {};
}

}  // namespace

Status run_validate(Session& session, bool& cached) {
  cached = false;  // times are of now; the metric is quick
  if (!session.splits.test) return input_error("expected test data, found none. Give data.evaluate");
  CTK_CHECK(compare_metric(session));
  CTK_TRY(const Measured measured, measure_latency(session));
  exporter::Report& report = session.report;
  report.latency.threads = threads();
  report.latency.baseline = to_row(measured.baseline);
  report.latency.final = to_row(measured.final);
  CTK_CHECK(measure_phases(session));
  report.memory.baseline_peak = static_cast<double>(measured.baseline_bytes);
  report.memory.final_peak = static_cast<double>(measured.final_bytes);
  // Beyond the noise of a median, and only where something was changed.
  const bool is_changed = session.original || std::ranges::any_of(session.schemes, [](const auto& s) {
                            return !(s.second == QuantScheme{});
                          });
  if (is_changed && measured.final.median_us > 1.02 * measured.baseline.median_us) {
    session.warn("slower_than_float",
                 "the result takes " + search::format_amount(measured.final.median_us, "us") + ", the float network " +
                     search::format_amount(measured.baseline.median_us, "us") + " at " + std::to_string(threads()) +
                     " threads: this model gains size, not time, on this machine");
  }
  for (const std::string& against : session.config.validate->against) {
    if (against == "onnxruntime")
      CTK_CHECK(check_against_onnxruntime(session));
    else if (against != "float")
      CTK_CHECK(check_language_model(session, against));
  }
  return check_gates(session);
}

}  // namespace ctk::pipeline

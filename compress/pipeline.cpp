#include "compress/pipeline.h"

#include <sys/resource.h>

#include <chrono>
#include <filesystem>

#include "compress/infeasible_budgets.h"
#include "compress/interrupt.h"
#include "compress/output_folder.h"
#include "compress/prepare.h"
#include "compress/session.h"
#include "compress/summary.h"
#include "core/cpu_isa.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "graph/layer.h"
#include "graph/shapes.h"
#include "graph/text.h"

namespace ctk::pipeline {
namespace {

namespace fs = std::filesystem;

std::int64_t peak_rss() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

void describe_machine(exporter::Report& report) {
  report.machine.cpu = cpu_model();
  report.machine.cores = cpu_cores();
  report.machine.memory_bytes = static_cast<std::int64_t>(memory_bytes());
  const auto isas = allowed_isas();
  report.machine.isa = isas ? std::string(name_of(isas->back())) : "unknown";
}

Status describe_model(Session& session) {
  exporter::Report& report = session.report;
  const graph::Graph& graph = session.model.graph;
  report.model.path = session.config.model;
  report.model.format = session.model.format;
  report.model.parameters = parameter_count(graph);
  report.model.macs = total_macs(session.model);
  if (auto hash = sha256_of_file(session.config.model)) report.model.sha256 = *hash;
  for (const graph::PassOutcome& pass : session.model.passes) {
    report.rewrites.push_back(pass.name + ": " + std::to_string(pass.changes));
  }
  return session.list_layers();
}

std::string_view how_it_stopped(ErrorCode code) {
  return code == ErrorCode::interrupted ? "interrupted" : code == ErrorCode::gate_refused ? "refused" : "failed";
}

Status run_stages(Session& session) {
  for (const std::string& name : session.config.stages) {
    const StageRow* row = nullptr;
    for (const StageRow& known : stages()) {
      if (known.name == name) row = &known;
    }
    if (row == nullptr) return config_error("stage \"" + name + "\" is not available in this build");
    CTK_CHECK(check_interrupt());
    if (session.progress() != nullptr) session.progress()->stage_begin(name, row->work(session));
    const auto start = std::chrono::steady_clock::now();
    bool cached = false;
    session.stage_row = {};
    Status status = row->run(session, cached);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (session.progress() != nullptr) {
      if (status)
        session.progress()->stage_end(name, seconds, cached);
      else
        session.progress()->stage_stopped(name, seconds, std::string(how_it_stopped(status.error().code)));
    }
    exporter::StageRow line = session.stage_row;
    line.name = name;
    line.seconds = seconds;
    line.cached = cached;
    line.peak_rss = peak_rss();
    line.accepted = status.has_value() && line.accepted.value_or(true);
    if (name == "validate" && session.report.metric) {
      line.metric_before = session.report.metric->baseline;
      line.metric_after = session.report.metric->final;
    }
    session.report.stages.push_back(std::move(line));
    if (status) continue;
    Error error = std::move(status).error();
    // A gate's message begins with its own key, an interrupt concerns the whole run.
    const bool has_place = error.code == ErrorCode::gate_refused || error.code == ErrorCode::interrupted;
    return has_place ? std::move(error) : std::move(error).with_context(name);
  }
  return {};
}

// Q and DQ nodes of the source that could not be read as notes: they run as nodes of their own, between floats.
void list_unfused(Session& session) {
  const graph::Graph& graph = session.final_graph();
  for (graph::NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    if (node.op != graph::Op::QuantizeLinear && node.op != graph::Op::DequantizeLinear) continue;
    session.report.skipped.push_back({graph.address(id), node.op_type,
                                      "not fused: its scale, zero point or readers fit no integer layer, so it runs "
                                      "as a node of its own"});
  }
}

Status finish(Session& session) {
  exporter::Report& report = session.report;
  list_unfused(session);
  report.memory.run_peak_rss = static_cast<double>(peak_rss());
  fill_budget_rows(session);
  CTK_CHECK(exporter::write_report(report, session.output));
  std::vector<exporter::FileRow> files = report.files;
  for (const char* name : {"report.json", "report.md", "report.html"}) {
    CTK_TRY(exporter::FileRow row, exporter::describe_file(session.output, name, "report"));
    files.push_back(std::move(row));
  }
  return exporter::write_manifest(std::move(files), session.output);
}

}  // namespace

Result<exporter::Report> run_pipeline(const PipelineConfig& config, const RunOptions& options) {
  CTK_CHECK(require_available(config));
  CTK_TRY(const auto isas, allowed_isas());
  const std::string output = options.output_override.empty() ? config.output : options.output_override;
  const int threads_wanted = options.threads > 0 ? options.threads : config.threads;
  set_threads(threads_wanted > 0 ? threads_wanted : cpu_cores());
  CTK_TRY(LoadedModel model, load_for(config, output, options.force));
  Session session = make_session(config, options, output, std::move(model));
  session.report.version = CTK_VERSION;
  session.report.command = options.command;
  session.report.config = {options.config_path, config.fingerprint()};
  session.report.seed = config.seed;
  session.report.threads = threads();
  session.report.output = output;
  describe_machine(session.report);
  CTK_CHECK(prepare(session));
  // Else once the network is what will be quantized.
  if (!config.changes_network()) CTK_CHECK(require_reachable(session, true, output));
  CTK_CHECK(describe_model(session));  // after the splits: multiply-adds depend on the size of a sample
  CTK_CHECK(claim_output(output));
  search_table::forget_infeasible(output);
  Fingerprint print;
  print.add(graph::print_graph(session.model.graph)).add(config.seed);
  for (const Shape& shape : session.model.sample_shapes) print.add(ctk::to_string(shape));
  session.fingerprint = print.hex();
  const Status status = run_stages(session);
  if (status) {
    CTK_CHECK(finish(session));
    if (auto kept = require_met_budgets(session); !kept) return std::move(kept).error();
    return session.report;
  }
  // Files under their final names are never left without a report that says what became of them.
  const bool is_refused = status.error().code == ErrorCode::gate_refused;
  if (is_refused || !session.report.files.empty()) {
    session.warn(is_refused ? "gate_refused" : "not_finished", status.error().message);
    const Status finished = finish(session);
    if (!finished && is_refused) return finished.error();
  }
  return status.error();
}

}  // namespace ctk::pipeline

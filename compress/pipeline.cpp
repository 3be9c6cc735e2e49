#include "compress/pipeline.h"

#include <sys/resource.h>

#include <chrono>
#include <filesystem>

#include "compress/interrupt.h"
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

constexpr const char* kOwnerFile = ".cache/owner";  // marks an output folder as made by us

std::int64_t peak_rss() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

// A folder with things in it that no run of ours made is not touched without --force.
Status claim_output(const std::string& output, const std::string& model, bool force) {
  std::error_code error;
  if (fs::exists(output, error) && !fs::is_directory(output, error)) {
    return config_error(output + ": expected a folder for the output, found a file. Choose another output");
  }
  if (is_same_file(output, model))
    return config_error(output + ": output and model are the same path. Choose another output");
  const bool is_ours = fs::exists(output + "/" + kOwnerFile, error);
  if (fs::exists(output, error) && !fs::is_empty(output, error) && !is_ours && !force) {
    return config_error(output +
                        ": expected an empty folder or one of an earlier run, found other files. Choose another "
                        "output, or give --force to write into it");
  }
  fs::create_directories(output + "/.cache", error);
  if (error) return input_error(output + ": the folder cannot be made: " + error.message());
  if (is_ours) return {};
  return write_file(output + "/" + kOwnerFile, std::string_view("made by compress\n"));
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
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    exporter::LayerRow row;
    row.name = graph.address(layer.node);
    row.op = graph.node(layer.node).op_type;
    const graph::Value& weight = graph.value(layer.weight);
    const Shape& shape = weight.quantized ? weight.quantized->codes.shape() : weight.constant->shape();
    row.shape.assign(shape.begin(), shape.end());
    row.macs = layer_macs(session.model, layer.node);
    row.scheme = to_string(graph.node(layer.node).scheme);
    row.method = weight.quantized ? weight.quantized->method : "none";
    row.bytes = static_cast<std::int64_t>(
        weight.quantized ? weight.quantized->codes.bytes() + 4 * weight.quantized->scales.size() : elements(shape) * 4);
    report.layers.push_back(std::move(row));
  }
  CTK_TRY(const auto layers, session.target_layers({}, {}));  // lists what is none; stages that choose list again
  return {};
}

// Labels must be classes the network has, where its first output says how many: [N, classes].
Status check_classes(const Session& session) {
  const auto& test = session.splits.test;
  const graph::Graph& graph = session.model.graph;
  if (!test || !test->source->has_labels() || graph.outputs().empty()) return {};
  CTK_TRY(const data::MetricInfo* metric,
          data::find_metric(test->source->spec().metric.empty() ? "agreement" : test->source->spec().metric));
  if (!metric->needs_labels) return {};
  const auto infos = graph::infer_shapes(graph, batch_shapes(session.model, 1), true);
  if (!infos) return {};  // the first stage that runs the network says why
  const graph::InferredValue& output = (*infos)[graph.outputs()[0].index];
  if (!output.known || output.info.shape.size() != 2) return {};
  return test->source->check_labels(output.info.shape[1]);
}

Status open_splits(Session& session) {
  const PipelineConfig& config = session.config;
  data::SplitRequest request;
  const auto spec = [](const std::optional<SourceConfig>& source) {
    return source ? std::optional(source->spec) : std::nullopt;
  };
  request.train = spec(config.train);
  request.calibrate = spec(config.calibrate_data);
  request.score = spec(config.score);
  request.select = spec(config.select);
  request.evaluate = spec(config.evaluate);
  request.seed = config.seed;
  request.draw_calibrate = config.has_stage("calibrate") ? request.draw_calibrate : 0;
  request.draw_score = config.has_stage("sensitivity") ? request.draw_score : 0;
  request.draw_select = config.has_stage("search") ? request.draw_select : 0;
  const std::vector<data::InputInfo> infos = input_infos(session.model.graph);
  CTK_TRY(session.splits, data::make_splits(request, infos));
  for (const data::Warning& warning : session.splits.warnings) session.warn(warning.code, warning.text);
  const std::vector<const data::Split*> all = session.splits.all();
  if (!all.empty() && !all[0]->indices.empty()) {
    CTK_CHECK(bind_sample_shapes(session.model, *all[0]->source, all[0]->indices[0]));
  }
  CTK_CHECK(check_classes(session));
  for (const data::Split* split : session.splits.all()) {
    session.report.splits.push_back(
        {split->role, split->path(), static_cast<std::int64_t>(split->count()), split->fingerprint});
  }
  return {};
}

// Operators we carry but cannot compute stop a run before any work, unless nothing has to be computed.
Status require_runnable(const Session& session) {
  for (graph::NodeId id : session.model.graph.order()) {
    const graph::Node& node = session.model.graph.node(id);
    if (node.op != graph::Op::unknown) continue;
    const auto version = session.model.graph.other_opsets.find(node.domain);
    const int opset = node.domain.empty()                                 ? session.model.graph.opset
                      : version == session.model.graph.other_opsets.end() ? 0
                                                                          : version->second;
    for (std::string_view stage : {"calibrate", "sensitivity", "search", "validate"}) {
      if (!session.config.has_stage(stage)) continue;
      return input_error(session.config.model + ": node \"" + session.model.graph.address(id) + "\": operator " +
                         (node.domain.empty() ? "" : node.domain + "::") + node.op_type + " (opset " +
                         std::to_string(opset) + ") is not known, and stage \"" + std::string(stage) +
                         "\" would have to run it. See `compress list ops`");
    }
  }
  return {};
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
    Status status = row->run(session, cached);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (session.progress() != nullptr) session.progress()->stage_end(name, seconds, cached);
    if (!status && status.error().code != ErrorCode::gate_refused) {
      return std::move(status).error().with_context(name);
    }
    exporter::StageRow line;
    line.name = name;
    line.seconds = seconds;
    line.cached = cached;
    line.peak_rss = peak_rss();
    line.accepted = status.has_value();
    session.report.stages.push_back(std::move(line));
    if (!status) return status;
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
  CTK_TRY(LoadedModel model, load_model(config.model));
  Session session{config, options,
                  output, ArtifactCache(output + "/.cache", options.resume),
                  "",     std::move(model),
                  {},     {},
                  {},     {},
                  {},     {},
                  {},     std::nullopt,
                  {},     {},
                  {}};
  session.report.version = CTK_VERSION;
  session.report.command = options.command;
  session.report.config = {options.config_path, config.fingerprint()};
  session.report.seed = config.seed;
  session.report.threads = threads();
  session.report.output = output;
  describe_machine(session.report);
  for (const std::string& note : session.model.notes) session.warn("model", note);
  CTK_CHECK(require_runnable(session));
  CTK_CHECK(open_splits(session));
  CTK_CHECK(describe_model(session));  // after the splits: multiply-adds depend on the size of a sample
  CTK_CHECK(require_reachable_size(session));
  CTK_CHECK(claim_output(output, config.model, options.force));
  Fingerprint print;
  print.add(graph::print_graph(session.model.graph)).add(config.seed);
  for (const Shape& shape : session.model.sample_shapes) print.add(ctk::to_string(shape));
  session.fingerprint = print.hex();
  Status status = run_stages(session);
  if (!status && status.error().code != ErrorCode::gate_refused) return std::move(status).error();
  CTK_CHECK(finish(session));
  if (!status) return std::move(status).error().with_context(output);
  return session.report;
}

}  // namespace ctk::pipeline

#include "compress/pipeline.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

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

const StageRow* find_stage(const std::string& name) {
  for (const StageRow& row : stages()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool is_shared(const StageRow& row, const PipelineConfig& config) {
  return row.is_shared == nullptr || row.is_shared(config);
}

// Whether ranks other than 0 have to know what stage `at` finds: all of them work on a later one.
bool is_awaited(const PipelineConfig& config, std::size_t at) {
  for (std::size_t i = at + 1; i < config.stages.size(); ++i) {
    const StageRow* row = find_stage(config.stages[i]);
    if (row != nullptr && is_shared(*row, config)) return true;
  }
  return false;
}

Status run_stages(Session& session) {
  for (std::size_t at = 0; at < session.config.stages.size(); ++at) {
    const std::string& name = session.config.stages[at];
    const StageRow* row = find_stage(name);
    if (row == nullptr) return config_error("stage \"" + name + "\" is not available in this build");
    CTK_CHECK(check_interrupt());
    if (session.progress() != nullptr) session.progress()->stage_begin(name, row->work(session));
    const auto start = std::chrono::steady_clock::now();
    bool cached = false;
    session.stage_row = {};
    const auto run = [&] { return row->run(session, cached); };
    Status status =
        is_shared(*row, session.config) ? run() : session.cache.first_runs(name, is_awaited(session.config, at), run);
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

// All ranks have said the same as rank 0. Errors: config or input, the same one on every rank.
Status require_same(Ranks& ranks, const std::string& what, const std::string& mine, const std::string& remedy,
                    ErrorCode code) {
  if (ranks.is_alone()) return {};
  CTK_TRY(const std::vector<std::string> all, ranks.gather("same " + what, mine));
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    return Error{code, "rank " + std::to_string(r) + " of " + std::to_string(all.size()) + ": expected " + what +
                           " of rank 0 (" + all[0] + "), found another (" + all[r] + "). " + remedy};
  }
  return {};
}

// Where ranks other than 0 keep what does not fit into memory; removed with all that is in it.
class OwnFolder {
 public:
  static Result<OwnFolder> make() {
    std::string path = (fs::temp_directory_path() / "compress-rank-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      return input_error(path + ": expected a folder that can be made, found: " + std::strerror(errno) +
                         ". Set TMPDIR to a place with room");
    }
    return OwnFolder(std::move(path));
  }
  OwnFolder(OwnFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  OwnFolder& operator=(OwnFolder&&) = delete;
  ~OwnFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit OwnFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Status require_same_data(Session& session) {
  std::string data;
  for (const data::Split* split : session.splits.all()) data += split->role + "=" + split->fingerprint + " ";
  return require_same(session.ranks(), "the model and the data",
                      session.fingerprint + ", " + Fingerprint().add(data).hex(), "Give every rank the same files",
                      ErrorCode::input);
}

Result<exporter::Report> run_alike(const PipelineConfig& config, const RunOptions& options) {
  Ranks& ranks = options.ranks != nullptr ? *options.ranks : alone();
  CTK_CHECK(require_same(ranks, "the configuration",
                         std::string(CTK_VERSION) + ", " + config.fingerprint() + (options.resume ? "" : ", no resume"),
                         "Start every rank with the same version, pipeline file and options", ErrorCode::config));
  CTK_CHECK(require_available(config));
  CTK_TRY(const auto isas, allowed_isas());
  std::optional<OwnFolder> own;
  if (!ranks.is_first()) {
    CTK_TRY(OwnFolder made, OwnFolder::make());
    own.emplace(std::move(made));
  }
  const std::string output = own                               ? own->path()
                             : options.output_override.empty() ? config.output
                                                               : options.output_override;
  const int threads_wanted = options.threads > 0 ? options.threads : config.threads;
  set_threads(threads_wanted > 0 ? threads_wanted : std::max(1, cpu_cores() / ranks.here()));
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
  if (!config.changes_network()) CTK_CHECK(require_budgets(session));
  CTK_CHECK(describe_model(session));  // after the splits: multiply-adds depend on the size of a sample
  CTK_CHECK(claim_output(output));
  search_table::forget_infeasible(output);
  Fingerprint print;
  print.add(graph::print_graph(session.model.graph)).add(config.seed);
  for (const Shape& shape : session.model.sample_shapes) print.add(ctk::to_string(shape));
  session.fingerprint = print.hex();
  CTK_CHECK(require_same_data(session));
  const Status status = run_stages(session);
  if (!ranks.is_first()) {
    CTK_CHECK(status);
    return session.report;
  }
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

}  // namespace

Result<exporter::Report> run_pipeline(const PipelineConfig& config, const RunOptions& options) {
  Ranks& ranks = options.ranks != nullptr ? *options.ranks : alone();
  auto report = run_alike(config, options);
  if (!report) return ranks.fail(std::move(report).error());
  CTK_CHECK(ranks.from_first("end", ""));
  return report;
}

}  // namespace ctk::pipeline

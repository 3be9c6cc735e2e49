// compress run: a pipeline from the first stage to the last.
#include "compress/pipeline.h"

#include <memory>

#include "compress/cli/cli.h"
#include "compress/final_table.h"

namespace ctk::cli {
namespace {

struct Arguments {
  ConfigArguments config;
  bool force = false, resume = true;
};

Status run(const Session& session, const Arguments& arguments) {
  CTK_TRY(const pipeline::PipelineConfig config, load(arguments.config));
  CTK_CHECK(pipeline::require_available(config));
  const bool is_first = session.ranks == nullptr || session.ranks->is_first();
  const std::unique_ptr<pipeline::ProgressSink> progress = is_first ? pipeline::make_stderr_progress() : nullptr;
  pipeline::RunOptions options;
  options.config_path = arguments.config.path;
  options.command = session.command;
  options.output_override = arguments.config.output.value_or("");
  options.overrides = arguments.config.overrides;
  options.threads = session.threads;
  options.force = arguments.force;
  options.resume = arguments.resume;
  options.progress = progress.get();
  options.ranks = session.ranks;
  CTK_TRY(const exporter::Report report, pipeline::run_pipeline(config, options));
  if (is_first) print(session.is_json ? exporter::to_json(report) : pipeline::summary_table(report));
  return {};
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("run", "Run a pipeline");
  const auto arguments = std::make_shared<Arguments>();
  add_config(*verb, arguments->config, true);
  add_json(*verb, session);
  add_threads(*verb, session);
  verb->add_flag("--force", arguments->force, "Replace files in the output folder that another run or program wrote");
  verb->add_flag("--resume,!--no-resume", arguments->resume, "Use stages that are already done (default)");
  verb->callback(
      [&session, arguments] { session.action = [&session, arguments] { return run(session, *arguments); }; });
}

}  // namespace ctk::cli

// compress eval: the metric of one model on one split of a pipeline file.
#include "compress/evaluate_model.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "core/parallel.h"

namespace ctk::cli {
namespace {

struct Arguments {
  ConfigArguments config;
  std::string model, split = "evaluate";
};

Status evaluate(const Session& session, const Arguments& arguments) {
  CTK_TRY(pipeline::PipelineConfig config, load(arguments.config));
  if (session.threads > 0) config.threads = session.threads;
  const std::unique_ptr<pipeline::ProgressSink> progress = pipeline::make_stderr_progress();
  CTK_TRY(const pipeline::EvalResult result,
          pipeline::evaluate_model(config, {arguments.model, arguments.split, progress.get()}));
  if (session.is_json) {
    const nlohmann::ordered_json json = {
        {"model", result.model},
        {"split", arguments.split},
        {"metric", result.metric},
        {"better", result.higher_is_better ? "higher" : "lower"},
        {"value", result.value},
        {"standard_error", result.standard_error},
        {"samples", result.samples},
        {"latency", {{"unit", "us"}, {"median", result.median_us}, {"p95", result.p95_us}}},
        {"threads", result.threads}};
    print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    return {};
  }
  char text[400];
  std::snprintf(text, sizeof text, "%s %.4f (standard error %.4f, %lld samples, %s is better)\n", result.metric.c_str(),
                result.value, result.standard_error, static_cast<long long>(result.samples),
                result.higher_is_better ? "higher" : "lower");
  print(text);
  std::snprintf(text, sizeof text, "latency %.1f us a sample (p95 %.1f us, %d threads)\n", result.median_us,
                result.p95_us, result.threads);
  print(text);
  return {};
}

}  // namespace

void add_eval(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("eval", "Measure a model on the data of a pipeline file");
  const auto arguments = std::make_shared<Arguments>();
  add_config(*verb, arguments->config, false);
  verb->add_option("--model", arguments->model, "An .onnx file or a bundle (default: the pipeline's model)");
  verb->add_option("--split", arguments->split, "train, calibrate, score, select or evaluate")
      ->check(CLI::IsMember({"train", "calibrate", "score", "select", "evaluate"}));
  add_json(*verb, session);
  add_threads(*verb, session);
  verb->callback(
      [&session, arguments] { session.action = [&session, arguments] { return evaluate(session, *arguments); }; });
}

}  // namespace ctk::cli

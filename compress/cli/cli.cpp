#include "compress/cli/cli.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/printable.h"

namespace ctk::cli {
namespace {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::config:
      return "config";
    case ErrorCode::input:
      return "input";
    case ErrorCode::budget_infeasible:
      return "budget_infeasible";
    case ErrorCode::gate_refused:
      return "gate_refused";
    case ErrorCode::interrupted:
      return "interrupted";
  }
  return "internal";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char letter : text) {
    if (letter == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += letter;
    }
  }
  if (lines.size() > 1 && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void add_json(CLI::App& verb, Session& session) {
  verb.add_flag("--json", session.is_json, "Print JSON on standard output");
}

void add_threads(CLI::App& verb, Session& session) {
  verb.add_option("--threads", session.threads, "Threads to use (default: the file's, else every core)")
      ->check(CLI::Range(1, 1024));
}

void add_config(CLI::App& verb, ConfigArguments& arguments, bool with_output) {
  verb.add_option("pipeline", arguments.path, "The pipeline file (YAML)")->required();
  verb.add_option("--set", arguments.overrides, "Set a key of the file: --set stages.quantize.scheme=w4a8_c")
      ->type_name("KEY=VALUE")
      ->type_size(1)
      ->allow_extra_args(false);
  if (!with_output) return;
  // By a function: an empty text must be told from an absent one.
  verb.add_option_function<std::string>(
      "--output", [&arguments](const std::string& text) { arguments.output = text; },
      "Write here instead of the file's output folder");
}

Result<pipeline::PipelineConfig> load(const ConfigArguments& arguments) {
  std::vector<std::string> list = arguments.overrides;
  if (arguments.output) {
    if (arguments.output->empty()) return config_error("--output: expected a folder, found \"\". Name a folder");
    std::string quoted = "output='";  // any path is a YAML text in single quotes, with quotes doubled
    for (const char letter : *arguments.output) quoted += letter == '\'' ? "''" : std::string(1, letter);
    list.push_back(quoted + "'");
  }
  return pipeline::load_config(arguments.path, list);
}

int report_error(const Session& session, const Error& error) {
  std::vector<std::string> lines = lines_of(error.message);
  if (error.code == ErrorCode::internal) {
    lines.push_back("this is a fault of compress, not yours: please report it with this text and the command");
  }
  const int status = exit_code(error.code);
  if (session.is_json) {
    const nlohmann::ordered_json json = {
        {"error",
         {{"code", name_of(error.code)}, {"exit_code", status}, {"message", error.message}, {"problems", lines}}}};
    print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    return status;
  }
  for (const std::string& line : lines) std::fprintf(stderr, "compress: error: %s\n", printable(line).c_str());
  return status;
}

}  // namespace ctk::cli

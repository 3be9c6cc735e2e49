// The command line: one file a verb. A verb's file declares its options and leaves what to do in `action`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compress/config.h"
#include "core/ranks.h"
#include "core/result.h"

namespace ctk::cli {

struct Session {
  std::string command;  // as typed
  bool is_json = false;
  Ranks* ranks = nullptr;          // those that run together; null: this process alone
  int threads = 0;                 // 0 = as the file says, or every core
  std::function<Status()> action;  // of the verb that was given; set while parsing
};

// Adds --json, and --threads where work is done.
void add_json(CLI::App& verb, Session& session);
void add_threads(CLI::App& verb, Session& session);

void add_run(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_list(CLI::App& app, Session& session);
void add_graph(CLI::App& app, Session& session);
void add_search(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_eval(CLI::App& app, Session& session);
void add_estimate(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);
void add_kernels(CLI::App& app, Session& session);
void add_generate(CLI::App& app, Session& session);
void add_partition(CLI::App& app, Session& session);
void add_export(CLI::App& app, Session& session);
void add_compare(CLI::App& app, Session& session);

// Prints the error once (stderr, or {"error": ...} on stdout with --json) and answers its exit code.
int report_error(const Session& session, const Error& error);
void print(const std::string& text);  // to stdout, as it is

// --set and --output as overrides of the pipeline file.
struct ConfigArguments {
  std::string path;
  std::optional<std::string> output;
  std::vector<std::string> overrides;
};
// The pipeline file with its overrides. Errors: as pipeline::load_config.
Result<pipeline::PipelineConfig> load(const ConfigArguments& arguments);
void add_config(CLI::App& verb, ConfigArguments& arguments, bool with_output);

}  // namespace ctk::cli

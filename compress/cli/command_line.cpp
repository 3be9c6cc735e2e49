#include "compress/cli/command_line.h"

#include <cstdio>
#include <exception>

#include "compress/cli/cli.h"
#include "compress/interrupt.h"
#include "core/log.h"

namespace ctk::cli {
namespace {

std::string joined(std::span<const std::string> words) {
  std::string text = "compress";
  for (const std::string& word : words.subspan(1)) {
    const bool needs_quotes = word.empty() || word.find_first_of(" \t\n'\"\\$&;|<>()[]*?#~`") != std::string::npos;
    text += needs_quotes ? " '" + word + "'" : " " + word;
  }
  return text;
}

int run(std::span<const std::string> words, Ranks* ranks) {
  Session session;
  session.command = joined(words);
  session.ranks = ranks;
  const bool is_first = ranks == nullptr || ranks->is_first();
  CLI::App app{"Makes trained networks smaller and faster above an accuracy floor.", "compress"};
  app.set_version_flag("--version", "compress " CTK_VERSION);
  app.require_subcommand(1);
  add_run(app, session);
  add_check(app, session);
  add_list(app, session);
  add_graph(app, session);
  add_search(app, session);
  add_explain(app, session);
  add_eval(app, session);
  add_estimate(app, session);
  add_bench(app, session);
  add_kernels(app, session);
  add_generate(app, session);
  add_partition(app, session);
  add_export(app, session);
  add_compare(app, session);
  app.footer(
      "Start with: compress run configs/pipelines/quickstart.yaml\n"
      "Exit codes: 0 done, 1 fault of ours, 2 wrong use or configuration, 3 unusable input,\n"
      "            4 a budget cannot be met, 5 a gate refused the result, 130 interrupted.");
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend() - 1);  // as CLI11 takes them
    app.parse(std::move(reversed));
  } catch (const CLI::Success& wish) {  // --help, --version
    return is_first ? app.exit(wish) : 0;
  } catch (const CLI::ParseError& error) {
    for (const std::string& word : words) session.is_json = session.is_json || word == "--json";
    const Error wrong = config_error(std::string(error.what()) + ". See compress --help.");
    return is_first ? report_error(session, wrong) : exit_code(wrong.code);
  }
  set_log_sink([is_first](LogLevel level, const std::string& text) {
    if (level == LogLevel::warning && is_first) std::fprintf(stderr, "compress: warning: %s\n", text.c_str());
  });
  catch_interrupts();
  if (!app.got_subcommand("run")) {
    if (!is_first) return 0;
    ranks = nullptr;
  }
  const Status status = session.action();
  if (!status) {
    const Error error = ranks == nullptr ? status.error() : ranks->fail(status.error());
    // What every rank knows is told once.
    return is_first || ranks->is_lost() ? report_error(session, error) : exit_code(error.code);
  }
  if (std::fflush(stdout) != 0) {
    session.is_json = false;  // there is nowhere to write it
    return report_error(session, input_error("standard output: writing failed"));
  }
  return 0;
}

}  // namespace

int command_line(std::span<const std::string> words, Ranks* ranks) {
  try {
    return run(words, ranks);
  } catch (const std::exception& error) {
    const Error found = internal_error(std::string("unexpected: ") + error.what());
    return report_error({}, ranks == nullptr ? found : ranks->fail(found));
  }
}

}  // namespace ctk::cli

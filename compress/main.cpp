// compress: the command line. Verbs are in compress/cli/, exit codes in core/result.h.
#include <cstdio>
#include <exception>

#include "compress/cli/cli.h"
#include "compress/interrupt.h"
#include "core/log.h"

namespace {

std::string joined(int count, char** words) {
  std::string text = "compress";
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool needs_quotes = word.empty() || word.find_first_of(" \t\n'\"\\$&;|<>()[]*?#~`") != std::string::npos;
    text += needs_quotes ? " '" + word + "'" : " " + word;
  }
  return text;
}

int run(int count, char** words) {
  ctk::cli::Session session;
  session.command = joined(count, words);
  CLI::App app{"Makes trained networks smaller and faster above an accuracy floor.", "compress"};
  app.set_version_flag("--version", "compress " CTK_VERSION);
  app.require_subcommand(1);
  ctk::cli::add_run(app, session);
  ctk::cli::add_check(app, session);
  ctk::cli::add_list(app, session);
  ctk::cli::add_graph(app, session);
  ctk::cli::add_search(app, session);
  ctk::cli::add_explain(app, session);
  ctk::cli::add_eval(app, session);
  ctk::cli::add_estimate(app, session);
  ctk::cli::add_bench(app, session);
  ctk::cli::add_kernels(app, session);
  ctk::cli::add_generate(app, session);
  ctk::cli::add_partition(app, session);
  ctk::cli::add_export(app, session);
  ctk::cli::add_compare(app, session);
  app.footer(
      "Start with: compress run configs/pipelines/quickstart.yaml\n"
      "Exit codes: 0 done, 1 fault of ours, 2 wrong use or configuration, 3 unusable input,\n"
      "            4 a budget cannot be met, 5 a gate refused the result, 130 interrupted.");
  try {
    app.parse(count, words);
  } catch (const CLI::Success& wish) {  // --help, --version
    return app.exit(wish);
  } catch (const CLI::ParseError& error) {
    for (int i = 1; i < count; ++i) session.is_json = session.is_json || std::string_view(words[i]) == "--json";
    return ctk::cli::report_error(session, ctk::config_error(std::string(error.what()) + ". See compress --help."));
  }
  ctk::set_log_sink([](ctk::LogLevel level, const std::string& text) {
    if (level == ctk::LogLevel::warning) std::fprintf(stderr, "compress: warning: %s\n", text.c_str());
  });
  ctk::catch_interrupts();
  const ctk::Status status = session.action();
  if (!status) return ctk::cli::report_error(session, status.error());
  if (std::fflush(stdout) != 0) {
    session.is_json = false;  // there is nowhere to write it
    return ctk::cli::report_error(session, ctk::input_error("standard output: writing failed"));
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& error) {
    return ctk::cli::report_error({}, ctk::internal_error(std::string("unexpected: ") + error.what()));
  }
}

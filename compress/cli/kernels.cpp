// compress kernels: which row of each kernel kind this machine takes, and why not the others; of a model, for each
// step.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "compress/kernel_choice.h"
#include "core/cpu_isa.h"
#include "core/printable.h"

namespace ctk::cli {
namespace {

using nlohmann::ordered_json;
using pipeline::RowChoice;
using pipeline::StepRow;

struct Arguments {
  std::string model;
  std::int64_t size = 0;
  bool with_why = false;
};

// Columns, each as wide as given or one more than its text.
std::string columns(std::initializer_list<std::pair<std::string, std::size_t>> parts) {
  std::string text;
  std::size_t end = 0;
  for (const auto& [part, width] : parts) {
    if (!text.empty()) text.resize(std::max(text.size() + 1, end), ' ');
    text += part;
    end += width;
  }
  return text + "\n";
}

ordered_json json_of(const RowChoice& row) {
  return {{"kind", row.kind}, {"isa", row.isa}, {"name", row.name}, {"chosen", row.is_chosen}, {"why", row.why}};
}

Status show_rows(const Session& session, bool with_why) {
  CTK_TRY(const std::vector<RowChoice> rows, pipeline::row_choices());
  if (session.is_json) {
    ordered_json list = ordered_json::array();
    for (const RowChoice& row : rows) list.push_back(json_of(row));
    print(ordered_json{{"cpu", cpu_model()}, {"kernels", list}}.dump(2) + "\n");
    return {};
  }
  print(cpu_model() + "\n");
  for (const RowChoice& row : rows) {
    if (!with_why && !row.is_chosen) continue;
    print(columns({{(row.is_chosen ? "* " : "  ") + row.kind, 20}, {row.name, 40}, {with_why ? row.why : "", 0}}));
  }
  return {};
}

Status show_steps(const Session& session, const Arguments& arguments) {
  CTK_TRY(const std::vector<StepRow> steps, pipeline::step_rows(arguments.model, arguments.size));
  if (session.is_json) {
    ordered_json list = ordered_json::array();
    for (const StepRow& step : steps) {
      ordered_json others = ordered_json::array();
      for (const RowChoice& row : step.others) others.push_back(json_of(row));
      list.push_back({{"layer", step.layer},
                      {"step", step.step},
                      {"kind", step.kind},
                      {"row", step.row},
                      {"why", step.why},
                      {"others", others}});
    }
    print(ordered_json{{"cpu", cpu_model()}, {"steps", list}}.dump(2) + "\n");
    return {};
  }
  print(cpu_model() + "\n");
  for (const StepRow& step : steps) {
    print(columns({{printable(step.layer), 36},
                   {step.step, 24},
                   {step.row.empty() ? "-" : step.row, 36},
                   {arguments.with_why ? step.why : "", 0}}));
    if (!arguments.with_why) continue;
    for (const RowChoice& row : step.others) print(columns({{"    not", 12}, {row.name, 48}, {row.why, 0}}));
  }
  return {};
}

}  // namespace

void add_kernels(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("kernels", "Show which kernels this machine runs, or a model's steps run on");
  const auto arguments = std::make_shared<Arguments>();
  verb->add_option("model", arguments->model, "Show the row of each of its steps: an .onnx file, a bundle, a folder");
  verb->add_option("--size", arguments->size, "Size of dimensions the model leaves open: tokens of a text")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_flag("--why", arguments->with_why, "Also show the rows that were not taken, and why");
  add_json(*verb, session);
  verb->callback([&session, arguments] {
    session.action = [&session, arguments] {
      return arguments->model.empty() ? show_rows(session, arguments->with_why) : show_steps(session, *arguments);
    };
  });
}

}  // namespace ctk::cli

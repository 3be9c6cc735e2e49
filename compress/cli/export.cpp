// compress export: a model in another file format.
#include <memory>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "compress/exported_files.h"
#include "core/printable.h"
#include "search/problem.h"

namespace ctk::cli {
namespace {

struct Arguments {
  std::string model, format, output;
  bool force = false;
};

Status run(const Session& session, const Arguments& arguments) {
  CTK_TRY(const auto exported,
          pipeline::export_model(arguments.model, arguments.format, arguments.output, arguments.force));
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  std::string text;
  for (const auto& file : exported.files) {
    files.push_back({{"path", file.path}, {"format", file.format}, {"bytes", file.bytes}, {"sha256", file.sha256}});
    text +=
        arguments.output + "/" + file.path + "  " + search::format_amount(static_cast<double>(file.bytes), "B") + "\n";
  }
  for (const std::string& note : exported.notes) text += "note: " + note + "\n";
  print(session.is_json ? nlohmann::ordered_json{{"files", files}, {"notes", exported.notes}}.dump(2) + "\n" : text);
  return {};
}

}  // namespace

void add_export(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("export", "Write a model in another file format; rounds nothing");
  const auto arguments = std::make_shared<Arguments>();
  verb->add_option("model", arguments->model, "An .onnx, .gguf or bundle file, or a checkpoint folder")->required();
  verb->add_option("--format", arguments->format, "One of `compress list formats`")->required();
  verb->add_option("--output", arguments->output, "The folder to write into")->required();
  verb->add_flag("--force", arguments->force, "Also into a folder that holds other things");
  add_json(*verb, session);
  verb->callback(
      [&session, arguments] { session.action = [&session, arguments] { return run(session, *arguments); }; });
}

}  // namespace ctk::cli

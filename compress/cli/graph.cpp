// compress graph show | diff: a model as text.
#include "graph/graph.h"

#include <map>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "compress/model.h"
#include "core/file.h"
#include "graph/layer.h"
#include "graph/text.h"

namespace ctk::cli {
namespace {

std::string signature(const graph::Graph& graph, graph::ValueId id) {
  const graph::Value& value = graph.value(id);
  return value.name + " " + std::string(name_of(value.dtype)) + " " +
         (value.shape ? graph::to_string(*value.shape) : std::string("of unknown shape"));
}

std::int64_t constant_elements(const graph::Graph& graph) {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < graph.value_capacity(); ++i) {
    const graph::Value& value = graph.value(graph::ValueId{i});
    if (!value.is_removed && value.constant) sum += static_cast<std::int64_t>(value.constant->size());
  }
  return sum;
}

// Name, inputs and outputs, how often each operator occurs, and what the reader decided.
std::string summary(const graph::Graph& graph) {
  std::string text = "graph " + graph.name + ", opset " + std::to_string(graph.opset) + ", " +
                     std::to_string(graph.order().size()) + " nodes, " +
                     std::to_string(graph::layers_of(graph).size()) + " layers, " +
                     std::to_string(constant_elements(graph)) + " constant elements\n";
  for (const graph::ValueId id : graph.inputs()) text += "input  " + signature(graph, id) + "\n";
  for (const graph::ValueId id : graph.outputs()) text += "output " + signature(graph, id) + "\n";
  std::map<std::string, int> counts;
  for (const graph::NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    const std::string domain = node.domain.empty() ? "" : node.domain + "::";
    ++counts[domain + node.op_type + (node.op == graph::Op::unknown ? " (carried, cannot be run)" : "")];
  }
  for (const auto& [op, count] : counts) text += std::to_string(count) + " x " + op + "\n";
  for (const std::string& note : graph.reader_notes) text += "note: " + note + "\n";
  return text;
}

nlohmann::ordered_json as_json(const graph::Graph& graph) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array(), outputs = inputs, nodes = inputs;
  for (const graph::ValueId id : graph.inputs()) inputs.push_back(signature(graph, id));
  for (const graph::ValueId id : graph.outputs()) outputs.push_back(signature(graph, id));
  for (const graph::NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    nodes.push_back({{"name", graph.address(id)},
                     {"op", node.op_type},
                     {"domain", node.domain},
                     {"known", node.op != graph::Op::unknown}});
  }
  return {{"name", graph.name},         {"opset", graph.opset}, {"inputs", inputs},
          {"outputs", outputs},         {"nodes", nodes},       {"constant_elements", constant_elements(graph)},
          {"notes", graph.reader_notes}};
}

std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Status show(const Session& session, const std::string& path, bool as_text) {
  CTK_TRY(const graph::Graph graph, pipeline::read_graph(path));
  if (session.is_json) {
    nlohmann::ordered_json json = as_json(graph);
    if (as_text) json["text"] = graph::print_graph(graph);
    print(dumped(json));
  } else {
    print(as_text ? graph::print_graph(graph) : summary(graph));
  }
  return {};
}

// The text form of a model, or of a file that holds one. Errors of the text name its path.
Result<std::string> text_of(const std::string& path) {
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (!graph::is_graph_text(bytes)) {
    CTK_TRY(const graph::Graph graph, pipeline::read_graph(path));
    return graph::print_graph(graph);
  }
  if (auto parsed = graph::parse_graph(bytes); !parsed) {
    return input_error(path + ": " + parsed.error().message +
                       ". Expected a model, or its text form as `compress graph show --text` prints it");
  }
  return std::string(bytes);
}

Status diff(const Session& session, const std::string& before_path, const std::string& after_path) {
  CTK_TRY(const std::string before, text_of(before_path));
  CTK_TRY(const std::string after, text_of(after_path));
  CTK_TRY(const std::vector<std::string> lines, graph::diff_texts(before, after));
  if (session.is_json) {
    print(dumped({{"equal", lines.empty()}, {"lines", lines}}));
    return {};
  }
  for (const std::string& line : lines) print(line + "\n");
  if (lines.empty()) print("the graphs are equal\n");
  return {};
}

}  // namespace

void add_graph(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("graph", "Show or compare models");
  verb->require_subcommand(1);
  struct Arguments {
    std::string first, second;
    bool as_text = false;
  };
  const auto arguments = std::make_shared<Arguments>();

  CLI::App* show_verb = verb->add_subcommand("show", "Inputs, outputs and operators of a model");
  show_verb->add_option("model", arguments->first, "An .onnx file or a bundle")->required();
  show_verb->add_flag("--text", arguments->as_text, "Every node, in the text form of graph/text.h");
  add_json(*show_verb, session);
  show_verb->callback([&session, arguments] {
    session.action = [&session, arguments] { return show(session, arguments->first, arguments->as_text); };
  });

  CLI::App* diff_verb = verb->add_subcommand("diff", "What differs between two models");
  diff_verb->add_option("before", arguments->first, "An .onnx file, a bundle or the text form of one")->required();
  diff_verb->add_option("after", arguments->second, "An .onnx file, a bundle or the text form of one")->required();
  add_json(*diff_verb, session);
  diff_verb->callback([&session, arguments] {
    session.action = [&session, arguments] { return diff(session, arguments->first, arguments->second); };
  });
}

}  // namespace ctk::cli

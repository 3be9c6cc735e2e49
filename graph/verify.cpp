#include <algorithm>
#include <set>

#include "core/printable.h"
#include "graph/graph.h"
#include "graph/ops/op.h"

namespace ctk::graph {
namespace {

Error at(const Graph& graph, NodeId id, const std::string& text) {
  return input_error(printable(graph.address(id)) + " (" + graph.node(id).op_type + "): " + text);
}

Status verify_input_count(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op == Op::unknown) return {};
  const OpRules& rules = rules_of(node.op);
  const auto count = static_cast<int>(node.inputs.size());
  if (count < rules.min_inputs || (rules.max_inputs >= 0 && count > rules.max_inputs)) {
    return at(graph, id,
              "expected " + std::to_string(rules.min_inputs) + ".." +
                  (rules.max_inputs < 0 ? std::string("any") : std::to_string(rules.max_inputs)) + " inputs, found " +
                  std::to_string(count));
  }
  for (int i = 0; i < rules.min_inputs; ++i) {
    if (!node.inputs[static_cast<std::size_t>(i)].is_valid()) {
      return at(graph, id, "required input " + std::to_string(i) + " is omitted");
    }
  }
  return {};
}

Status verify_reads(const Graph& graph, NodeId id, std::vector<bool>& is_defined) {
  const Node& node = graph.node(id);
  std::vector<ValueId> reads = node.inputs;
  reads.insert(reads.end(), node.captured.begin(), node.captured.end());
  for (ValueId input : reads) {
    if (!input.is_valid()) continue;
    if (input.index >= graph.value_capacity() || graph.value(input).is_removed) {
      return at(graph, id, "reads a value that does not exist");
    }
    const Value& value = graph.value(input);
    if (!is_defined[input.index]) return at(graph, id, "reads \"" + value.name + "\" before anything produces it");
    if (std::find(value.consumers.begin(), value.consumers.end(), id) == value.consumers.end()) {
      return at(graph, id, "is missing among the readers of \"" + value.name + "\"");
    }
  }
  for (ValueId output : node.outputs) {
    if (!output.is_valid()) continue;
    const Value& value = graph.value(output);
    if (value.producer != id || is_defined[output.index]) {
      return at(graph, id, "output \"" + value.name + "\" has another producer too");
    }
    is_defined[output.index] = true;
  }
  return {};
}

}  // namespace

Status verify(const Graph& graph) {
  std::vector<bool> is_defined(graph.value_capacity(), false);
  std::set<std::string> names;
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const Value& value = graph.value(ValueId{static_cast<std::uint32_t>(i)});
    if (value.is_removed) continue;
    if (value.name.empty()) return input_error("value " + std::to_string(i) + " has no name");
    if (!names.insert(value.name).second) return input_error("two values are named \"" + value.name + "\"");
    is_defined[i] = value.is_constant();
  }
  for (ValueId input : graph.inputs()) is_defined[input.index] = true;
  for (NodeId id : graph.order()) {
    CTK_CHECK(verify_input_count(graph, id));
    CTK_CHECK(verify_reads(graph, id, is_defined));
  }
  for (ValueId output : graph.outputs()) {
    if (!is_defined[output.index]) {
      return input_error("graph output \"" + graph.value(output).name + "\" is produced by no node");
    }
  }
  return {};
}

}  // namespace ctk::graph

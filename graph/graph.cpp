#include "graph/graph.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/printable.h"

namespace ctk::graph {
namespace {

constexpr std::array kOpNames{
    std::string_view("unknown"),
#define CTK_OP(name) std::string_view(#name),
#include "graph/ops.def"
#undef CTK_OP
};

}  // namespace

Op op_from_type(std::string_view domain, std::string_view op_type) {
  if (!domain.empty()) return Op::unknown;
  for (std::size_t i = 1; i < kOpNames.size(); ++i) {
    if (kOpNames[i] == op_type) return static_cast<Op>(i);
  }
  return Op::unknown;
}

std::string_view name_of(Op op) {
  return kOpNames[static_cast<std::size_t>(op)];
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Attributes::set(std::string_view name, Attribute value) {
  for (auto& [key, held] : items_) {
    if (key == name) {
      held = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::string(name), std::move(value));
}

void Attributes::erase(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return item.first == name; });
}

std::int64_t Attributes::get_int(std::string_view name, std::int64_t fallback) const {
  const Attribute* found = find(name);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::int64_t>(found);
  return value == nullptr ? fallback : *value;
}

float Attributes::get_float(std::string_view name, float fallback) const {
  const Attribute* found = find(name);
  const auto* value = found == nullptr ? nullptr : std::get_if<float>(found);
  return value == nullptr ? fallback : *value;
}

std::string Attributes::get_string(std::string_view name, std::string fallback) const {
  const Attribute* found = find(name);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(found);
  return value == nullptr ? fallback : *value;
}

std::vector<std::int64_t> Attributes::get_ints(std::string_view name, std::vector<std::int64_t> fallback) const {
  const Attribute* found = find(name);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(found);
  return value == nullptr ? fallback : *value;
}

std::string to_string(const DeclaredShape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ",";
    text += shape[i].size >= 0 ? std::to_string(shape[i].size) : shape[i].symbol.empty() ? "?" : shape[i].symbol;
  }
  return text + "]";
}

std::optional<ValueId> Graph::find_value(std::string_view value_name) const {
  const auto found = by_name_.find(value_name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

bool Graph::is_output(ValueId id) const {
  return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end();
}

std::string Graph::address(NodeId id) const {
  const Node& self = node(id);
  const auto same_name = [&](NodeId other) { return node(other).name == self.name; };
  if (!self.name.empty() && std::count_if(order_.begin(), order_.end(), same_name) == 1) return self.name;
  for (ValueId output : self.outputs) {
    if (output.is_valid()) return value(output).name;
  }
  return self.name.empty() ? "node " + std::to_string(id.index) : self.name;
}

ValueId Graph::add_value(std::string value_name, DType dtype, std::optional<DeclaredShape> shape) {
  const ValueId id{static_cast<std::uint32_t>(values_.size())};
  by_name_.emplace(value_name, id);
  Value& added = values_.emplace_back();
  added.name = std::move(value_name);
  added.dtype = dtype;
  added.shape = std::move(shape);
  return id;
}

ValueId Graph::add_constant(std::string value_name, Tensor tensor) {
  DeclaredShape shape;
  for (std::int64_t dim : tensor.shape()) shape.push_back({dim, ""});
  const ValueId id = add_value(std::move(value_name), tensor.dtype(), std::move(shape));
  values_[id.index].constant = std::move(tensor);
  return id;
}

void Graph::remove_input(ValueId id) {
  std::erase(inputs_, id);
}

NodeId Graph::add_node(Node added, NodeId before) {
  const NodeId id{static_cast<std::uint32_t>(nodes_.size())};
  added.op = op_from_type(added.domain, added.op_type);
  for (ValueId input : added.inputs) {
    if (input.is_valid()) values_[input.index].consumers.push_back(id);
  }
  for (ValueId input : added.captured) values_[input.index].consumers.push_back(id);
  for (ValueId output : added.outputs) {
    if (output.is_valid()) values_[output.index].producer = id;
  }
  nodes_.push_back(std::move(added));
  order_.insert(before.is_valid() ? std::find(order_.begin(), order_.end(), before) : order_.end(), id);
  return id;
}

void Graph::set_input(NodeId id, std::size_t index, ValueId to) {
  Node& target = nodes_[id.index];
  if (index >= target.inputs.size()) target.inputs.resize(index + 1);
  const ValueId from = target.inputs[index];
  if (from.is_valid()) {
    auto& readers = values_[from.index].consumers;
    const auto entry = std::find(readers.begin(), readers.end(), id);
    if (entry != readers.end()) readers.erase(entry);
  }
  target.inputs[index] = to;
  if (to.is_valid()) values_[to.index].consumers.push_back(id);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  const std::vector<NodeId> readers = values_[from.index].consumers;
  for (NodeId reader : readers) {
    std::replace(nodes_[reader.index].inputs.begin(), nodes_[reader.index].inputs.end(), from, to);
  }
  // Subgraphs read by name from bytes we do not open, so a captured value keeps its reader.
  std::vector<NodeId> kept, moved;
  for (NodeId reader : readers) {
    const auto& captured = nodes_[reader.index].captured;
    const bool reads_by_name = std::find(captured.begin(), captured.end(), from) != captured.end();
    (reads_by_name ? kept : moved).push_back(reader);
  }
  values_[from.index].consumers = std::move(kept);
  auto& target = values_[to.index].consumers;
  target.insert(target.end(), moved.begin(), moved.end());
}

void Graph::move_producer(ValueId from, ValueId to) {
  const NodeId producer = values_[from.index].producer;
  std::replace(nodes_[producer.index].outputs.begin(), nodes_[producer.index].outputs.end(), from, to);
  values_[to.index].producer = producer;
  values_[from.index].producer = {};
}

void Graph::remove_node(NodeId id) {
  Node& gone = nodes_[id.index];
  for (ValueId input : gone.inputs) {
    if (!input.is_valid()) continue;
    auto& readers = values_[input.index].consumers;
    const auto entry = std::find(readers.begin(), readers.end(), id);
    if (entry != readers.end()) readers.erase(entry);
  }
  for (ValueId input : gone.captured) std::erase(values_[input.index].consumers, id);
  for (ValueId output : gone.outputs) {
    if (output.is_valid() && values_[output.index].producer == id) values_[output.index].producer = {};
  }
  gone.is_removed = true;
  std::erase(order_, id);
}

void Graph::remove_dead_values() {
  std::set<ValueId> kept(inputs_.begin(), inputs_.end());
  kept.insert(outputs_.begin(), outputs_.end());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    Value& candidate = values_[i];
    const ValueId id{static_cast<std::uint32_t>(i)};
    if (candidate.is_removed || candidate.producer.is_valid() || !candidate.consumers.empty() || kept.contains(id))
      continue;
    by_name_.erase(candidate.name);
    candidate = Value{};
    candidate.is_removed = true;
  }
}

std::string Graph::unique_name(const std::string& wish) const {
  const auto is_taken = [&](const std::string& candidate) {
    if (by_name_.contains(candidate)) return true;
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.name == candidate; });
  };
  if (!wish.empty() && !is_taken(wish)) return wish;
  for (int suffix = 2;; ++suffix) {
    const std::string candidate = wish + "_" + std::to_string(suffix);
    if (!is_taken(candidate)) return candidate;
  }
}

Status Graph::sort() {
  // Kahn's algorithm; among ready nodes the one that stood first goes first, so a sorted graph keeps its order.
  std::vector<std::size_t> place(nodes_.size(), 0);
  for (std::size_t i = 0; i < order_.size(); ++i) place[order_[i].index] = i;
  std::vector<std::size_t> waiting(nodes_.size(), 0);
  std::vector<std::vector<NodeId>> followers(nodes_.size());
  for (NodeId id : order_) {
    std::vector<ValueId> reads = node(id).inputs;
    reads.insert(reads.end(), node(id).captured.begin(), node(id).captured.end());
    for (ValueId input : reads) {
      if (!input.is_valid() || !value(input).producer.is_valid()) continue;
      followers[value(input).producer.index].push_back(id);
      ++waiting[id.index];
    }
  }
  std::set<std::pair<std::size_t, NodeId>> ready;
  for (NodeId id : order_) {
    if (waiting[id.index] == 0) ready.insert({place[id.index], id});
  }
  std::vector<NodeId> sorted;
  sorted.reserve(order_.size());
  while (!ready.empty()) {
    const NodeId id = ready.begin()->second;
    ready.erase(ready.begin());
    sorted.push_back(id);
    for (NodeId next : followers[id.index]) {
      if (--waiting[next.index] == 0) ready.insert({place[next.index], next});
    }
  }
  if (sorted.size() != order_.size()) {
    for (NodeId id : order_) {
      if (waiting[id.index] != 0) {
        return input_error(printable(address(id)) + " (" + node(id).op_type +
                           "): the graph has a cycle through this node; expected producers before consumers");
      }
    }
  }
  order_ = std::move(sorted);
  return {};
}

}  // namespace ctk::graph

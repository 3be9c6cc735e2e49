#include "graph/coupling/ties.h"

#include <algorithm>

#include "core/printable.h"

namespace ctk::graph {

std::string quoted(const std::string& name) {
  std::string text = "\"";
  return text.append(printable(name)).append("\"");
}

Ties::Ties(const Graph& graph, std::vector<InferredValue> infos)
    : graph_(graph), infos_(std::move(infos)), tags_(graph.value_capacity()) {
  for (std::size_t i = 0; i < tags_.size(); ++i) {
    if (infos_[i].known) tags_[i].resize(infos_[i].info.shape.size());
  }
}

std::string Ties::place() const {
  return quoted(graph_.address(node_)).append(" (").append(node().op_type).append(")");
}

ValueId Ties::input(std::size_t index) const {
  return index < node().inputs.size() ? node().inputs[index] : ValueId{};
}

std::optional<std::vector<std::int64_t>> Ties::integers(std::size_t index) const {
  const ValueId id = input(index);
  if (!id.is_valid() || !infos_[id.index].info.constant) return std::nullopt;
  auto values = to_i64(*infos_[id.index].info.constant);
  if (!values) return std::nullopt;
  return std::move(*values);
}

const Tags& Ties::tags(ValueId id, std::size_t dim) const {
  static const Tags kNone;
  if (is_constant(id)) {
    const auto found = constant_axes_.find({id, dim});
    return found == constant_axes_.end() ? kNone : found->second;
  }
  return dim < tags_[id.index].size() ? tags_[id.index][dim] : kNone;
}

Tags Ties::claim(ValueId constant, std::size_t axis, AxisRole role) {
  claims_.push_back({node_, constant, axis, role});
  Tags& tags = constant_axes_[{constant, axis}];
  if (tags.empty()) {
    const auto size = static_cast<std::size_t>(shape(constant)[axis]);
    for (std::size_t i = 0; i < size; ++i) tags.push_back(elements_.add());
    const Value& value = graph_.value(constant);
    if (value.quantized != nullptr) block(tags, quoted(value.name).append(" is coded already"));
  }
  return tags;
}

void Ties::set(ValueId id, std::size_t dim, Tags tags) {
  if (!id.is_valid() || dim >= tags_[id.index].size()) return;
  tags_[id.index][dim] = std::move(tags);
}

void Ties::unite(const Tags& a, const Tags& b) {
  if (a.size() != b.size()) {
    const std::string reason = "meets channels that stay at " + place();
    block(a, reason);
    block(b, reason);
    return;
  }
  for (std::size_t i = 0; i < a.size(); ++i) elements_.unite(a[i], b[i]);
}

Tags Ties::join(const std::vector<DimOf>& operands) {
  std::int64_t widest = 1;
  for (const DimOf& operand : operands) widest = std::max(widest, shape(operand.value)[operand.dim]);
  bool has_channels = false, has_fixed = false;
  for (const DimOf& operand : operands) {
    const Tags& known = tags(operand.value, operand.dim);
    if (shape(operand.value)[operand.dim] != widest) {
      block(known, "is repeated along a dimension at " + place());
    } else if (is_constant(operand.value)) {
      has_channels |= !known.empty();  // another node has claimed it
    } else {
      (known.empty() ? has_fixed : has_channels) = true;
    }
  }
  if (!has_channels) return {};
  Tags all;
  for (const DimOf& operand : operands) {
    if (shape(operand.value)[operand.dim] != widest) continue;
    const bool is_weight = is_constant(operand.value);
    const Tags one = is_weight ? claim(operand.value, operand.dim, operand.role) : tags(operand.value, operand.dim);
    if (one.empty()) continue;
    if (all.empty())
      all = one;
    else
      unite(all, one);
  }
  if (has_fixed) block(all, "meets channels that stay at " + place());
  return has_fixed ? Tags{} : all;
}

void Ties::block(const Tags& tags, const std::string& reason) {
  for (Element element : tags) elements_.block(element, reason);
}

void Ties::note_statistics(const Tags& tags, const std::string& text) {
  for (Element element : tags) elements_.note_statistics(element, text);
}

void Ties::block_inputs(const std::string& reason) {
  for (ValueId id : node().inputs) {
    if (!id.is_valid() || !is_known(id)) continue;
    for (std::size_t d = 0; d < shape(id).size(); ++d) block(tags(id, d), reason);
  }
  for (ValueId id : node().captured) {
    if (!is_known(id)) continue;
    for (std::size_t d = 0; d < shape(id).size(); ++d) block(tags(id, d), reason);
  }
}

}  // namespace ctk::graph

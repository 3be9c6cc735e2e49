// Cutting: weights lose the indices of the units that go, sizes written in the model follow, every shape is checked.
#include <algorithm>
#include <cstring>

#include "graph/coupling/coupling.h"
#include "graph/coupling/rules.h"

namespace ctk::graph {

using ctk::to_string;

namespace {

// The tensor without the indices of `axis` whose element goes.
Result<Tensor> without(const Tensor& tensor, std::size_t axis, const std::vector<bool>& is_kept) {
  Shape shape = tensor.shape();
  std::size_t rows = 1, block = byte_size(tensor.dtype(), 1);
  for (std::size_t d = 0; d < axis; ++d) rows *= static_cast<std::size_t>(shape[d]);
  for (std::size_t d = axis + 1; d < shape.size(); ++d) block *= static_cast<std::size_t>(shape[d]);
  shape[axis] = std::ranges::count(is_kept, true);
  CTK_TRY(Tensor smaller, Tensor::zeros(tensor.dtype(), shape));
  auto* to = static_cast<std::byte*>(smaller.mutable_data());
  const std::byte* from = tensor.raw().data();
  for (std::size_t row = 0; row < rows; ++row) {
    for (const bool stays : is_kept) {
      if (stays && block != 0) {
        std::memcpy(to, from, block);
        to += block;
      }
      from += block;
    }
  }
  return smaller;
}

}  // namespace

std::int64_t Refit::kept(ValueId value, std::size_t dim, std::int64_t end) const {
  const Tags& tags = ties_.tags(value, dim);
  if (tags.empty()) return end;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < end; ++i) {
    count += is_removed_[ties_.elements().find(tags[static_cast<std::size_t>(i)])] ? 0 : 1;
  }
  return count;
}

void Refit::set_integers(std::size_t index, const std::vector<std::int64_t>& values) {
  const Node& old = before();
  const bool has_name = index < old.inputs.size() && old.inputs[index].is_valid();
  const std::string wish = has_name ? ties_.graph().value(old.inputs[index]).name : graph_.address(node_) + ".sizes";
  const ValueId fresh = graph_.add_constant(
      graph_.unique_name(wish), Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  Node& target = graph_.node(node_);
  if (index >= target.inputs.size()) target.inputs.resize(index + 1);
  graph_.set_input(node_, index, fresh);
}

std::vector<bool> Coupling::mask_of(const Units& removed) const {
  std::vector<bool> mask(ties_->elements().count(), false);
  for (std::size_t g = 0; g < removed.size(); ++g) {
    for (std::size_t unit : removed[g]) mask[groups_[g].units[unit].element] = true;
  }
  return mask;
}

Shape Coupling::shape_without(ValueId value, const std::vector<bool>& mask) const {
  Shape shape = ties_->shape(value);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    for (Element element : ties_->tags(value, d)) shape[d] -= mask[ties_->elements().find(element)] ? 1 : 0;
  }
  return shape;
}

std::vector<std::int64_t> Coupling::kept(ValueId value, std::size_t dim, const std::vector<bool>& mask) const {
  const Tags& tags = ties_->tags(value, dim);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < ties_->shape(value)[dim]; ++i) {
    if (tags.empty() || !mask[ties_->elements().find(tags[static_cast<std::size_t>(i)])]) indices.push_back(i);
  }
  return indices;
}

Result<Graph> Coupling::cut(const Units& removed) const {
  Ties& ties = *ties_;
  const Graph& before = ties.graph();
  const std::vector<bool> is_removed = mask_of(removed);
  Graph graph = before.clone();
  for (const auto& [place, tags] : ties.constant_axes()) {
    std::vector<bool> is_kept;
    for (Element element : tags) is_kept.push_back(!is_removed[ties.elements().find(element)]);
    if (std::ranges::count(is_kept, false) == 0) continue;
    Value& value = graph.value(place.first);
    CTK_TRY(value.constant, without(*value.constant, place.second, is_kept));
  }
  for (NodeId id : before.order()) {
    const Node& node = before.node(id);
    if (node.op == Op::unknown || coupling_rule(node.op).refit == nullptr) continue;
    if (!std::ranges::all_of(node.inputs, [&](ValueId v) { return !v.is_valid() || ties.is_known(v); })) continue;
    if (!std::ranges::all_of(node.outputs, [&](ValueId v) { return !v.is_valid() || ties.is_known(v); })) continue;
    ties.begin(id);
    Refit refit(ties, is_removed, graph, id);
    coupling_rule(node.op).refit(refit);
  }
  for (std::size_t i = 0; i < before.value_capacity(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    Value& value = graph.value(id);
    if (value.is_removed || !ties.is_known(id)) continue;
    const Shape shape = shape_without(id, is_removed);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 0 && ties.shape(id)[d] != 0) {
        return input_error(quoted(value.name) + ": expected a channel to stay, found all " +
                           std::to_string(ties.shape(id)[d]) + " cut. Cut fewer");
      }
      const bool is_declared = value.shape && value.shape->size() == shape.size() && (*value.shape)[d].size >= 0;
      if (is_declared && shape[d] != ties.shape(id)[d]) (*value.shape)[d].size = shape[d];
    }
  }
  CTK_TRY(const std::vector<InferredValue> after, infer_shapes(graph, input_shapes_, true));
  for (std::size_t i = 0; i < before.value_capacity(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    if (graph.value(id).is_removed || !ties.is_known(id) || !after[i].known) continue;
    const Shape expected = shape_without(id, is_removed);
    if (after[i].info.shape == expected) continue;
    return input_error(quoted(graph.value(id).name) + ": expected shape " + to_string(expected) +
                       " after the cut, found " + to_string(after[i].info.shape) +
                       ", which follows from sizes the model computes. Leave it out with `ignore`");
  }
  graph.remove_dead_values();
  return graph;
}

}  // namespace ctk::graph

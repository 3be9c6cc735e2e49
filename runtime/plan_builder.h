// What step makers use while a plan is built: the forms of each value that exist so far, and how to get another.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "graph/layer.h"
#include "runtime/plan.h"

namespace ctk::runtime {

class PlanBuilder {
 public:
  PlanBuilder(const graph::Graph& graph, const PlanOptions& options, std::vector<graph::InferredValue> infos,
              std::vector<Isa> isas);

  const graph::Graph& graph() const { return graph_; }
  const PlanOptions& options() const { return options_; }
  std::span<const Isa> isas() const { return isas_; }
  const graph::ValueInfo& info(graph::ValueId id) const { return infos_[id.index].info; }
  const Shape& shape(graph::ValueId id) const { return infos_[id.index].info.shape; }
  bool has_note(graph::ValueId id) const { return graph_.value(id).activation_quant.has_value(); }
  const ActivationQuant& note(graph::ValueId id) const { return *graph_.value(id).activation_quant; }
  bool is_kept(graph::ValueId id) const;
  // True when a fusion may leave `id` unmaterialized: one reader, not kept, no graph output.
  bool is_internal(graph::ValueId id) const;
  bool is_sole_use(graph::ValueId id) const;  // the same, whether or not this plan fuses

  // A slot holding `id` in this form and layout; adds conversion steps when it does not exist yet.
  // Errors: internal (no such value yet; codes asked of a value without note).
  Result<int> need(graph::ValueId id, Form form, Layout layout);
  // A fresh slot for `id` in this form and layout, to be written by the step being made.
  int define(graph::ValueId id, Form form, Layout layout);
  // Declares that `slot`'s bytes are also `id` in this form and layout (reshape, same-layout aliasing).
  void define_alias(graph::ValueId id, Form form, Layout layout, int slot);
  // The layout under which `slot` holds `id`; plain where both coincide.
  Layout layout_of(graph::ValueId id, Form form, int slot) const;
  int add_slot(std::size_t bytes);
  int add_constant_slot(Tensor tensor);
  void add_step(std::unique_ptr<Step> step, graph::NodeId node);
  // The packed weights of `step` (its row, packed_bytes), shared with other plans of the graph.
  Result<std::shared_ptr<const void>> packed(graph::NodeId node, const Step& step, const kernels::ConvShape& shape,
                                             const std::function<void(void*)>& pack) const {
    return options_.packed->get(node, step.row, shape, step.packed_bytes, pack);
  }
  // Marks a node as computed by another's step.
  void mark_done(graph::NodeId id) { is_done_[id.index] = true; }
  bool is_done(graph::NodeId id) const { return is_done_[id.index]; }

  Result<Plan> build();

 private:
  struct Version {
    graph::ValueId value;
    Form form;
    Layout layout;
    int slot;
    bool is_raw;  // floats a producer wrote for a value with note: readers must see them only after rounding to codes
  };
  std::optional<int> find(graph::ValueId id, Form form, Layout layout) const;
  bool layouts_coincide(graph::ValueId id) const;
  std::optional<Version> find_raw(graph::ValueId id) const;
  Status define_constant(graph::ValueId id);
  int define_clean(graph::ValueId id, Form form, Layout layout);
  Status add_node_steps(graph::NodeId id);
  Status keep_values(std::span<const graph::ValueId> values);
  Status finish_outputs();
  void assign_memory();

  const graph::Graph& graph_;
  const PlanOptions& options_;
  std::vector<graph::InferredValue> infos_;
  std::vector<Isa> isas_;
  std::vector<std::vector<Version>> versions_;  // by value
  std::vector<bool> is_done_;
  Plan plan_;
};

// Step makers, tried in this order by PlanBuilder; each answers false when the node is not its kind. Files in steps/.
Result<bool> make_layer_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_pool_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_resize_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_gated_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_elementwise_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_embedding_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_movement_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_normalization_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_rotary_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_attention_steps(PlanBuilder& builder, graph::NodeId id);
Result<bool> make_reference_steps(PlanBuilder& builder, graph::NodeId id);  // any operator with float evaluation
// Conversions between forms and layouts of one value.
std::unique_ptr<Step> make_quantize_step(PlanBuilder& builder, graph::ValueId id, int from, int to);
std::unique_ptr<Step> make_dequantize_step(PlanBuilder& builder, graph::ValueId id, int from, int to);
std::unique_ptr<Step> make_layout_step(PlanBuilder& builder, graph::ValueId id, Form form, Layout to_layout, int from,
                                       int to);

// Batch, channels and pixels of a rank-3/4 activation in ONNX order.
struct ImageExtent {
  std::size_t batch = 1, channels = 1, pixels = 1;
};
ImageExtent image_extent(const Shape& shape);

// Clamp bounds an absorbed Relu or Clip stands for; nullopt when `id` is neither (or has unknown bounds).
struct ClampRange {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};
std::optional<ClampRange> clamp_of(const graph::Graph& graph, graph::NodeId id);
// The codes such bounds become on a value with note `q`.
struct CodeClamp {
  std::uint8_t low = 0, high = 255;
};
CodeClamp code_clamp(const ClampRange& range, const ActivationQuant& q);

}  // namespace ctk::runtime

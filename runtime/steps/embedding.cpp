// Rows of a coded table (Gather along dimension 0), dequantized as they are asked for. A table that is a layer's weight
// too, as a decoder's head is, is read where that layer's kernel reads it: nothing is held twice, and never as floats.
#include "core/parallel.h"
#include "graph/ops/movement.h"
#include "runtime/steps/group_weight.h"
#include "runtime/steps/layer.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

constexpr std::size_t kGrainRows = 8;

class EmbeddingStep final : public Step {
 public:
  GroupWeight table;
  std::size_t count = 0;  // of indices
  bool is_wide = false;   // they are int64, else int32

  Status run(const RunContext& context) override {
    const graph::Integers wish{context.at<const void>(reads[0]), is_wide, count};
    const auto rows = static_cast<std::int64_t>(table.shape.n);
    for (std::size_t i = 0; i < count; ++i) {
      if (wish[i] >= -rows && wish[i] < rows) continue;
      return input_error("indices: expected values in [" + std::to_string(-rows) + "," + std::to_string(rows - 1) +
                         "], found " + std::to_string(wish[i]) + " at position " + std::to_string(i) +
                         ". Give the model ids that its table has rows for");
    }
    float* y = context.at<float>(writes[0]);
    parallel_for(count, kGrainRows, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto row = static_cast<std::size_t>(wish[i] < 0 ? wish[i] + rows : wish[i]);
        table.gemm->unpack_row(table.shape, table.packed.get(), row, y + i * table.shape.k);
      }
    });
    return {};
  }
};

// The product that packs the same codes, if there is one.
std::optional<graph::Layer> layer_with(const PlanBuilder& builder, ValueId weight) {
  for (NodeId reader : builder.graph().value(weight).consumers) {
    const auto layer = graph::layer_of(builder.graph(), reader);
    if (layer && layer->weight == weight && layer->channel_axis == 0 && is_group_layer(builder, *layer)) return layer;
  }
  return std::nullopt;
}

}  // namespace

Result<bool> make_embedding_steps(PlanBuilder& builder, NodeId id) {
  const Node& node = builder.graph().node(id);
  if (node.op != Op::Gather || node.attributes.get_int("axis", 0) != 0) return false;
  const ValueId data = node.inputs[0], indices = node.inputs[1];
  const auto& coded = builder.graph().value(data).quantized;
  if (coded == nullptr || coded->channel_axis != 0 || !is_group_weight(*coded)) return false;
  auto step = std::make_unique<EmbeddingStep>();
  step->label = "embedding";
  const auto layer = layer_with(builder, data);
  if (layer) {
    CTK_TRY(const auto shape, layer_geometry(builder, *layer));
    CTK_TRY(step->table,
            pack_group_weight(builder, *coded, layer->node, packed_geometry(builder, *layer, *shape), *step));
    step->packed_bytes = 0;  // counted with the layer
  } else {
    CTK_TRY(step->table, pack_group_weight(builder, *coded, id, kernels::ConvShape{}, *step));
  }
  step->count = elements(builder.shape(indices));
  step->is_wide = builder.info(indices).dtype == DType::i64;
  CTK_TRY(const int slot, builder.need(indices, Form::native, Layout::plain));
  step->reads = {slot};
  step->writes = {builder.define(node.outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime

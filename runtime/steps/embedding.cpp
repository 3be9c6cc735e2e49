// Rows of a table (Gather along dimension 0) that is coded, or held in 16 bits, widened as they are asked for. A coded
// table that is a layer's weight too, as a decoder's head is, is read where that layer's kernel reads it: nothing is
// held twice, and never as floats.
#include "core/parallel.h"
#include "graph/floats.h"
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

class EmbeddingStep : public Step {
 public:
  std::size_t rows = 0, columns = 0;  // of the table
  std::size_t count = 0;              // of indices
  bool is_wide = false;               // they are int64, else int32

  Status run(const RunContext& context) override {
    const graph::Integers wish{context.at<const void>(reads[0]), is_wide, count};
    const auto height = static_cast<std::int64_t>(rows);
    for (std::size_t i = 0; i < count; ++i) {
      if (wish[i] >= -height && wish[i] < height) continue;
      return input_error("indices: expected values in [" + std::to_string(-height) + "," + std::to_string(height - 1) +
                         "], found " + std::to_string(wish[i]) + " at position " + std::to_string(i) +
                         ". Give the model ids that its table has rows for");
    }
    float* y = context.at<float>(writes[0]);
    parallel_for(count, kGrainRows, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        read_row(static_cast<std::size_t>(wish[i] < 0 ? wish[i] + height : wish[i]), y + i * columns);
    });
    return {};
  }

 private:
  virtual void read_row(std::size_t row, float* out) const = 0;
};

class CodedEmbeddingStep final : public EmbeddingStep {
 public:
  GroupWeight table;

 private:
  void read_row(std::size_t row, float* out) const override {
    table.gemm->unpack_row(table.shape, table.packed.get(), row, out);
  }
};

class NarrowEmbeddingStep final : public EmbeddingStep {
 public:
  Tensor table;

 private:
  void read_row(std::size_t row, float* out) const override { graph::widen_row(table, row, out); }
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
  const graph::Value& value = builder.graph().value(data);
  const auto& coded = value.quantized;
  const bool is_coded = coded != nullptr && coded->channel_axis == 0 && is_group_weight(*coded);
  const bool is_narrow = coded == nullptr && graph::is_narrow(value) && value.constant->shape().size() == 2;
  std::unique_ptr<EmbeddingStep> step;
  if (is_coded) {
    auto made = std::make_unique<CodedEmbeddingStep>();
    const auto layer = layer_with(builder, data);
    if (layer) {
      CTK_TRY(const auto shape, layer_geometry(builder, *layer));
      CTK_TRY(made->table,
              pack_group_weight(builder, *coded, layer->node, packed_geometry(builder, *layer, *shape), *made));
      made->packed_bytes = 0;  // counted with the layer
    } else {
      CTK_TRY(made->table, pack_group_weight(builder, *coded, id, kernels::ConvShape{}, *made));
    }
    made->rows = made->table.shape.n;
    made->columns = made->table.shape.k;
    step = std::move(made);
  } else if (is_narrow) {
    auto made = std::make_unique<NarrowEmbeddingStep>();
    made->table = *value.constant;
    made->rows = static_cast<std::size_t>(value.constant->shape()[0]);
    made->columns = static_cast<std::size_t>(value.constant->shape()[1]);
    step = std::move(made);
  } else {
    return false;
  }
  step->label = "embedding";
  step->count = elements(builder.shape(indices));
  step->is_wide = builder.info(indices).dtype == DType::i64;
  CTK_TRY(const int slot, builder.need(indices, Form::native, Layout::plain));
  step->reads = {slot};
  step->writes = {builder.define(node.outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime

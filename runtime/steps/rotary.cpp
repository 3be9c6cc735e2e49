// RotaryEmbedding of [B, T, heads * size] by position_ids with the kernel `rope`, split over threads by tokens. The
// products and sums are those of graph/ops/rotary_embedding.cpp; other forms run by their float evaluation.
#include <algorithm>

#include "core/parallel.h"
#include "kernels/rope/rope.h"
#include "kernels/select.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::Op;

constexpr std::size_t kGrainElements = 4096;

class RotaryStep final : public Step {
 public:
  const kernels::RopeRow* kernel = nullptr;
  kernels::Rope rope;
  std::size_t tokens = 0;  // of all texts
  std::int64_t positions = 0;

  Status run(const RunContext& context) override {
    const float* x = context.at<const float>(reads[0]);
    const float* cosines = context.at<const float>(reads[1]);
    const float* sines = context.at<const float>(reads[2]);
    const auto* at = context.at<const std::int64_t>(reads[3]);
    float* y = context.at<float>(writes[0]);
    for (std::size_t t = 0; t < tokens; ++t) {
      if (at[t] >= 0 && at[t] < positions) continue;
      return input_error("position_ids: expected positions below " + std::to_string(positions) +
                         ", the rows of cos_cache, found " + std::to_string(at[t]) + " at token " + std::to_string(t) +
                         ". Feed shorter sequences.");
    }
    const std::size_t width = rope.heads * rope.size;
    parallel_for(tokens, std::max<std::size_t>(1, kGrainElements / width), [&](std::size_t begin, std::size_t end) {
      for (std::size_t t = begin; t < end; ++t) {
        const std::size_t angle = static_cast<std::size_t>(at[t]) * rope.pairs;
        kernel->turn(rope, x + t * width, cosines + angle, sines + angle, y + t * width);
      }
    });
    return {};
  }
};

}  // namespace

Result<bool> make_rotary_steps(PlanBuilder& builder, graph::NodeId id) {
  const Node& node = builder.graph().node(id);
  if (node.op != Op::RotaryEmbedding) return false;
  const Shape& shape = builder.shape(node.inputs[0]);
  const bool has_positions = node.inputs.size() > 3 && node.inputs[3].is_valid();
  const bool is_served = shape.size() == 3 && has_positions;
  if (!is_served || elements(shape) == 0) return false;
  const Shape& table = builder.shape(node.inputs[1]);
  auto step = std::make_unique<RotaryStep>();
  step->tokens = static_cast<std::size_t>(shape[0] * shape[1]);
  step->kernel = &kernels::select(kernels::rope_rows(), builder.isas());
  step->row = step->kernel->name;
  step->rope.heads = static_cast<std::size_t>(node.attributes.get_int("num_heads", 1));
  step->rope.size = static_cast<std::size_t>(shape[2]) / step->rope.heads;
  step->rope.interleaved = node.attributes.get_int("interleaved", 0) != 0;
  step->positions = table[0];
  step->rope.pairs = static_cast<std::size_t>(table[1]);
  step->label = "rotary";
  for (std::size_t i = 0; i < 4; ++i) {
    CTK_TRY(const int slot, builder.need(node.inputs[i], Form::native, Layout::plain));
    step->reads.push_back(slot);
  }
  step->writes = {builder.define(node.outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime

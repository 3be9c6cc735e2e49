// RMSNormalization split over threads by rows; sums and products in the order of graph/ops/rms_normalization.cpp, so
// the bits are those of the operator's own evaluation.
#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "graph/ops/lane_sums.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {
namespace {

using graph::Node;
using graph::Op;

constexpr std::size_t kGrainElements = 4096;

class NormalizationStep final : public Step {
 public:
  std::size_t rows = 0, count = 0;
  double epsilon = 1e-5;

  Status run(const RunContext& context) override {
    const float* x = context.at<const float>(reads[0]);
    const float* scale = context.at<const float>(reads[1]);
    float* y = context.at<float>(writes[0]);
    const std::size_t grain = std::max<std::size_t>(1, kGrainElements / count);
    parallel_for(rows, grain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row) {
        const float* from = x + row * count;
        float* to = y + row * count;
        const double mean = graph::sum_of_squares(from, count) / static_cast<double>(count);
        const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + epsilon));
        for (std::size_t i = 0; i < count; ++i) to[i] = from[i] * inverse * scale[i];
      }
    });
    return {};
  }
};

}  // namespace

Result<bool> make_normalization_steps(PlanBuilder& builder, graph::NodeId id) {
  const Node& node = builder.graph().node(id);
  if (node.op != Op::RMSNormalization) return false;
  const Shape& shape = builder.shape(node.inputs[0]);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t axis = node.attributes.get_int("axis", -1);
  const bool is_last = axis == -1 || axis == rank - 1;
  if (!is_last || elements(shape) == 0 || builder.shape(node.inputs[1]) != Shape{shape.back()}) return false;
  auto step = std::make_unique<NormalizationStep>();
  step->count = static_cast<std::size_t>(shape.back());
  step->rows = elements(shape) / step->count;
  step->epsilon = node.attributes.get_float("epsilon", 1e-5f);
  step->label = "rms_normalization";
  for (std::size_t i = 0; i < 2; ++i) {
    CTK_TRY(const int slot, builder.need(node.inputs[i], Form::native, Layout::plain));
    step->reads.push_back(slot);
  }
  step->writes = {builder.define(node.outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime

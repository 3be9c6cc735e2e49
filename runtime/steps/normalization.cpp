// RMSNormalization and LayerNormalization split over threads by rows; sums and products in the order of graph/ops, so
// the bits are those of the operators' own evaluation.
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
  bool centres = false;  // LayerNormalization

  Status run(const RunContext& context) override {
    const float* x = context.at<const float>(reads[0]);
    const float* scale = context.at<const float>(reads[1]);
    const float* shift = reads.size() > 2 ? context.at<const float>(reads[2]) : nullptr;
    float* y = context.at<float>(writes[0]);
    const std::size_t grain = std::max<std::size_t>(1, kGrainElements / count);
    parallel_for(rows, grain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row) {
        const float* from = x + row * count;
        float* to = y + row * count;
        if (centres) {
          layer(from, scale, shift, to);
        } else {
          root_mean_square(from, scale, to);
        }
      }
    });
    return {};
  }

 private:
  void root_mean_square(const float* x, const float* scale, float* y) const {
    const double mean = graph::sum_of_squares(x, count) / static_cast<double>(count);
    const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + epsilon));
    for (std::size_t i = 0; i < count; ++i) y[i] = x[i] * inverse * scale[i];
  }

  void layer(const float* x, const float* scale, const float* shift, float* y) const {
    const auto [mean, inverse] = graph::row_statistics(x, count, epsilon);
    for (std::size_t i = 0; i < count; ++i) {
      y[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * inverse) * scale[i];
    }
    for (std::size_t i = 0; shift != nullptr && i < count; ++i) y[i] += shift[i];
  }
};

}  // namespace

Result<bool> make_normalization_steps(PlanBuilder& builder, graph::NodeId id) {
  const Node& node = builder.graph().node(id);
  const bool centres = node.op == Op::LayerNormalization;
  if ((node.op != Op::RMSNormalization && !centres) || node.outputs.size() > 1) return false;
  const Shape& shape = builder.shape(node.inputs[0]);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t axis = node.attributes.get_int("axis", -1);
  const bool is_last = axis == -1 || axis == rank - 1;
  const bool has_shift = node.inputs.size() > 2 && node.inputs[2].is_valid();
  const Shape row{shape.empty() ? 0 : shape.back()};
  if (!is_last || elements(shape) == 0 || builder.shape(node.inputs[1]) != row) return false;
  if (has_shift && builder.shape(node.inputs[2]) != row) return false;
  auto step = std::make_unique<NormalizationStep>();
  step->count = static_cast<std::size_t>(shape.back());
  step->rows = elements(shape) / step->count;
  step->epsilon = node.attributes.get_float("epsilon", 1e-5f);
  step->centres = centres;
  step->label = centres ? "layer_normalization" : "rms_normalization";
  for (std::size_t i = 0; i < (has_shift ? 3u : 2u); ++i) {
    CTK_TRY(const int slot, builder.need(node.inputs[i], Form::native, Layout::plain));
    step->reads.push_back(slot);
  }
  step->writes = {builder.define(node.outputs[0], Form::native, Layout::plain)};
  builder.add_step(std::move(step), id);
  return true;
}

}  // namespace ctk::runtime

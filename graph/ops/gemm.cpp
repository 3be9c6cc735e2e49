// Gemm: Y = alpha * A' * B' + beta * C, where A' and B' may be transposed. alpha never touches C.
// In:  A [M, K] (or [K, M] with transA), B [K, N] (or [N, K] with transB), C broadcast to [M, N] (optional), all f32.
// Out: Y [M, N].
#include "graph/ops/elementwise.h"
#include "graph/ops/matrix.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_all_f32(inputs));
  const Shape& a = inputs[0].info.shape;
  const Shape& b = inputs[1].info.shape;
  CTK_CHECK(expect_rank("A", a, 2, 2));
  CTK_CHECK(expect_rank("B", b, 2, 2));
  const bool transposes_a = node.attributes.get_int("transA", 0) != 0;
  const bool transposes_b = node.attributes.get_int("transB", 0) != 0;
  const std::int64_t depth_a = a[transposes_a ? 0 : 1];
  const std::int64_t depth_b = b[transposes_b ? 1 : 0];
  if (depth_a != depth_b) {
    return input_error("input B: expected " + std::to_string(depth_a) + " as its inner dimension like A " +
                       to_string(a) + ", found shape " + to_string(b) + ". Check transA and transB.");
  }
  const Shape shape = {a[transposes_a ? 1 : 0], b[transposes_b ? 0 : 1]};
  if (is_present(inputs, 2)) CTK_CHECK(expect_broadcasts_to("C", inputs[2].info.shape, shape));
  return single_output(DType::f32, shape);
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const bool transposes_a = node.attributes.get_int("transA", 0) != 0;
  const auto rows = static_cast<std::size_t>(outputs[0].shape[0]);
  const auto columns = static_cast<std::size_t>(outputs[0].shape[1]);
  const auto depth = static_cast<std::size_t>(inputs[0].shape[transposes_a ? 0 : 1]);
  MatrixA a = {inputs[0].as<float>(), depth, 1};
  if (transposes_a) a = {inputs[0].as<float>(), 1, rows};
  multiply(rows, columns, depth, a, inputs[1].as<float>(), node.attributes.get_int("transB", 0) != 0,
           outputs[0].as<float>());
  const float alpha = node.attributes.get_float("alpha", 1.0f);
  if (alpha != 1.0f) {
    for (float& y : outputs[0].values<float>()) y *= alpha;
  }
  if (inputs.size() > 2 && inputs[2].data != nullptr) {
    const float beta = node.attributes.get_float("beta", 1.0f);
    combine_in_place<float>(outputs[0], inputs[2], [beta](float y, float c) { return y + beta * c; });
  }
  return {};
}

}  // namespace

const OpRules& rules_Gemm() {
  static const OpRules rules = {OpKind::layer, 2, 3, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph

// MatMul: the numpy product. Leading dimensions broadcast; a 1-D A is a row, a 1-D B a column, and that dimension
// disappears from the result.
// In:  A [..., M, K], B [..., K, N], f32.   Out: Y [..., M, N].
#include "graph/ops/elementwise.h"
#include "graph/ops/matrix.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node&, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_all_f32(inputs));
  const Shape& a = inputs[0].info.shape;
  const Shape& b = inputs[1].info.shape;
  CTK_CHECK(expect_rank("A", a, 1));
  CTK_CHECK(expect_rank("B", b, 1));
  const std::int64_t depth = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (a.back() != depth) {
    return input_error("input B: expected " + std::to_string(a.back()) + " as its inner dimension like A " +
                       to_string(a) + ", found shape " + to_string(b) + ". Check the weight's orientation.");
  }
  const Shape batch_a(a.begin(), a.end() - std::min<std::ptrdiff_t>(2, std::ssize(a)));
  const Shape batch_b(b.begin(), b.end() - std::min<std::ptrdiff_t>(2, std::ssize(b)));
  CTK_TRY(Shape shape, broadcast(batch_a, batch_b));
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (b.size() > 1) shape.push_back(b.back());
  return single_output(DType::f32, std::move(shape));
}

// Steps of one operand along the batch dimensions, innermost first: 0 where it broadcasts.
struct BatchSteps {
  std::array<std::size_t, kMaxRank> steps{};
  BatchSteps(const Shape& shape, std::size_t matrix) {
    std::size_t running = matrix;
    for (std::size_t back = 2; back < shape.size(); ++back) {
      const auto dim = static_cast<std::size_t>(shape[shape.size() - 1 - back]);
      steps[back - 2] = dim == 1 ? 0 : running;
      running *= dim;
    }
  }
};

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  const auto depth = static_cast<std::size_t>(a.back());
  auto rows = static_cast<std::size_t>(a.size() > 1 ? a[a.size() - 2] : 1);
  const auto columns = static_cast<std::size_t>(b.size() > 1 ? b.back() : 1);
  const std::size_t total = outputs[0].size();
  if (total == 0) return {};
  const BatchSteps steps_a(a, rows * depth), steps_b(b, depth * columns);
  const std::size_t batch_rank = std::max<std::size_t>(std::max(a.size(), b.size()), 2) - 2;
  if (steps_b.steps == std::array<std::size_t, kMaxRank>{} && a.size() > 2 && b.size() <= 2) {
    rows = total / columns;  // one B for every batch: a single tall product
  }
  std::array<std::size_t, kMaxRank> index{};
  std::size_t at_a = 0, at_b = 0;
  for (std::size_t at_out = 0; at_out < total; at_out += rows * columns) {
    multiply(rows, columns, depth, {inputs[0].as<float>() + at_a, depth, 1}, inputs[1].as<float>() + at_b, false,
             outputs[0].as<float>() + at_out);
    for (std::size_t d = 0; d < batch_rank; ++d) {
      const auto size = [d](const Shape& shape) {
        return d + 2 < shape.size() ? static_cast<std::size_t>(shape[shape.size() - 3 - d]) : std::size_t{1};
      };
      at_a += steps_a.steps[d];
      at_b += steps_b.steps[d];
      const std::size_t dim = size(a) == 1 ? size(b) : size(a);
      if (++index[d] < dim) break;
      at_a -= steps_a.steps[d] * dim;
      at_b -= steps_b.steps[d] * dim;
      index[d] = 0;
    }
  }
  return {};
}

}  // namespace

const OpRules& rules_MatMul() {
  static const OpRules rules = {OpKind::layer, 2, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph

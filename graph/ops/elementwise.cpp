#include "graph/ops/elementwise.h"

#include <string>
#include <utility>

namespace ctk::graph {
namespace {

Status expect_same_dtype(std::span<const InferInput> inputs) {
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (!inputs[i].present || inputs[i].info.dtype == inputs[0].info.dtype) continue;
    return input_error("inputs: expected one element type, found " + std::string(name_of(inputs[0].info.dtype)) +
                       " and " + std::string(name_of(inputs[i].info.dtype)) + ". Insert a Cast.");
  }
  return {};
}

}  // namespace

InferResult infer_unary(const Node& node, std::span<const InferInput> inputs, EvaluateFunction evaluate,
                        std::initializer_list<DType> allowed) {
  CTK_CHECK(expect_inputs(inputs, 1));
  CTK_CHECK(expect_dtype(inputs, 0, "X", allowed));
  CTK_TRY(auto outputs, single_output(inputs[0].info.dtype, inputs[0].info.shape));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

InferResult infer_binary(const Node& node, std::span<const InferInput> inputs, EvaluateFunction evaluate,
                         std::initializer_list<DType> allowed, std::optional<DType> result) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_dtype(inputs, 0, "A", allowed));
  CTK_CHECK(expect_dtype(inputs, 1, "B", allowed));
  CTK_CHECK(expect_same_dtype(inputs));
  CTK_CHECK(expect_rank("A", inputs[0].info.shape, 0));
  CTK_CHECK(expect_rank("B", inputs[1].info.shape, 0));
  CTK_TRY(Shape shape, broadcast(inputs[0].info.shape, inputs[1].info.shape));
  CTK_TRY(auto outputs, single_output(result.value_or(inputs[0].info.dtype), std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

InferResult infer_variadic(const Node& node, std::span<const InferInput> inputs, EvaluateFunction evaluate) {
  CTK_CHECK(expect_inputs(inputs, inputs.empty() ? 1 : inputs.size()));
  CTK_CHECK(expect_dtype(inputs, 0, "0", kArithmeticTypes));
  CTK_CHECK(expect_same_dtype(inputs));
  Shape shape;
  for (const InferInput& input : inputs) {
    CTK_CHECK(expect_rank("data", input.info.shape, 0));
    CTK_TRY(shape, broadcast(shape, input.info.shape));
  }
  CTK_TRY(auto outputs, single_output(inputs[0].info.dtype, std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace ctk::graph

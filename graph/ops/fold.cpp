#include "graph/ops/fold.h"

#include <utility>

namespace ctk::graph {
namespace {

bool is_small(DType dtype, const Shape& shape) {
  const auto count = element_count(shape);
  return dtype != DType::string && count && *count <= kMaxFoldedElements;
}

}  // namespace

InferResult fold_if_known(const Node& node, std::span<const InferInput> inputs, std::vector<ValueInfo> outputs,
                          EvaluateFunction evaluate) {
  std::vector<TensorView> views(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present) continue;
    if (!is_known(inputs, i) || !is_small(inputs[i].info.dtype, inputs[i].info.shape)) return outputs;
    views[i] = inputs[i].info.constant->view();
  }
  std::vector<Tensor> tensors;
  std::vector<MutableTensorView> results;
  for (const ValueInfo& output : outputs) {
    if (!is_small(output.dtype, output.shape)) return outputs;
    CTK_TRY(Tensor tensor, Tensor::zeros(output.dtype, output.shape));
    results.push_back(tensor.mutable_view());
    tensors.push_back(std::move(tensor));
  }
  CTK_CHECK(evaluate(node, views, results));
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].constant = std::move(tensors[i]);
  return outputs;
}

}  // namespace ctk::graph

// Where: condition ? x : y, all three broadcast together. Elements are moved, not computed with, so any type of whole
// bytes will do.
#include <utility>

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

template <class Word>
void choose(std::span<const TensorView> inputs, const MutableTensorView& out) {
  using Three = std::array<std::size_t, 3>;
  for_each_broadcast_row<3>(out.shape, {&inputs[0].shape, &inputs[1].shape, &inputs[2].shape},
                            [&](const Three& offsets, const Three& steps, std::size_t out_offset, std::size_t count) {
                              const auto* condition = inputs[0].as<std::uint8_t>() + offsets[0];
                              const Word* x = inputs[1].as<Word>() + offsets[1];
                              const Word* y = inputs[2].as<Word>() + offsets[2];
                              Word* z = out.as<Word>() + out_offset;
                              for (std::size_t i = 0; i < count; ++i) {
                                z[i] = condition[i * steps[0]] != 0 ? x[i * steps[1]] : y[i * steps[2]];
                              }
                            });
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  switch (bits_of(outputs[0].dtype)) {
    case 8:
      choose<std::uint8_t>(inputs, outputs[0]);
      return {};
    case 16:
      choose<std::uint16_t>(inputs, outputs[0]);
      return {};
    case 32:
      choose<std::uint32_t>(inputs, outputs[0]);
      return {};
    case 64:
      choose<std::uint64_t>(inputs, outputs[0]);
      return {};
    default:
      return internal_error("element type " + std::string(name_of(outputs[0].dtype)) + " passed inference");
  }
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 3));
  CTK_CHECK(expect_dtype(inputs, 0, "condition", {DType::boolean}));
  const DType dtype = inputs[1].info.dtype;
  CTK_CHECK(expect_dtype(inputs, 2, "Y", {dtype}));
  if (bits_of(dtype) < 8) {
    return input_error("input X: expected elements of whole bytes, found " + std::string(name_of(dtype)) +
                       ". Insert a Cast.");
  }
  Shape shape;
  for (std::size_t i = 0; i < 3; ++i) {
    CTK_CHECK(expect_rank("data", inputs[i].info.shape, 0));
    CTK_TRY(shape, broadcast(shape, inputs[i].info.shape));
  }
  CTK_TRY(auto outputs, single_output(dtype, std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Where() {
  static const OpRules rules = {OpKind::other, 3, 3, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph

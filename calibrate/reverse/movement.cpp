// Operators that move elements. Those that keep the order hand the gradient on as it is. For the others the operator
// itself is run on the numbers of the elements: output i holds the number of the element it came from, and the gradient
// goes the same way back. What was repeated is summed, what was made up (padding) is dropped.
#include <vector>

#include "calibrate/reverse/rules.h"
#include "graph/ops/op.h"

namespace ctk::calibrate {

Status reverse_reinterpretation(const ReverseCall& call) {
  if (call.input_gradients[0].data == nullptr || call.output_gradients[0].data == nullptr) return {};
  const TensorView& g = call.output_gradients[0];
  add_summed({DType::f32, call.input_gradients[0].shape, g.data}, call.input_gradients[0]);
  return {};
}

Status reverse_movement(const ReverseCall& call) {
  constexpr std::int64_t kMadeUp = -1;
  const bool joins = call.node.op == graph::Op::Concat;
  const bool pads = call.node.op == graph::Op::Pad;
  std::vector<std::vector<std::int64_t>> numbers;  // of the inputs that are moved
  std::vector<TensorView> inputs(call.inputs.begin(), call.inputs.end());
  std::vector<std::size_t> first;  // number of each input's element 0
  std::size_t next = 0;
  for (std::size_t i = 0; i < (joins ? inputs.size() : 1); ++i) {
    first.push_back(next);
    std::vector<std::int64_t> own(inputs[i].size());
    for (std::int64_t& number : own) number = static_cast<std::int64_t>(next++);
    numbers.push_back(std::move(own));
    inputs[i] = {DType::i64, inputs[i].shape, numbers.back().data()};
  }
  first.push_back(next);
  if (pads) {
    if (inputs.size() < 3) inputs.resize(3);
    inputs[2] = {DType::i64, {}, &kMadeUp};
  }
  std::vector<std::vector<std::int64_t>> sources;
  std::vector<MutableTensorView> outputs;
  for (const TensorView& output : call.outputs) {
    sources.emplace_back(output.size());
    outputs.push_back({DType::i64, output.shape, sources.back().data()});
  }
  CTK_CHECK(graph::rules_of(call.node.op).evaluate(call.node, inputs, outputs));
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const float* g = call.output_gradients[o].as<float>();
    if (g == nullptr) continue;
    std::size_t input = 0;
    for (std::size_t i = 0; i < sources[o].size(); ++i) {
      if (sources[o][i] == kMadeUp) continue;
      const auto number = static_cast<std::size_t>(sources[o][i]);
      while (number < first[input]) --input;
      while (number >= first[input + 1]) ++input;
      float* dx = call.input_gradients[input].as<float>();
      if (dx != nullptr) dx[number - first[input]] += g[i];
    }
  }
  return {};
}

}  // namespace ctk::calibrate

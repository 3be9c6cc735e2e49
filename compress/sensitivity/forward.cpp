#include "compress/sensitivity/forward.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "compress/evaluate.h"
#include "compress/interrupt.h"
#include "runtime/cpu_executor.h"

namespace ctk::pipeline {
namespace {

// A copy in ONNX layout: `data` is [N, places, C] when `channels_last`.
Result<Tensor> in_onnx_layout(const TensorView& data, bool channels_last) {
  Shape shape = data.shape;
  if (channels_last && shape.size() > 2) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  CTK_TRY(Tensor tensor, Tensor::zeros(data.dtype, shape));
  if (!channels_last || shape.size() <= 2) {
    std::memcpy(tensor.mutable_data(), data.data, tensor.bytes());
    return tensor;
  }
  const auto samples = static_cast<std::size_t>(shape[0]), channels = static_cast<std::size_t>(shape[1]);
  const std::size_t places = samples * channels == 0 ? 0 : tensor.size() / samples / channels;
  float* to = tensor.mutable_values<float>().data();
  const float* from = data.as<float>();
  for (std::size_t n = 0; n < samples; ++n) {
    for (std::size_t p = 0; p < places; ++p) {
      for (std::size_t c = 0; c < channels; ++c) {
        to[(n * channels + c) * places + p] = from[(n * places + p) * channels + c];
      }
    }
  }
  return tensor;
}

}  // namespace

Status for_each_sample(const graph::Graph& graph, const data::Split& split, const PrepareShapes& prepare,
                       const EachSample& each) {
  const std::size_t step = fixed_batch(graph, 1);
  std::unique_ptr<runtime::CpuExecutor> executor;
  std::vector<Shape> known;
  const auto packed = std::make_shared<runtime::PackedWeights>();
  for (std::size_t first = 0; first < split.count(); first += step) {
    CTK_CHECK(check_interrupt());
    CTK_TRY(const data::Batch batch, split.read(first, std::min(split.count(), first + step)));
    std::vector<Shape> shapes;
    for (const Tensor& input : batch.inputs) shapes.push_back(input.shape());
    if (executor == nullptr || shapes != known) {
      CTK_TRY(const std::vector<graph::ValueId> keep, prepare(shapes));
      CTK_TRY(executor, runtime::CpuExecutor::create(graph, shapes, {keep, true, packed}));
      known = shapes;
    }
    calibrate::Values values;
    auto outputs = executor->run_observed(batch.inputs,
                                          [&](graph::ValueId id, const TensorView& data, bool channels_last) -> Status {
                                            CTK_TRY(values[id], in_onnx_layout(data, channels_last));
                                            return {};
                                          });
    if (!outputs) return std::move(outputs).error().with_context(split.source->where(split.indices[first]));
    auto done = each(batch.inputs, values, (*outputs)[0]);
    if (!done) return std::move(done).error().with_context(split.source->where(split.indices[first]));
  }
  return {};
}

}  // namespace ctk::pipeline

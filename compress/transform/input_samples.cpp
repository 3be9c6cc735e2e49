#include "compress/transform/input_samples.h"

#include <algorithm>
#include <cmath>

#include "compress/evaluate.h"
#include "compress/quantize/stream.h"
#include "core/printable.h"

namespace ctk::transform {
namespace {

using graph::Graph;

// [N, spatial..., C] as ONNX has it.
Tensor channels_first(const TensorView& data) {
  const auto channels = static_cast<std::size_t>(data.shape.back());
  Shape shape = data.shape;
  shape.insert(shape.begin() + 1, shape.back());
  shape.pop_back();
  Tensor tensor = Tensor::zeros(DType::f32, shape).value();
  const auto from = data.values<float>();
  const auto to = tensor.mutable_values<float>();
  const std::size_t outer = static_cast<std::size_t>(shape[0]);
  const std::size_t plane = from.size() / std::max<std::size_t>(1, outer * channels);
  for (std::size_t n = 0; n < outer; ++n) {
    for (std::size_t p = 0; p < plane; ++p) {
      for (std::size_t c = 0; c < channels; ++c)
        to[(n * channels + c) * plane + p] = from[(n * plane + p) * channels + c];
    }
  }
  return tensor;
}

Tensor tensor_of(const TensorView& data, bool channels_last) {
  if (channels_last) return channels_first(data);
  const auto values = data.values<float>();
  return Tensor::of<float>(data.shape, std::vector<float>(values.begin(), values.end()));
}

void take_reach(InputSamples& samples, std::span<const float> values, std::size_t features, std::size_t inner) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t f = i / inner % features;
    samples.low[f] = std::min(samples.low[f], values[i]);
    samples.high[f] = std::max(samples.high[f], values[i]);
  }
}

// Of [count, k] rows, about `wanted`, evenly.
void take_rows(InputSamples& samples, std::span<const float> rows, std::size_t k, std::size_t wanted) {
  const std::size_t count = rows.size() / k;
  const std::size_t every = std::max<std::size_t>(1, count / std::max<std::size_t>(1, wanted));
  for (std::size_t r = every / 2; r < count; r += every) {
    const auto row = rows.subspan(r * k, k);
    samples.rows.insert(samples.rows.end(), row.begin(), row.end());
  }
}

Status take(const Graph& graph, const InputGroup& group, const TensorView& data, bool channels_last,
            std::size_t rows_wanted, InputSamples& samples) {
  const auto all = data.values<float>();
  if (const auto bad = std::ranges::find_if(all, [](float v) { return !std::isfinite(v); }); bad != all.end()) {
    return input_error("value \"" + printable(graph.value(group.input).name) + "\": expected finite numbers, found \"" +
                       std::to_string(*bad) + "\". Repair the data or the model");
  }
  const auto k = static_cast<std::size_t>(group.sampled().reduction);
  if (!group.has_channels) {
    take_reach(samples, all, k, 1);
    take_rows(samples, all, k, rows_wanted);
    return samples.moment ? samples.moment->add(all) : Status();
  }
  const Tensor input = tensor_of(data, channels_last);
  std::size_t inner = 1;
  for (std::size_t d = 2; d < input.shape().size(); ++d) inner *= static_cast<std::size_t>(input.shape()[d]);
  take_reach(samples, input.values<float>(), group.features, inner);
  if (samples.moment) {
    const std::vector<float> rows = quantization::patches(graph, group.sampled(), input);
    take_rows(samples, rows, k, rows_wanted);
    return samples.moment->add(rows);
  }
  const std::size_t outer = static_cast<std::size_t>(input.shape()[0]);
  const std::size_t every = std::max<std::size_t>(1, outer * inner / std::max<std::size_t>(1, rows_wanted));
  const std::vector<float> rows = quantization::patches(graph, group.sampled(), input, every);
  samples.rows.insert(samples.rows.end(), rows.begin(), rows.end());
  return {};
}

}  // namespace

Result<std::vector<InputSamples>> read_samples(const Graph& graph, std::span<const InputGroup> groups,
                                               const data::Split& split, const SampleOptions& options) {
  std::vector<InputSamples> samples;
  std::vector<graph::ValueId> values;
  for (const InputGroup& group : groups) {
    InputSamples empty{std::vector<float>(group.features, 0.0f), std::vector<float>(group.features, 0.0f), {}, {}};
    if (options.has_moments) empty.moment.emplace(static_cast<std::size_t>(group.sampled().reduction));
    samples.push_back(std::move(empty));
    if (std::ranges::find(values, group.input) == values.end()) values.push_back(group.input);
  }
  const std::size_t batches = std::max<std::size_t>(1, split.count() / pipeline::batch_size(graph, split));
  const std::size_t rows = std::max<std::size_t>(1, options.rows / batches);
  const auto observe = [&](graph::ValueId id, const TensorView& data, bool channels_last) -> Status {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].input == id) CTK_CHECK(take(graph, groups[g], data, channels_last, rows, samples[g]));
    }
    return {};
  };
  CTK_CHECK(pipeline::for_each_batch(
      graph, split, observe, values,
      [](const std::vector<Tensor>&, const data::Batch&, std::size_t) -> Status { return {}; }));
  return samples;
}

std::size_t groups_at_once(std::span<const InputGroup> groups) {
  std::size_t bytes = 0, count = 0;
  for (const InputGroup& group : groups) {
    const auto k = static_cast<std::size_t>(group.sampled().reduction);
    bytes += k * k * sizeof(float);
    if (count > 0 && bytes > kMomentBytes) break;
    ++count;
  }
  return count;
}

}  // namespace ctk::transform

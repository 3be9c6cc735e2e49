#include "compress/sensitivity/change.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compress/quantize/layer_inputs.h"
#include "core/parallel.h"
#include "graph/floats.h"

namespace ctk::pipeline {

void WeightError::set(std::size_t channel, const float* errors) {
  float top = 0;
  for (std::size_t i = 0; i < reduction; ++i) top = std::max(top, std::abs(errors[i]));
  // Below the smallest normal number nothing is left to tell apart: all zeros.
  const float scale = std::max(top / 127.0f, std::numeric_limits<float>::min());
  scales[channel] = scale;
  for (std::size_t i = 0; i < reduction; ++i)
    values[channel * reduction + i] = static_cast<std::int8_t>(std::lrint(errors[i] / scale));
}

std::vector<float> WeightError::row(std::size_t channel) const {
  std::vector<float> floats(reduction);
  for (std::size_t i = 0; i < reduction; ++i)
    floats[i] = scales[channel] * static_cast<float>(values[channel * reduction + i]);
  return floats;
}

std::vector<float> WeightError::all() const {
  std::vector<float> floats;
  floats.reserve(values.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const std::vector<float> one = row(channel);
    floats.insert(floats.end(), one.begin(), one.end());
  }
  return floats;
}

double dot_error(const WeightError& error, std::size_t channel, const float* x) {
  constexpr std::size_t kLanes = 16, kRun = 512;  // a run is summed in float, runs in double
  const std::int8_t* e = error.values.data() + channel * error.reduction;
  double sum = 0;
  for (std::size_t first = 0; first < error.reduction; first += kRun) {
    const std::size_t last = std::min(error.reduction, first + kRun);
    float lanes[kLanes] = {};
    std::size_t i = first;
    for (; i + kLanes <= last; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<float>(e[i + lane]) * x[i + lane];
    }
    for (std::size_t lane = 0; i < last; ++i, ++lane) lanes[lane] += static_cast<float>(e[i]) * x[i];
    for (float lane : lanes) sum += static_cast<double>(lane);
  }
  return sum * static_cast<double>(error.scales[channel]);
}

Result<Change> change_of(const Session& session, const Candidate& candidate) {
  const graph::Graph& original = session.model.graph;
  graph::Graph changed = original.clone();
  CTK_CHECK(quantization::apply_schemes(changed, {{candidate.address, candidate.scheme}}, session.ranges,
                                        session.plain_options()));
  const graph::ValueId coded = changed.node(candidate.layer.node).inputs[1];
  const Tensor after = dequantize(*changed.value(coded).quantized);
  std::vector<float> error = quantization::weight_rows(candidate.layer, after);
  const std::vector<float> before =
      quantization::weight_rows(candidate.layer, graph::floats_of(original.value(candidate.layer.weight)));
  Change change;
  change.weight.channels = static_cast<std::size_t>(candidate.layer.channels);
  change.weight.reduction = error.size() / change.weight.channels;
  change.weight.values.resize(error.size());
  change.weight.scales.resize(change.weight.channels);
  for (std::size_t i = 0; i < error.size(); ++i) error[i] -= before[i];
  parallel_for(change.weight.channels, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) change.weight.set(c, error.data() + c * change.weight.reduction);
  });
  for (graph::NodeId reader : changed.value(coded).consumers) {
    if (changed.node(reader).op == graph::Op::Gather) change.embeddings.push_back(reader);
  }
  const auto quant_of = [&](graph::ValueId id) {
    return id.is_valid() ? changed.value(id).activation_quant : std::optional<ActivationQuant>();
  };
  for (std::size_t i = 0; i < original.value_capacity(); ++i) {
    const graph::ValueId id{static_cast<std::uint32_t>(i)};
    const auto quant = quant_of(id);
    if (!quant || changed.value(id).is_removed) continue;
    // Data movement hands codes through: what was rounded before is not rounded again.
    const graph::NodeId producer = changed.value(id).producer;
    const bool is_handed_on =
        producer.is_valid() && std::ranges::any_of(changed.node(producer).inputs,
                                                   [&](graph::ValueId input) { return quant_of(input) == quant; });
    if (!is_handed_on) change.noted.emplace_back(id, *quant);
  }
  const QuantScheme& scheme = candidate.scheme;
  if (scheme.granularity == Granularity::per_group && scheme.activation_bits == 8) {
    change.input_group = static_cast<std::size_t>(scheme.group_size);
  }
  return change;
}

double weighted_rounding(std::span<const float> x, std::span<const float> gradient, const ActivationQuant& quant) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double moved = static_cast<double>(dequantize(quantize(x[i], quant), quant)) - static_cast<double>(x[i]);
    const double change = moved * static_cast<double>(gradient[i]);
    sum += change * change;
  }
  return sum;
}

double weighted_group_rounding(std::span<const float> x, std::span<const float> gradient, std::size_t row,
                               std::size_t group) {
  double sum = 0;
  for (std::size_t start = 0; start < x.size(); start += row) {
    for (std::size_t first = start; first < start + row; first += group) {
      const std::size_t last = std::min(start + row, first + group);
      float top = 0;
      for (std::size_t i = first; i < last; ++i) top = std::max(top, std::abs(x[i]));
      if (top == 0.0f) continue;
      const float scale = top / 127.0f;
      for (std::size_t i = first; i < last; ++i) {
        const double moved = static_cast<double>(std::nearbyint(x[i] / scale) * scale) - static_cast<double>(x[i]);
        const double change = moved * static_cast<double>(gradient[i]);
        sum += change * change;
      }
    }
  }
  return sum;
}

}  // namespace ctk::pipeline

#include "compress/sensitivity/change.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "compress/quantize/layer_inputs.h"
#include "core/parallel.h"

namespace ctk::pipeline {
namespace {

std::uint16_t upper_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // ties to even; errors are finite
}

float from_upper_half(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

}  // namespace

std::vector<float> WeightError::row(std::size_t channel) const {
  std::vector<float> floats(reduction);
  for (std::size_t i = 0; i < reduction; ++i) floats[i] = from_upper_half(values[channel * reduction + i]);
  return floats;
}

std::vector<float> WeightError::all() const {
  std::vector<float> floats(values.size());
  std::ranges::transform(values, floats.begin(), from_upper_half);
  return floats;
}

double dot_error(const WeightError& error, std::size_t channel, const float* x) {
  constexpr std::size_t kLanes = 16, kRun = 512;  // a run is summed in float, runs in double
  const std::uint16_t* e = error.values.data() + channel * error.reduction;
  double sum = 0;
  for (std::size_t first = 0; first < error.reduction; first += kRun) {
    const std::size_t last = std::min(error.reduction, first + kRun);
    float lanes[kLanes] = {};
    std::size_t i = first;
    for (; i + kLanes <= last; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += from_upper_half(e[i + lane]) * x[i + lane];
    }
    for (std::size_t lane = 0; i < last; ++i, ++lane) lanes[lane] += from_upper_half(e[i]) * x[i];
    for (float lane : lanes) sum += static_cast<double>(lane);
  }
  return sum;
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
      quantization::weight_rows(candidate.layer, *original.value(candidate.layer.weight).constant);
  Change change;
  change.weight.channels = static_cast<std::size_t>(candidate.layer.channels);
  change.weight.reduction = error.size() / change.weight.channels;
  change.weight.values.resize(error.size());
  parallel_for(error.size(), 65536, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) change.weight.values[i] = upper_half(error[i] - before[i]);
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

#include "compress/quantize/apply.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "compress/quantize/bias_correction.h"
#include "compress/quantize/notes.h"
#include "compress/quantize/quantizers.h"
#include "compress/quantize/rtn.h"
#include "compress/quantize/stored_grid.h"
#include "core/printable.h"
#include "graph/floats.h"
#include "graph/shapes.h"

namespace ctk::quantization {
namespace {

using calibrate::Range;
using graph::Graph;
using graph::Layer;
using graph::NodeId;
using graph::ValueId;

double energy_of(const Tensor& weight) {
  double sum = 0;
  for (float v : weight.values<float>()) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum;
}

using Work = std::vector<std::pair<Layer, QuantScheme>>;

// Layers of `work` that one coded tensor serves together with `layer`: those that want the same codes.
std::vector<NodeId> mates_of(const Work& work, const Layer& layer, const QuantScheme& scheme) {
  std::vector<NodeId> mates;
  for (const auto& [other, wanted] : work) {
    if (wanted == scheme && graph::can_share_codes(other, layer)) mates.push_back(other.node);
  }
  return mates;
}

// An embedding that is the head too: its rows are the head's channels, so the codes serve both, and the file holds one.
bool shares_as_embedding(const Graph& graph, const Layer& layer, NodeId reader, const QuantScheme& scheme) {
  const graph::Node& node = graph.node(reader);
  const bool reads_rows = node.op == graph::Op::Gather && node.inputs[0] == layer.weight &&
                          node.attributes.get_int("axis", 0) == 0 && layer.channel_axis == 0;
  return reads_rows && scheme.is_integer_weight() && !scheme.is_integer_activation();
}

// Gives `layer` and its mates a weight of their own when other readers, or the graph's outputs, need the original.
// Weights in `work` follow. The warning names who keeps it.
void split_weight(Graph& graph, Work& work, Layer& layer, const QuantScheme& scheme, ApplyOutcome& outcome) {
  const ValueId shared = layer.weight;
  const std::vector<NodeId> mates = mates_of(work, layer, scheme);
  std::string others = graph.is_output(shared) ? "the graph's outputs" : "";
  for (NodeId reader : graph.value(shared).consumers) {
    if (std::find(mates.begin(), mates.end(), reader) != mates.end()) continue;
    if (shares_as_embedding(graph, layer, reader, scheme)) continue;
    others += (others.empty() ? "" : ", ") + printable(graph.address(reader)) + " (" + graph.node(reader).op_type + ")";
  }
  if (others.empty()) return;
  const std::string name = graph.value(shared).name, address = graph.address(layer.node);
  const ValueId copy = graph::add_copy(graph, graph.unique_name(name + "_for_" + address), shared);
  for (NodeId mate : mates) graph.set_input(mate, 1, copy);
  for (auto& [other, wanted] : work) {
    if (std::find(mates.begin(), mates.end(), other.node) != mates.end()) other.weight = copy;
  }
  layer.weight = copy;
  outcome.warnings.push_back({"weight_split", "weight \"" + printable(name) + "\" is shared with " + others +
                                                  "; it was split: " + printable(address) +
                                                  " got a copy of its own for " + to_string(scheme) +
                                                  ", the others keep the original"});
}

// Least scale of each channel at which its bias fits into int32 at scale input x weight.
std::vector<float> least_scales(const Graph& graph, const Layer& layer, const std::map<std::string, Range>& ranges) {
  if (!layer.bias.is_valid()) return {};
  const auto range = ranges.find(graph.value(layer.input).name);
  if (range == ranges.end()) return {};
  const float input_scale = activation_quant_from_range(range->second.low, range->second.high).scale;
  const auto bias = graph.value(layer.bias).constant->values<float>();
  std::vector<float> least(static_cast<std::size_t>(layer.channels));
  for (std::size_t c = 0; c < least.size(); ++c) {
    least[c] = least_weight_scale_for_bias(bias[bias.size() == 1 ? 0 : c], input_scale);
  }
  return least;
}

// Least scales that hold for both.
void raise(std::vector<float>& least, const std::vector<float>& other) {
  if (least.empty()) least.resize(other.size(), 0.0f);
  for (std::size_t c = 0; c < other.size(); ++c) least[c] = std::max(least[c], other[c]);
}

// Warns of channels (or the one group of a per-tensor scale) that hold numbers but whose codes all stand for 0, or
// whose scale had to be raised to the smallest normal number.
void warn_of_vanished(const graph::Value& value, const LayerOutcome& line, const Tensor& original,
                      ApplyOutcome& outcome) {
  const QuantTensor& coded = *value.quantized;
  const Tensor back = dequantize(coded);
  const auto channel = scale_of_elements(back.shape(), coded.channel_axis, coded.group_count, coded.scheme);
  std::vector<float> before(back.size() == 0 ? 0 : 1 + *std::max_element(channel.begin(), channel.end()), 0.0f);
  std::vector<float> after = before;  // largest magnitudes
  std::vector<double> energy(before.size(), 0.0), missed(before.size(), 0.0);
  for (std::size_t i = 0; i < channel.size(); ++i) {
    before[channel[i]] = std::max(before[channel[i]], std::abs(original.values<float>()[i]));
    after[channel[i]] = std::max(after[channel[i]], std::abs(back.values<float>()[i]));
    const double value = static_cast<double>(original.values<float>()[i]);
    energy[channel[i]] += value * value;
    missed[channel[i]] += std::pow(value - static_cast<double>(back.values<float>()[i]), 2);
  }
  std::size_t vanished = 0;
  float largest = 0.0f;
  for (std::size_t c = 0; c < before.size(); ++c) {
    const bool is_below_scale =
        coded.scheme.is_integer_weight() &&
        before[c] / static_cast<float>(highest_code(coded.scheme.weight_bits)) < std::numeric_limits<float>::min();
    // fp16 keeps 11 bits of each number, but fewer below 2^-14.
    const bool is_coarse = coded.scheme.weight_bits == 16 && missed[c] > 1e-4 * energy[c];
    if (before[c] == 0.0f || (after[c] != 0.0f && !is_below_scale && !is_coarse)) continue;
    ++vanished;
    largest = std::max(largest, before[c]);
  }
  if (vanished == 0) return;
  char text[40];
  std::snprintf(text, sizeof text, "%.3g", static_cast<double>(largest));
  outcome.warnings.push_back(
      {"weights_vanish",
       printable(line.address) + ": " + std::to_string(vanished) +
           (coded.scheme.granularity == Granularity::per_group ? " groups of weight \"" : " channels of weight \"") +
           printable(value.name) + "\" hold only numbers too small for " + to_string(line.scheme) + " (at most " +
           text +
           "): most or all of their digits are lost. Scale the weight up, or keep this layer float with `ignore`"});
}

Status code_weight(Graph& graph, const Layer& layer, const Tensor& original, const QuantScheme& scheme,
                   const Quantizer& quantizer, std::vector<float> least_scales, bool reduce_range,
                   const WeightOutcome* given, LayerOutcome& outcome) {
  graph::Value& value = graph.value(layer.weight);
  WeightRequest request;
  request.weight = original;
  request.scheme = scheme;
  request.channel_axis = layer.channel_axis;
  request.group_count = layer.group_count;
  request.least_scales = std::move(least_scales);
  request.reduce_range = reduce_range;
  auto result = given != nullptr ? Result<WeightOutcome>(*given) : keep_or_code(quantizer, request);
  if (!result) return std::move(result).error().with_context(outcome.address);
  const double energy = energy_of(original);
  outcome.method = result->tensor.method;
  outcome.error_method = energy > 0 ? result->squared_error / energy : 0;
  outcome.error_rtn = energy > 0 ? result->squared_error_rtn / energy : 0;
  outcome.raised_scales = result->raised_scales;
  outcome.receipt = result->receipt;
  value.quantized = std::make_shared<const QuantTensor>(std::move(result->tensor));
  value.constant.reset();
  return {};
}

const WeightOutcome* given_for(const ApplyOptions& options, const std::string& address) {
  if (options.given == nullptr) return nullptr;
  const auto found = options.given->find(address);
  return found == options.given->end() ? nullptr : &found->second;
}

// Why fp16 cannot hold a weight; empty when it can.
std::string beyond_half(const graph::Value& value) {
  if (!value.constant || value.dtype != DType::f32) return "";
  std::string reason;
  graph::visit_floats(value, [&](std::span<const float> piece, std::size_t) {
    const auto bad =
        std::ranges::find_if(piece, [](float v) { return !std::isfinite(half_to_float(float_to_half(v))); });
    if (bad == piece.end()) return true;
    reason = "weight \"" + value.name + "\" holds " + std::to_string(*bad) + ", which fp16 cannot hold (largest 65504)";
    return false;
  });
  return reason;
}

// Why fp16 scales cannot reach a weight; empty when they can.
std::string beyond_half_scales(const graph::Value& value, const QuantScheme& scheme) {
  if (!value.constant || value.dtype != DType::f32) return "";
  constexpr std::size_t kTogether = 16;  // side by side: one after another each would wait for the one before
  float low[kTogether] = {}, high[kTogether] = {};
  graph::visit_floats(value, [&](std::span<const float> piece, std::size_t) {
    std::size_t i = 0;
    for (; i + kTogether <= piece.size(); i += kTogether) {
      for (std::size_t j = 0; j < kTogether; ++j) {
        low[j] = std::min(low[j], piece[i + j]);
        high[j] = std::max(high[j], piece[i + j]);
      }
    }
    for (; i < piece.size(); ++i) {
      low[0] = std::min(low[0], piece[i]);
      high[0] = std::max(high[0], piece[i]);
    }
    return true;
  });
  const float smallest = *std::ranges::min_element(low), largest = *std::ranges::max_element(high);
  const float steps =
      static_cast<float>(scheme.is_affine ? (1 << scheme.weight_bits) - 1 : highest_code(scheme.weight_bits));
  const float reach = scheme.is_affine ? largest - smallest : std::max(largest, -smallest);
  if (reach / steps <= 65504.0f) return "";
  char text[40];
  std::snprintf(text, sizeof text, "%.3g", static_cast<double>(std::max(largest, -smallest)));
  return "weight \"" + value.name + "\" holds numbers up to " + text + ", which need scales beyond fp16 (65504)";
}

Status halve_weight(Graph& graph, const Layer& layer, const Tensor& original, LayerOutcome& outcome) {
  graph::Value& value = graph.value(layer.weight);
  QuantTensor halves;
  halves.scheme = {16, 32, Granularity::per_channel, 0};
  halves.channel_axis = layer.channel_axis;
  halves.group_count = layer.group_count;
  halves.method = "fp16";
  CTK_TRY(halves.codes, cast(original, DType::f16));
  const double energy = energy_of(original);
  const Tensor back = dequantize(halves);
  double error = 0;
  for (std::size_t i = 0; i < back.size(); ++i) {
    const double miss = static_cast<double>(back.values<float>()[i]) - static_cast<double>(original.values<float>()[i]);
    error += miss * miss;
  }
  outcome.method = "fp16";
  outcome.error_rtn = outcome.error_method = energy > 0 ? error / energy : 0;
  value.quantized = std::make_shared<const QuantTensor>(std::move(halves));
  value.constant.reset();
  return {};
}

}  // namespace

std::string infeasible_reason(const Graph& graph, const Layer& layer, const QuantScheme& scheme) {
  if (auto known = require_known_form(scheme); !known) return known.error().message;
  if (scheme.is_integer_weight() && !scheme.is_integer_activation()) {
    const std::string reason = beyond_half_scales(graph.value(layer.weight), scheme);
    if (!reason.empty()) return reason;
  }
  if (scheme.weight_bits == 16) {
    const std::string reason = beyond_half(graph.value(layer.weight));
    if (!reason.empty()) return reason;
  }
  if (scheme.granularity == Granularity::per_group) {
    const graph::Op op = graph.node(layer.node).op;
    if (op != graph::Op::Gemm && op != graph::Op::MatMul)
      return "groups are for matrix products (Gemm, MatMul), this is a " + graph.node(layer.node).op_type;
    if (scheme.group_size % 16 != 0)
      return "kernels take groups of a multiple of 16 inputs, these are of " + std::to_string(scheme.group_size);
    if (layer.reduction > 1048576) return "more than 2^20 products a sum";
  }
  if (scheme.is_integer_activation()) {
    const graph::Node& node = graph.node(layer.node);
    const graph::Value& weight = graph.value(layer.weight);
    const std::size_t rank = weight.constant ? weight.constant->shape().size() : weight.quantized->codes.shape().size();
    if (rank > 4)
      return node.op_type + " of rank " + std::to_string(rank) + " has no integer kernel (1-D and 2-D have)";
    if (layer.reduction > 66051) {  // 2^31 / (255 * 127.5): past it int32 sums could wrap
      return "sums of " + std::to_string(layer.reduction) + " products do not fit into int32";
    }
  }
  return "";
}

Status fold_gemm_factors(Graph& graph) {
  for (const Layer& found : graph::layers_of(graph)) {
    Layer layer = found;
    graph::Node& node = graph.node(layer.node);
    if (node.op != graph::Op::Gemm) continue;
    const float alpha = node.attributes.get_float("alpha", 1.0f);
    const float beta = node.attributes.get_float("beta", 1.0f);
    if (alpha == 1.0f && beta == 1.0f) continue;
    const auto scale_input = [&](std::size_t index, float factor) {
      const ValueId id = graph.node(layer.node).inputs[index];
      if (factor == 1.0f) return;
      Tensor scaled = graph.value(id).constant->clone();
      for (float& v : scaled.mutable_values<float>()) v *= factor;
      if (graph.value(id).consumers.size() == 1 && !graph.is_output(id)) {
        graph.value(id).constant = std::move(scaled);
      } else {
        graph.set_input(layer.node, index,
                        graph.add_constant(graph.unique_name(graph.value(id).name + "_scaled"), std::move(scaled)));
      }
    };
    if (graph.value(layer.weight).quantized != nullptr) continue;
    scale_input(1, alpha);
    if (layer.bias.is_valid()) scale_input(2, beta);
    graph.node(layer.node).attributes.set("alpha", 1.0f);
    graph.node(layer.node).attributes.set("beta", 1.0f);
  }
  return {};
}

Result<ApplyOutcome> apply_schemes(Graph& graph, const SchemeMap& schemes, const std::map<std::string, Range>& ranges,
                                   const ApplyOptions& options) {
  CTK_TRY(const Quantizer* quantizer, find_quantizer(options.method));
  if (quantizer->needs_inputs) {  // what it coded is given; the rest was left to rounding
    CTK_TRY(quantizer, find_quantizer("rtn"));
  }
  ApplyOutcome outcome;
  std::size_t used = 0;
  Work work;
  for (Layer layer : graph::layers_of(graph)) {
    const auto wanted = schemes.find(graph.address(layer.node));
    if (wanted == schemes.end()) continue;
    ++used;
    QuantScheme scheme = wanted->second;
    if (scheme == QuantScheme{}) continue;
    if (graph.value(layer.weight).quantized != nullptr) {
      return input_error(printable(graph.address(layer.node)) + ": its weight is coded already (" +
                         to_string(graph.value(layer.weight).quantized->scheme) +
                         "), expected a float weight. Quantize the float model this one was made from");
    }
    if (const std::string reason = infeasible_reason(graph, layer, scheme); !reason.empty()) {
      return config_error(printable(graph.address(layer.node)) + ": scheme " + to_string(scheme) +
                          " cannot be used: " + reason);
    }
    if (layer.group_count > 1 && scheme.is_integer_weight() && scheme.granularity == Granularity::per_channel) {
      // No file format can say "one scale a channel" for a weight stored as [in, out / group, ...].
      scheme.granularity = Granularity::per_tensor;
      outcome.warnings.push_back({"quantize", printable(graph.address(layer.node)) +
                                                  ": a grouped ConvTranspose takes one scale " +
                                                  "for the whole weight (" + to_string(scheme) + ")"});
    }
    work.emplace_back(layer, scheme);
  }
  if (used != schemes.size()) {
    for (const auto& [address, scheme] : schemes) {
      bool is_layer = false;
      for (const Layer& layer : graph::layers_of(graph)) is_layer = is_layer || graph.address(layer.node) == address;
      if (!is_layer)
        return config_error("scheme " + to_string(scheme) + " is given for \"" + printable(address) +
                            "\", which is no layer of this model");
    }
  }
  std::map<ValueId, std::size_t> line_of;  // weight -> the line of the layer that coded it
  for (auto& [layer, scheme] : work) {
    const std::string address = graph.address(layer.node);
    LayerOutcome line{address, scheme, "", 0, 0, 0, false, {}};
    graph.node(layer.node).scheme = scheme;
    split_weight(graph, work, layer, scheme, outcome);
    if (const auto coded = line_of.find(layer.weight); coded != line_of.end()) {  // the same codes serve both
      const LayerOutcome& first = outcome.layers[coded->second];
      line.method = first.method;
      line.error_rtn = first.error_rtn;
      line.error_method = first.error_method;
      line.raised_scales = first.raised_scales;
      line.receipt = first.receipt;
      outcome.layers.push_back(line);
      continue;
    }
    line_of[layer.weight] = outcome.layers.size();
    if (!options.codes_weights) {
      graph::Value& value = graph.value(layer.weight);
      CTK_TRY(QuantTensor blank, blank_codes(value.constant->shape(), layer.channel_axis, layer.group_count, scheme));
      line.method = blank.method;
      value.quantized = std::make_shared<const QuantTensor>(std::move(blank));
      value.constant.reset();
      outcome.layers.push_back(line);
      continue;
    }
    const Tensor original = graph::floats_of(graph.value(layer.weight));
    if (scheme.is_integer_weight()) {
      std::vector<float> least;
      for (const auto& [mate, wanted] : work) {
        if (scheme.is_integer_activation() && mate.weight == layer.weight)
          raise(least, least_scales(graph, mate, ranges));
      }
      CTK_CHECK(code_weight(graph, layer, original, scheme, *quantizer, std::move(least), options.reduce_range,
                            given_for(options, address), line));
      if (options.bias_correction && options.input_means != nullptr) {
        CTK_TRY(line.bias_corrected, correct_bias(graph, layer, original, *options.input_means));
      }
    } else {
      CTK_CHECK(halve_weight(graph, layer, original, line));
    }
    warn_of_vanished(graph.value(layer.weight), line, original, outcome);
    if (line.raised_scales > 0) {
      outcome.warnings.push_back({"quantize", printable(address) + ": the scales of " +
                                                  std::to_string(line.raised_scales) +
                                                  " channels were raised so that their bias fits into int32"});
    }
    outcome.layers.push_back(line);
  }
  const std::vector<Shape> shapes =
      options.input_shapes.empty() ? graph::default_input_shapes(graph, 1) : options.input_shapes;
  CTK_TRY(const NoteOutcome notes, place_activation_notes(graph, ranges, shapes));
  for (const std::string& text : notes.warnings) outcome.warnings.push_back({"quantize", text});
  graph.remove_dead_values();
  CTK_CHECK(verify(graph));
  return outcome;
}

}  // namespace ctk::quantization

#include "compress/quantize/from_inputs.h"

#include <algorithm>

#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/stream.h"
#include "core/printable.h"

namespace ctk::quantization {
namespace {

using graph::Graph;
using graph::Layer;

bool takes_codes(const QuantScheme& scheme) {
  return scheme.is_integer_weight() && scheme.granularity != Granularity::per_tensor;
}

// Lets `layer` alone read its codes: other readers of the weight go on with the float original.
void set_codes(Graph& coded, const Layer& layer, const QuantTensor& codes) {
  const graph::ValueId own = coded.add_constant(
      coded.unique_name(coded.value(layer.weight).name + "_coded_" + std::to_string(layer.node.index)),
      *coded.value(layer.weight).constant);
  coded.value(own).constant.reset();
  coded.value(own).quantized = std::make_shared<const QuantTensor>(codes);
  coded.set_input(layer.node, 1, own);
}

}  // namespace

Result<InputCodes> code_from_inputs(const Graph& graph, const SchemeMap& schemes, const std::string& method,
                                    const data::Split& split, const FromInputsOptions& options) {
  CTK_TRY(const Quantizer* quantizer, find_quantizer(method));
  if (!quantizer->needs_inputs) return config_error("method " + method + " does not look at inputs");
  std::vector<std::string> wanted;
  for (const Layer& layer : graph::layers_of(graph)) {
    const auto scheme = schemes.find(graph.address(layer.node));
    if (!has_rows(graph, layer)) continue;
    const auto more = options.also.find(graph.address(layer.node));
    if ((scheme != schemes.end() && takes_codes(scheme->second)) ||
        (more != options.also.end() && std::ranges::any_of(more->second, takes_codes)))
      wanted.push_back(graph.address(layer.node));
  }
  InputCodes codes;
  Graph coded = graph.clone();
  const auto code = [&](Graph& target, const std::vector<Layer>& layers, LayerInputs& inputs) -> Status {
    for (const Layer& layer : layers) {
      const std::string address = graph.address(layer.node);
      WeightRequest request;
      request.weight = *graph.value(layer.weight).constant;
      request.channel_axis = layer.channel_axis;
      request.group_count = layer.group_count;
      request.reduce_range = options.reduce_range;
      request.inputs = &inputs;
      request.damping = options.damping;
      const auto run = [&](const QuantScheme& scheme) -> Result<WeightOutcome> {
        request.scheme = scheme;
        auto outcome = quantizer->run(request);
        if (!outcome) return std::move(outcome).error().with_context(printable(address));
        return outcome;
      };
      if (const auto more = options.also.find(address); more != options.also.end()) {
        for (const QuantScheme& scheme : more->second) {
          if (!takes_codes(scheme)) continue;
          CTK_TRY(codes.also[std::pair(address, to_string(scheme))], run(scheme));
        }
      }
      const auto scheme = schemes.find(address);
      if (scheme == schemes.end() || !takes_codes(scheme->second)) continue;
      CTK_TRY(WeightOutcome outcome, run(scheme->second));
      set_codes(target, layer, outcome.tensor);
      codes.given.emplace(address, std::move(outcome));
    }
    return {};
  };
  WalkOptions walk;
  walk.hold_out_every = options.hold_out_every;
  walk.progress = options.progress;
  CTK_CHECK(walk_layers(graph, coded, wanted, split, walk, code));
  return codes;
}

}  // namespace ctk::quantization

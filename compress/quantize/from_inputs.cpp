#include "compress/quantize/from_inputs.h"

#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/stream.h"
#include "core/printable.h"

namespace ctk::quantization {
namespace {

using graph::Graph;
using graph::Layer;

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

Result<GivenCodes> code_from_inputs(const Graph& graph, const SchemeMap& schemes, const std::string& method,
                                    const data::Split& split, const FromInputsOptions& options) {
  CTK_TRY(const Quantizer* quantizer, find_quantizer(method));
  if (!quantizer->needs_inputs) return config_error("method " + method + " does not look at inputs");
  std::vector<std::string> wanted;
  for (const Layer& layer : graph::layers_of(graph)) {
    const auto scheme = schemes.find(graph.address(layer.node));
    if (scheme == schemes.end() || !scheme->second.is_integer_weight() || !has_rows(graph, layer)) continue;
    if (scheme->second.granularity != Granularity::per_tensor) wanted.push_back(scheme->first);
  }
  GivenCodes given;
  Graph coded = graph.clone();
  const auto code = [&](Graph& target, const std::vector<Layer>& layers, LayerInputs& inputs) -> Status {
    for (const Layer& layer : layers) {
      const std::string address = graph.address(layer.node);
      WeightRequest request;
      request.weight = *graph.value(layer.weight).constant;
      request.scheme = schemes.at(address);
      request.channel_axis = layer.channel_axis;
      request.group_count = layer.group_count;
      request.reduce_range = options.reduce_range;
      request.inputs = &inputs;
      request.damping = options.damping;
      auto outcome = quantizer->run(request);
      if (!outcome) return std::move(outcome).error().with_context(printable(address));
      set_codes(target, layer, outcome->tensor);
      given.emplace(address, std::move(*outcome));
    }
    return {};
  };
  WalkOptions walk;
  walk.hold_out_every = options.hold_out_every;
  walk.progress = options.progress;
  CTK_CHECK(walk_layers(graph, coded, wanted, split, walk, code));
  return given;
}

}  // namespace ctk::quantization

#include "compress/quantize/from_inputs.h"

#include <algorithm>

#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/rank_bytes.h"
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

// One layer under one scheme.
struct Fit {
  const Layer* layer = nullptr;
  std::string address;
  QuantScheme scheme;
  bool is_other = false;  // of FromInputsOptions::also
  WeightOutcome outcome;
};

std::vector<Fit> fits_of(const Graph& graph, const std::vector<Layer>& layers, const SchemeMap& schemes,
                         const FromInputsOptions& options) {
  std::vector<Fit> fits;
  for (const Layer& layer : layers) {
    const std::string address = graph.address(layer.node);
    if (const auto more = options.also.find(address); more != options.also.end()) {
      for (const QuantScheme& scheme : more->second) {
        if (takes_codes(scheme)) fits.push_back({&layer, address, scheme, true, {}});
      }
    }
    const auto scheme = schemes.find(address);
    if (scheme != schemes.end() && takes_codes(scheme->second)) {
      fits.push_back({&layer, address, scheme->second, false, {}});
    }
  }
  return fits;
}

Result<WeightOutcome> fit(const Graph& graph, const Quantizer& quantizer, const Fit& one, LayerInputs& inputs,
                          const FromInputsOptions& options) {
  WeightRequest request;
  request.weight = *graph.value(one.layer->weight).constant;
  request.scheme = one.scheme;
  request.channel_axis = one.layer->channel_axis;
  request.group_count = one.layer->group_count;
  request.reduce_range = options.reduce_range;
  request.inputs = &inputs;
  request.damping = options.damping;
  auto outcome = quantizer.run(request);
  if (!outcome) return std::move(outcome).error().with_context(printable(one.address));
  return outcome;
}

bool is_mine(std::size_t which, const Ranks& ranks) {
  return which % static_cast<std::size_t>(ranks.size()) == static_cast<std::size_t>(ranks.rank());
}

// What every rank found, by rank, goes where it belongs.
Status take(const std::vector<std::string>& parts, std::vector<Fit>& fits) {
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    CTK_TRY(std::vector<WeightOutcome> found, decode(parts[rank]));
    for (std::size_t i = rank, at = 0; i < fits.size(); i += parts.size(), ++at) {
      if (at >= found.size()) return internal_error("quantize: expected codes of every layer a rank was given");
      fits[i].outcome = std::move(found[at]);
    }
  }
  return {};
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
  Ranks& ranks = *options.ranks;
  const auto code = [&](Graph& target, const std::vector<Layer>& layers, LayerInputs& inputs) -> Status {
    std::vector<Fit> fits = fits_of(graph, layers, schemes, options);
    const auto mine = [&]() -> Result<std::string> {
      std::vector<WeightOutcome> found;
      for (std::size_t i = 0; i < fits.size(); ++i) {
        if (!is_mine(i, ranks)) continue;
        CTK_TRY(fits[i].outcome, fit(graph, *quantizer, fits[i], inputs, options));
        if (!ranks.is_alone()) found.push_back(fits[i].outcome);
      }
      return encode(found);
    };
    CTK_TRY(const auto parts, ranks.gather_results("quantize", mine()));
    if (!ranks.is_alone()) CTK_CHECK(take(parts, fits));
    for (Fit& one : fits) {
      if (one.is_other) {
        codes.also[std::pair(one.address, to_string(one.scheme))] = std::move(one.outcome);
        continue;
      }
      set_codes(target, *one.layer, one.outcome.tensor);
      codes.given.emplace(one.address, std::move(one.outcome));
    }
    return {};
  };
  WalkOptions walk;
  walk.hold_out_every = options.hold_out_every;
  walk.progress = options.progress;
  walk.ranks = options.ranks;
  CTK_CHECK(walk_layers(graph, coded, wanted, split, walk, code));
  return codes;
}

}  // namespace ctk::quantization

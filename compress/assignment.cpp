#include "compress/assignment.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compress/nearest_key.h"
#include "compress/quantize/apply.h"
#include "compress/summary.h"
#include "core/file.h"
#include "core/printable.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using nlohmann::json;

Error wrong(const std::string& path, const std::string& layer, const std::string& what) {
  return input_error(path + ": \"" + printable(layer) + "\": " + what);
}

}  // namespace

Result<std::map<std::string, QuantScheme>> read_schemes(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return std::move(file).error().with_context("an assignment of schemes to layers");
  const auto bytes = file->bytes();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const json parsed = json::parse(text, text + bytes.size(), nullptr, false);
  if (!parsed.is_object())
    return input_error(path + ": expected {\"layer\": \"scheme\"} as search/assignment.json has it, found " +
                       (parsed.is_discarded() ? "text that is no JSON" : parsed.type_name()) +
                       ". Give the file that a search has left, or undo the edit");
  std::map<std::string, QuantScheme> schemes;
  for (const auto& [layer, name] : parsed.items()) {
    if (!name.is_string())
      return wrong(path, layer, "expected a scheme like \"w8a8_c\", found " + name.dump() + ". Correct it");
    auto scheme = parse_scheme(name.get<std::string>());
    if (!scheme) return wrong(path, layer, scheme.error().message);
    schemes[layer] = *scheme;
  }
  return schemes;
}

Status check_assignment(const PipelineConfig& config, const graph::Graph& graph) {
  if (!config.quantize || config.quantize->assignment.empty()) return {};
  const std::string& path = config.quantize->assignment;
  if (std::ranges::none_of(config.quantize->schemes, [](const auto& one) { return !(one.second == QuantScheme{}); }))
    return input_error(path +
                       ": expected a layer with a scheme, found none: every layer would stay float. Name one, or " +
                       "leave out the stage quantize");
  std::map<std::string, graph::Layer> layers;
  for (const graph::Layer& layer : graph::layers_of(graph)) layers.emplace(graph.address(layer.node), layer);
  for (const auto& [address, scheme] : config.quantize->schemes) {
    const auto found = layers.find(address);
    if (found == layers.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, layer] : layers) names.push_back(name);
      return input_error(path + ": expected layers of " + config.model + ", found \"" + printable(address) + "\"" +
                         did_you_mean(address, names) + ". Correct the name or delete its line");
    }
    if (scheme == QuantScheme{}) continue;
    const std::string reason = quantization::infeasible_reason(graph, found->second, scheme);
    if (!reason.empty())
      return wrong(path, address,
                   "expected a scheme that it can take, found \"" + to_string(scheme) + "\": " + reason +
                       ". Give another, or delete the line: the layer stays float");
  }
  return {};
}

Status take_assignment(Session& session, const std::vector<graph::Layer>& layers) {
  const QuantizeConfig& config = *session.config.quantize;
  session.schemes.clear();
  session.reasons.clear();
  for (const graph::Layer& layer : layers) {
    const std::string address = session.model.graph.address(layer.node);
    session.schemes[address] = allowed_schemes(session.config, address)[0];
    session.reasons[address] =
        config.schemes.contains(address) ? "as " + config.assignment + " says" : config.assignment + " leaves it out";
  }
  return check_assignment(session.config, session.model.graph);
}

}  // namespace ctk::pipeline

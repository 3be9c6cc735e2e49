// A file is a bundle (runtime/bundle.h) of constants without nodes, each named "<address> <scheme>"; what is known of
// each beside its codes stands in the metadata under the same name.
#include "compress/quantize/code_store.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "compress/quantize/outcome_facts.h"
#include "core/hash.h"
#include "core/mapped_pages.h"
#include "export/bundle.h"
#include "runtime/bundle.h"

namespace ctk::quantization {
namespace {

using nlohmann::json;

// Files are ours and hashed; a line that is none of ours gives nothing.
std::optional<WeightOutcome> outcome_from(const std::string& text, const QuantTensor& weight) {
  const json facts = json::parse(text, nullptr, false);
  if (!facts.is_object()) return std::nullopt;
  WeightOutcome outcome;
  outcome.tensor = weight;
  take_facts(facts, outcome);
  return outcome;
}

}  // namespace

std::string CodeStore::path_of(const std::vector<std::string>& layers) const {
  Fingerprint print;
  for (const std::string& layer : layers) print.add(layer);
  return folder_ + "/" + print.hex();
}

std::optional<StoredCodes> CodeStore::find(const std::vector<std::string>& layers) const {
  std::error_code ignored;
  if (folder_.empty() || !std::filesystem::exists(path_of(layers), ignored)) return std::nullopt;
  const auto graph = runtime::load_bundle(path_of(layers));
  if (!graph) return std::nullopt;
  StoredCodes codes;
  for (const auto& [name, text] : graph->metadata) {
    const auto value = graph->find_value(name);
    const std::size_t space = name.rfind(' ');
    if (!value || space == std::string::npos || graph->value(*value).quantized == nullptr) return std::nullopt;
    const QuantTensor& weight = *graph->value(*value).quantized;
    auto outcome = outcome_from(text, weight);
    if (!outcome) return std::nullopt;
    release_pages(weight.codes.data(), weight.codes.bytes());
    codes.emplace(std::pair(name.substr(0, space), name.substr(space + 1)), std::move(*outcome));
  }
  return codes;
}

Result<StoredCodes> CodeStore::put(const std::vector<std::string>& layers, StoredCodes codes) const {
  if (folder_.empty()) return codes;
  graph::Graph graph;
  for (auto& [key, outcome] : codes) {
    const std::string name = key.first + " " + key.second;
    graph::DeclaredShape shape;
    for (std::int64_t size : outcome.tensor.codes.shape()) shape.push_back({size, ""});
    const graph::ValueId id = graph.add_value(name, DType::f32, shape);
    graph.metadata.emplace_back(name, facts_of(outcome).dump());
    graph.value(id).quantized = std::make_shared<const QuantTensor>(std::move(outcome.tensor));
  }
  std::error_code ignored;  // writing says what is wrong
  std::filesystem::create_directories(folder_, ignored);
  CTK_CHECK(exporter::write_bundle(graph, path_of(layers)));
  auto kept = find(layers);
  if (!kept) {
    return input_error(path_of(layers) +
                       ": expected the codes just written, found a file that cannot be read. See that " +
                       "the disk is sound");
  }
  return std::move(*kept);
}

}  // namespace ctk::quantization

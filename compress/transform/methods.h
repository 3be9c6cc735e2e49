// Transforms of the float network that leave its function and make it easier to code: the visible table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/observer.h"
#include "core/quant_scheme.h"
#include "data/splits.h"
#include "export/report.h"
#include "graph/graph.h"

namespace ctk::transform {

struct Request {
  const graph::Graph& graph;
  std::vector<Shape> sample_shapes;            // one a graph input
  std::map<std::string, QuantScheme> schemes;  // by address: layers that will be coded
  const data::Split* samples = nullptr;
  calibrate::ObserverOptions observer;  // how ranges of activations will be found
  std::optional<double> strength;       // smoothquant; absent: searched
  bool insert_mul = true;
  bool fits_by_inputs = false;  // codes will be fitted to what layers are fed, not to their weights alone
  std::uint64_t seed = 0;
  std::function<void(std::size_t done, std::size_t total)> progress{};  // groups of layers
};

struct Transformed {
  graph::Graph graph;
  std::vector<exporter::TransformRow> rows;  // what was changed, and what was not and why
};

struct Method {
  std::string_view name;
  std::string_view what;
  Result<Transformed> (*run)(const Request& request);
  // Before any work: why the network cannot be transformed so; empty when it can.
  std::string (*refusal)(const graph::Graph& graph);
};

std::span<const Method> methods();
const Method* find_method(std::string_view name);

Result<Transformed> run_smoothquant(const Request& request);
Result<Transformed> run_awq(const Request& request);
Result<Transformed> run_hadamard(const Request& request);
std::string refuse_hadamard(const graph::Graph& graph);

}  // namespace ctk::transform

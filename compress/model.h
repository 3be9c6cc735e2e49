// Reading a model and making it ready to work on.
#pragma once

#include <string>
#include <vector>

#include "data/source.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"

namespace ctk::pipeline {

struct LoadedModel {
  graph::Graph source;         // as read
  graph::Graph graph;          // after passes: what every stage works on
  std::string format;          // "onnx", "bundle"
  std::size_t file_bytes = 0;  // with external data
  std::vector<graph::PassOutcome> passes;
  double rewrite_error = 0;  // largest relative difference of outputs before and after the passes
  std::vector<std::string> notes;
};

// Errors: input (missing, damaged, NaN in a weight, passes that change the function: says by how much).
Result<LoadedModel> load_model(const std::string& path);
// Reads without passes or checks: for `graph show`.
Result<graph::Graph> read_graph(const std::string& path);

// Inputs the data layer needs to know: name, dtype, sample shape (leading dimension dropped).
std::vector<data::InputInfo> input_infos(const graph::Graph& graph);
// Input shapes for `batch` samples; other free dimensions 1.
std::vector<Shape> batch_shapes(const graph::Graph& graph, std::int64_t batch);

std::int64_t parameter_count(const graph::Graph& graph);
// Multiply-adds of one layer for one sample, and of all layers. 0 where shapes are unknown.
std::int64_t layer_macs(const graph::Graph& graph, const graph::NodeId& node);
std::int64_t total_macs(const graph::Graph& graph);

}  // namespace ctk::pipeline

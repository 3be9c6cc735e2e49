// Reading a model and making it ready to work on.
#pragma once

#include <string>
#include <vector>

#include "data/source.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"

namespace ctk::pipeline {

struct LoadedModel {
  graph::Graph source;             // as read
  graph::Graph graph;              // after passes: what every stage works on
  std::string format;              // "onnx", "bundle", "hf", "gguf"
  std::size_t file_bytes = 0;      // with external data
  std::vector<std::string> files;  // the model's own file first (config.json), then those of its data
  std::vector<graph::PassOutcome> passes;
  double rewrite_error = 0;         // largest relative difference of outputs before and after the passes
  bool has_float_function = false;  // no codes in it, so that passes can be held to its outputs
  // Of each graph input for one sample. Free dimensions beyond the leading one are 1 until data says how large they
  // are.
  std::vector<Shape> sample_shapes;
  std::vector<std::string> notes;
};

// Errors: input (missing, damaged, NaN in a weight, passes that change the function: says by how much).
Result<LoadedModel> load_model(const std::string& path);
// Reads without passes or checks: for `graph show`. `data_files` as in graph/onnx/read.h.
Result<graph::Graph> read_graph(const std::string& path, std::vector<std::string>* data_files = nullptr);

// Inputs the data layer needs to know: name, dtype, sample shape (leading dimension dropped).
std::vector<data::InputInfo> input_infos(const graph::Graph& graph);
// Input shapes for `batch` samples (the model's own leading dimension where it is fixed).
std::vector<Shape> batch_shapes(const LoadedModel& model, std::int64_t batch);
// Whether an input has a dimension without size beyond the leading one.
bool has_free_sizes(const graph::Graph& graph);
// Takes the sizes of free dimensions beyond the leading one from sample `index` of `source`, and compares the float
// outputs before and after the passes again at these sizes.
// Errors: input (the sample cannot be read or run), internal (passes that change the function).
Status bind_sample_shapes(LoadedModel& model, const data::Source& source, std::size_t index);
// Errors: input: names an input whose number of dimensions is unknown.
Status require_known_ranks(const graph::Graph& graph);
// For work without data. Errors: input: names the input and its free dimensions beyond the leading one.
Status require_fixed_samples(const graph::Graph& graph);

// One sample for each input: normal noise where they are floats, the same for every call with `stream`; zeros else.
Result<std::vector<Tensor>> noise_inputs(const graph::Graph& graph, std::span<const Shape> shapes,
                                         std::string_view stream);

std::int64_t parameter_count(const graph::Graph& graph);
// Multiply-adds of one layer for one sample, and of all layers. 0 where shapes are unknown.
std::int64_t layer_macs(const LoadedModel& model, const graph::NodeId& node);
std::int64_t total_macs(const LoadedModel& model);

}  // namespace ctk::pipeline

#include "compress/model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compress/quantize/apply.h"
#include "compress/quantize/stream.h"
#include "compress/sound_constants.h"
#include "core/file.h"
#include "core/random.h"
#include "graph/gguf/llama.h"
#include "graph/hf/read.h"
#include "graph/layer.h"
#include "graph/onnx/lift_qdq.h"
#include "graph/onnx/read.h"
#include "graph/shapes.h"
#include "runtime/bundle.h"
#include "runtime/cpu_executor.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;

// Largest relative error that folding may cause: reordered float sums over deep networks stay well below it.
constexpr double kRewriteTolerance = 1e-3;
// Bytes of float weights beyond which outputs are compared part by part.
constexpr std::size_t kMostAtOnce = std::size_t{256} << 20;

// The outputs on noise, or nothing where a node cannot be run.
Result<std::vector<Tensor>> run_on_random(const Graph& graph, const std::vector<Shape>& shapes, bool fuse) {
  CTK_TRY(const std::vector<Tensor> inputs, noise_inputs(graph, shapes, "rewrite check"));
  // A large network one part after another: whole, its weights would lie in memory twice.
  if (quantization::float_weight_bytes(graph) > kMostAtOnce) {
    quantization::StreamOptions options;
    options.fuse = fuse;
    quantization::Stream stream(graph, options);
    CTK_CHECK(stream.begin(inputs));
    std::vector<Tensor> found;
    CTK_CHECK(stream.finish([&](std::size_t, std::vector<Tensor> outputs) -> Status {
      found = std::move(outputs);
      return {};
    }));
    return found;
  }
  runtime::ExecutorOptions options;
  options.fuse = fuse;
  CTK_TRY(auto executor, runtime::CpuExecutor::create(graph, shapes, options));
  return executor->run(inputs);
}

Status compare_functions(LoadedModel& model) {
  auto before = run_on_random(model.source, model.sample_shapes, false);
  if (!before) return {};  // carried operators, or free sizes: the first stage that must run them refuses
  CTK_TRY(const std::vector<Tensor> after, run_on_random(model.graph, model.sample_shapes, true));
  for (std::size_t o = 0; o < after.size(); ++o) {
    if ((*before)[o].dtype() != DType::f32) continue;
    double largest = 0, difference = 0;
    const auto a = (*before)[o].values<float>();
    const auto b = after[o].values<float>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(a[i])));
      const double miss = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      const bool are_alike = std::isnan(a[i]) && std::isnan(b[i]);  // max() would drop a NaN
      if (!are_alike && !(miss <= difference)) difference = std::isnan(miss) ? HUGE_VAL : miss;
    }
    if (largest > 0) model.rewrite_error = std::max(model.rewrite_error, difference / largest);
  }
  if (!(model.rewrite_error <= kRewriteTolerance)) {
    return internal_error("the clean-up passes changed the outputs by " + std::to_string(model.rewrite_error) +
                          " (relative), expected at most " + std::to_string(kRewriteTolerance));
  }
  return {};
}

// Dimensions beyond the leading one (the batch) that have no size in the model.
std::vector<std::size_t> free_dims(const graph::Value& input) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 1; input.shape && d < input.shape->size(); ++d) {
    if ((*input.shape)[d].size < 0) dims.push_back(d);
  }
  return dims;
}

// Names go into JSON reports and text forms; ONNX says they are UTF-8.
bool is_utf8(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

Status require_utf8_names(const Graph& graph) {
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    if (!is_utf8(graph.value(graph::ValueId{static_cast<std::uint32_t>(i)}).name)) {
      return input_error("the name of value " + std::to_string(i) + " is not UTF-8. Rename it");
    }
  }
  for (graph::NodeId id : graph.order()) {
    if (!is_utf8(graph.node(id).name) || !is_utf8(graph.node(id).op_type)) {
      return input_error("the name of node " + std::to_string(id.index) + " is not UTF-8. Rename it");
    }
  }
  return {};
}

}  // namespace

Result<Graph> read_graph(const std::string& path, std::vector<std::string>* data_files) {
  if (graph::hf::is_checkpoint(path)) return graph::hf::read_hf(path, data_files);
  if (std::filesystem::is_directory(path)) {
    return input_error(path +
                       ": expected an .onnx file, a bundle or a checkpoint folder, found a folder without config.json. "
                       "Give the folder that holds config.json and model.safetensors");
  }
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  if (file.bytes().empty()) return input_error(path + ": the file is empty; expected an ONNX model or a bundle");
  if (runtime::is_bundle(file.bytes())) return runtime::load_bundle(path);
  if (graph::gguf::is_gguf(file.bytes())) return graph::gguf::read_gguf(path);
  return graph::onnx::read_model(path, {}, data_files);
}

Result<LoadedModel> load_model(const std::string& path) {
  LoadedModel model;
  std::vector<std::string> data_files;
  if (std::filesystem::is_directory(path)) {
    model.format = "hf";
  } else {
    CTK_TRY(const MappedFile file, MappedFile::open(path));
    model.format = runtime::is_bundle(file.bytes()) ? "bundle" : graph::gguf::is_gguf(file.bytes()) ? "gguf" : "onnx";
    model.files = {path};
  }
  CTK_TRY(model.source, read_graph(path, &data_files));
  model.files.insert(model.files.end(), data_files.begin(), data_files.end());
  for (const std::string& name : model.files) {
    CTK_TRY(const MappedFile data, MappedFile::open(name));
    model.file_bytes += data.bytes().size();
  }
  if (auto named = require_utf8_names(model.source); !named) return std::move(named).error().with_context(path);
  model.notes = model.source.reader_notes;
  model.graph = model.source.clone();
  model.sample_shapes = graph::default_input_shapes(model.graph, 1);
  if (auto sound = require_sound_constants(model.graph, &model.notes); !sound)
    return std::move(sound).error().with_context(path);
  if (model.format == "bundle") return model;  // written after the passes; its notes are not to be touched
  bool has_notes = false;
  {
    CTK_TRY(const int lifted, graph::onnx::lift_quantization(model.graph));
    has_notes = lifted > 0;
    if (has_notes) model.notes.push_back(std::to_string(lifted) + " Q/DQ patterns were read as quantization notes");
  }
  auto passes = graph::run_passes(model.graph);
  if (!passes) return std::move(passes).error().with_context(path);
  model.passes = std::move(*passes);
  CTK_CHECK(quantization::fold_gemm_factors(model.graph));
  // Again, for what stood behind Constant, Cast or Identity.
  if (auto sound = require_sound_constants(model.graph); !sound) return std::move(sound).error().with_context(path);
  // Codes round at ties, so a network with notes has no float function to hold the passes to.
  model.has_float_function = !has_notes;
  if (has_notes) return model;
  if (auto same = compare_functions(model); !same) return std::move(same).error().with_context(path);
  return model;
}

std::vector<data::InputInfo> input_infos(const Graph& graph) {
  std::vector<data::InputInfo> infos;
  for (graph::ValueId id : graph.inputs()) {
    const graph::Value& value = graph.value(id);
    data::InputInfo info{value.name, value.dtype, {}};
    const graph::DeclaredShape shape = value.shape.value_or(graph::DeclaredShape{});
    for (std::size_t d = 1; d < shape.size(); ++d) info.shape.push_back(shape[d].size);
    infos.push_back(std::move(info));
  }
  return infos;
}

std::vector<Shape> batch_shapes(const LoadedModel& model, std::int64_t batch) {
  std::vector<Shape> shapes = graph::default_input_shapes(model.graph, batch);
  for (std::size_t i = 0; i < shapes.size() && i < model.sample_shapes.size(); ++i) {
    for (std::size_t d : free_dims(model.graph.value(model.graph.inputs()[i]))) {
      shapes[i][d] = model.sample_shapes[i][d];
    }
  }
  return shapes;
}

bool has_free_sizes(const Graph& graph) {
  const auto inputs = graph.inputs();
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](graph::ValueId id) { return !free_dims(graph.value(id)).empty(); });
}

Status require_known_ranks(const Graph& graph) {
  for (graph::ValueId id : graph.inputs()) {
    if (graph.value(id).shape) continue;
    return input_error("input \"" + graph.value(id).name +
                       "\": expected a declared shape, found none, not even its number of dimensions. Export the model "
                       "again with shapes, or declare one with onnx.tools.update_model_dims");
  }
  return {};
}

Status bind_sample_shapes(LoadedModel& model, const data::Source& source, std::size_t index) {
  if (!has_free_sizes(model.graph)) return {};
  CTK_TRY(const data::Batch sample, source.read_batch(std::span(&index, 1)));
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    for (std::size_t d : free_dims(model.graph.value(model.graph.inputs()[i]))) {
      model.sample_shapes[i][d] = sample.inputs[i].shape()[d];
    }
  }
  if (auto fits = graph::infer_shapes(model.graph, model.sample_shapes, true); !fits) {
    return std::move(fits).error().with_context(source.where(index) + ", whose sizes stand for the free ones");
  }
  return model.has_float_function ? compare_functions(model) : Status();
}

Status require_fixed_samples(const Graph& graph) {
  CTK_CHECK(require_known_ranks(graph));
  for (graph::ValueId id : graph.inputs()) {
    const graph::Value& value = graph.value(id);
    std::string names;
    for (std::size_t d : free_dims(value)) {
      const std::string& symbol = (*value.shape)[d].symbol;
      names += (names.empty() ? "" : ", ") + (symbol.empty() ? "dimension " + std::to_string(d) : "\"" + symbol + "\"");
    }
    if (names.empty()) continue;
    return input_error(
        "input \"" + value.name + "\": expected a size for every dimension but the first, found " +
        graph::to_string(*value.shape) + ": " + names +
        " free, and no data to take a size from. Fix the sizes in the model, or give one with --size where the "
        "verb has it");
  }
  return {};
}

// Zeros would flatter kernels that skip them, denormals slow all.
Result<std::vector<Tensor>> noise_inputs(const Graph& graph, std::span<const Shape> shapes, std::string_view stream) {
  Random random(0, stream);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    CTK_TRY(Tensor input, Tensor::zeros(graph.value(graph.inputs()[i]).dtype, shapes[i]));
    if (input.dtype() == DType::f32) {
      for (float& v : input.mutable_values<float>()) v = static_cast<float>(random.normal());
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const graph::Value& value = graph.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (value.is_removed || value.consumers.empty()) continue;
    if (value.quantized != nullptr)
      count += static_cast<std::int64_t>(value.quantized->codes.size());
    else if (value.constant && is_float(value.constant->dtype()))
      count += static_cast<std::int64_t>(value.constant->size());
  }
  return count;
}

std::int64_t layer_macs(const LoadedModel& model, const graph::NodeId& node) {
  const Graph& graph = model.graph;
  const auto layer = graph::layer_of(graph, node);
  const auto infos = graph::infer_shapes(graph, batch_shapes(model, 1), true);
  if (!layer || !infos) return 0;
  const graph::ValueId at =
      graph.node(node).op == graph::Op::ConvTranspose ? layer->input : graph.node(node).outputs[0];
  const auto& info = (*infos)[at.index];
  if (!info.known) return 0;
  const auto count = static_cast<std::int64_t>(elements(info.info.shape));
  if (graph.node(node).op != graph::Op::ConvTranspose) return count * layer->reduction;
  return count * layer->channels * layer->reduction / std::max<std::int64_t>(1, info.info.shape[1]);
}

std::int64_t total_macs(const LoadedModel& model) {
  std::int64_t sum = 0;
  for (const graph::Layer& layer : graph::layers_of(model.graph)) sum += layer_macs(model, layer.node);
  return sum;
}

}  // namespace ctk::pipeline

// `compress check`: everything that can be found wrong without work.
#include <filesystem>

#include "compress/model.h"
#include "compress/patterns.h"
#include "compress/pipeline.h"
#include "compress/summary.h"
#include "core/cpu_isa.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;

std::string describe(const Graph& graph, graph::ValueId id) {
  const graph::Value& value = graph.value(id);
  return value.name + " " + std::string(name_of(value.dtype)) + " " +
         (value.shape ? graph::to_string(*value.shape) : std::string("?"));
}

std::vector<QuantScheme> schemes_of(const PipelineConfig& config) {
  if (config.search) return config.search->schemes;
  if (config.quantize && config.quantize->scheme) return {*config.quantize->scheme};
  return {};
}

// Opens every source; free sizes of `model` come from the first.
Status check_data(const PipelineConfig& config, LoadedModel& model, CheckReport& report) {
  const std::vector<data::InputInfo> infos = input_infos(model.graph);
  bool is_bound = false;
  for (const auto* source : {&config.train, &config.calibrate_data, &config.score, &config.select, &config.evaluate}) {
    if (!*source) continue;
    CTK_TRY(const auto opened, data::open_source((*source)->spec, infos));
    if (!is_bound) CTK_CHECK(bind_sample_shapes(model, *opened, 0));
    is_bound = true;
    for (const std::string& note : opened->notes()) report.warnings.push_back({"data", note});
  }
  return {};
}

}  // namespace

Result<CheckReport> check_pipeline(const PipelineConfig& config) {
  CTK_CHECK(require_available(config));
  CTK_TRY(const auto isas, allowed_isas());
  CTK_TRY(LoadedModel model, load_model(config.model));
  const Graph& graph = model.graph;
  CheckReport report;
  report.model_path = config.model;
  report.model_format = model.format;
  report.parameters = parameter_count(graph);
  for (const std::string& note : model.notes) report.warnings.push_back({"model", note});
  CTK_CHECK(check_data(config, model, report));
  report.macs = total_macs(model);
  for (graph::ValueId id : graph.inputs()) report.inputs.push_back(describe(graph, id));
  for (graph::ValueId id : graph.outputs()) report.outputs.push_back(describe(graph, id));
  std::vector<std::string> addresses;
  for (graph::NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    std::string why;
    const auto layer = graph::layer_of(graph, id, &why);
    if (node.op == graph::Op::unknown) {
      report.carried.push_back(
          {graph.address(id), node.op_type,
           "operator of domain \"" + (node.domain.empty() ? "ai.onnx" : node.domain) + "\" is not known"});
    }
    if (!layer) continue;
    addresses.push_back(graph.address(id));
    const graph::Value& weight = graph.value(layer->weight);
    const Shape& shape = weight.quantized ? weight.quantized->codes.shape() : weight.constant->shape();
    LayerCheck line{graph.address(id), node.op_type, ctk::to_string(shape), layer_macs(model, id), {}};
    for (const QuantScheme& scheme : schemes_of(config)) {
      const std::string reason = quantization::infeasible_reason(graph, *layer, scheme);
      const std::size_t bytes = (elements(shape) * static_cast<std::size_t>(scheme.weight_bits) + 7) / 8;
      line.schemes.push_back({to_string(scheme), reason.empty(), reason, bytes});
    }
    report.layers.push_back(std::move(line));
  }
  if (config.quantize) {
    CTK_TRY(const auto picked, select_layers(config.quantize->targets, config.quantize->ignore, addresses));
  }
  CTK_TRY(const ReachableSize reach, reachable_size(config, model));
  report.float_bytes = reach.float_bytes;
  report.smallest_bytes = reach.least;
  report.largest_bytes = reach.most;
  if (config.budget.size) {
    const double limit = config.budget.size->absolute(static_cast<double>(reach.float_bytes));
    report.budget.push_back(
        {"size", "bytes", limit, static_cast<double>(reach.least), {}, static_cast<double>(reach.least) <= limit, {}});
    RunOptions options;
    Session session{config, options, "", ArtifactCache("", false), "", model, {}, {}, {}, {}, {}, {}, {}, std::nullopt,
                    {},     {},      {}};
    CTK_CHECK(require_reachable_size(session));
  }
  return report;
}

}  // namespace ctk::pipeline

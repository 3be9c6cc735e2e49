// `compress check`: everything that can be found wrong without work.
#include "compress/contest.h"
#include "compress/model.h"
#include "compress/pipeline.h"
#include "compress/prepare.h"
#include "compress/quantize/peak_memory.h"
#include "compress/summary.h"
#include "core/cpu_isa.h"
#include "core/printable.h"
#include "export/figures.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;

std::string describe(const Graph& graph, graph::ValueId id) {
  const graph::Value& value = graph.value(id);
  return value.name + " " + std::string(name_of(value.dtype)) + " " +
         (value.shape ? graph::to_string(*value.shape) : std::string("?"));
}

constexpr std::size_t kMostRead = 64;  // samples whose sizes are looked at; the rest is taken to be like them

// What a method that looks at inputs will hold in memory. Of a search's answer any scheme serves: it decides the
// scales.
Status predict_coding(Session& session) {
  const PipelineConfig& config = session.config;
  if (!config.quantize || !quantization::needs_inputs(config.quantize->method) || !session.splits.calibrate) return {};
  const data::Split& split = *session.splits.calibrate;
  std::vector<std::vector<Shape>> samples;
  for (std::size_t i = 0; i < split.count(); ++i) {
    if (i >= kMostRead) {
      samples.push_back(samples[i % kMostRead]);
      continue;
    }
    CTK_TRY(const data::Batch sample, split.read(i, i + 1));
    std::vector<Shape>& shapes = samples.emplace_back();
    for (const Tensor& input : sample.inputs) shapes.push_back(input.shape());
  }
  quantization::SchemeMap schemes;
  const auto told = session.report.skipped;
  CTK_TRY(const auto layers, session.target_layers(config.quantize->targets, config.quantize->ignore));
  session.report.skipped = told;
  for (const graph::Layer& layer : layers) {
    const bool is_table = config.quantize->targets.empty() && is_embedding_too(session.model.graph, layer);
    for (const QuantScheme& scheme : allowed_schemes(config, session.model.graph.address(layer.node))) {
      if (is_table || !scheme.is_integer_weight()) continue;
      if (!quantization::infeasible_reason(session.model.graph, layer, scheme).empty()) continue;
      schemes[session.model.graph.address(layer.node)] = scheme;
      break;
    }
  }
  const std::size_t bound = quantization::FromInputsOptions{}.values_in_memory;
  CTK_TRY(const auto peak, quantization::predict_peak(session.model.graph, schemes, samples, bound));
  const std::string place = peak.layer.empty() ? "as the coded network is written" : "at " + printable(peak.layer);
  session.warn("coding_memory", "coding will hold about " + exporter::format_bytes(static_cast<double>(peak.bytes)) +
                                    " in memory (" + std::to_string(peak.bytes) + " bytes), " + place);
  return {};
}

}  // namespace

Result<CheckReport> check_pipeline(const PipelineConfig& config, bool force) {
  CTK_CHECK(require_available(config));
  CTK_TRY(const auto isas, allowed_isas());
  CTK_TRY(LoadedModel loaded, load_for(config, config.output, force));
  RunOptions options;
  options.resume = false;
  Session session = make_session(config, options, config.output, std::move(loaded));
  CTK_CHECK(prepare(session));
  if (!config.changes_network()) CTK_CHECK(require_reachable(session, false, {}));
  const LoadedModel& model = session.model;
  const Graph& graph = model.graph;
  CheckReport report;
  report.model_path = config.model;
  report.model_format = model.format;
  report.parameters = parameter_count(graph);
  report.macs = total_macs(model);
  for (graph::ValueId id : graph.inputs()) report.inputs.push_back(describe(graph, id));
  for (graph::ValueId id : graph.outputs()) report.outputs.push_back(describe(graph, id));
  const bool has_schemes = config.search || (config.quantize && config.quantize->has_schemes());
  const std::vector<QuantScheme> schemes = has_schemes ? allowed_schemes(config) : std::vector<QuantScheme>{};
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
    const graph::Value& weight = graph.value(layer->weight);
    const Shape& shape = weight.quantized ? weight.quantized->codes.shape() : weight.constant->shape();
    LayerCheck line{graph.address(id), node.op_type, ctk::to_string(shape), layer_macs(model, id), {}};
    for (const QuantScheme& scheme : schemes) {
      const std::string reason = quantization::infeasible_reason(graph, *layer, scheme);
      const std::size_t bytes = (elements(shape) * static_cast<std::size_t>(scheme.weight_bits) + 7) / 8;
      line.schemes.push_back({to_string(scheme), reason.empty(), reason, bytes});
    }
    report.layers.push_back(std::move(line));
  }
  CTK_TRY(const ReachableSize reach, reachable_size(config, model));
  report.float_bytes = reach.float_bytes;
  report.smallest_bytes = reach.least;
  report.largest_bytes = reach.most;
  if (config.budget.size) {
    const double limit = config.budget.size->absolute(static_cast<double>(reach.float_bytes));
    report.budget.push_back(
        {"size", "bytes", limit, static_cast<double>(reach.least), {}, static_cast<double>(reach.least) <= limit, {}});
  }
  CTK_CHECK(predict_coding(session));
  report.warnings = session.report.warnings;
  return report;
}

}  // namespace ctk::pipeline

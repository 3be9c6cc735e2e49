#include <algorithm>
#include <array>

#include "compress/early_exit/stage.h"
#include "compress/patterns.h"
#include "compress/session.h"
#include "compress/summary.h"
#include "compress/train_stage.h"
#include "core/hash.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

std::int64_t split_work(const std::optional<data::Split>& split) {
  return split ? static_cast<std::int64_t>(split->count()) : 0;
}

std::int64_t calibrate_work(const Session& s) {
  return split_work(s.splits.calibrate);
}
std::int64_t sensitivity_work(const Session& s) {
  const auto layers = static_cast<std::int64_t>(graph::layers_of(s.model.graph).size());
  return layers * static_cast<std::int64_t>(allowed_schemes(s.config).size());
}
std::int64_t no_work(const Session&) {
  return 0;
}
std::int64_t validate_work(const Session& s) {
  return 2 * split_work(s.splits.test);
}

std::int64_t distill_work(const Session& s) {
  return train_work(s, *s.config.distill);
}
std::int64_t finetune_work(const Session& s) {
  return train_work(s, *s.config.finetune);
}

std::int64_t qat_work(const Session& s) {
  return train_work(s, *s.config.qat);
}

bool by_one(const PipelineConfig&) {
  return false;
}
bool with_inputs(const PipelineConfig& config) {
  return quantization::needs_inputs(config.quantize->method);
}

constexpr std::array kStages{
    StageRow{"distill", "trains the network towards a teacher's outputs", distill_work, run_distill},
    StageRow{"prune", "channels cut with all that is coupled to them, and what reads them refitted", prune_work,
             run_prune},
    StageRow{"finetune", "trains the network on data.train", finetune_work, run_finetune},
    StageRow{"early_exit", "heads at which samples that are sure leave", early_exit_work, run_early_exit, by_one},
    StageRow{"transform", "the network made easier to code, its function kept", transform_work, run_transform},
    StageRow{"calibrate", "ranges of activations over the calibration split", calibrate_work, run_calibrate},
    StageRow{"sensitivity", "loss of each layer alone under each scheme", sensitivity_work, run_sensitivity},
    StageRow{"search", "one scheme a layer under the budgets, by an integer programme", no_work, run_search, by_one},
    StageRow{"quantize", "codes for weights, notes for activations", quantize_work, run_quantize, with_inputs},
    StageRow{"qat", "trains the coded network with its roundings in the loop", qat_work, run_qat},
    StageRow{"export", "writes the files", no_work, run_export, by_one},
    StageRow{"validate", "metric, latency and agreement of what was written", validate_work, run_validate, by_one},
};

}  // namespace

std::span<const StageRow> stages() {
  return kStages;
}

std::string stage_fingerprint(const Session& session, std::string_view stage, const std::vector<std::string>& extra) {
  Fingerprint print;
  print.add(static_cast<std::uint64_t>(kArtifactVersion)).add(session.fingerprint).add(stage);
  print.add(session.config.fingerprint_of({"stages." + std::string(stage)}));
  for (const std::string& text : extra) print.add(text);
  return print.hex();
}

Result<std::vector<graph::Layer>> Session::target_layers(const std::vector<std::string>& targets,
                                                         const std::vector<std::string>& ignore) {
  const graph::Graph& g = model.graph;
  std::vector<std::string> addresses;
  for (const graph::Layer& layer : graph::layers_of(g)) addresses.push_back(g.address(layer.node));
  std::vector<bool> is_wanted(addresses.size(), targets.empty());
  if (!targets.empty()) {
    CTK_TRY(is_wanted, match_patterns(targets, addresses, "stages.quantize.targets"));
  }
  CTK_TRY(const std::vector<bool> is_ignored, match_patterns(ignore, addresses, "stages.quantize.ignore"));
  report.skipped.clear();
  std::vector<graph::Layer> chosen;
  std::size_t next = 0;
  for (graph::NodeId id : g.order()) {
    std::string why;
    const auto layer = graph::layer_of(g, id, &why);
    const graph::Op op = g.node(id).op;
    const bool has_weight =
        op == graph::Op::Conv || op == graph::Op::ConvTranspose || op == graph::Op::Gemm || op == graph::Op::MatMul;
    if (!layer) {
      if (has_weight) report.skipped.push_back({g.address(id), g.node(id).op_type, why});
      if (op == graph::Op::unknown)
        report.skipped.push_back({g.address(id), g.node(id).op_type, "operator is not known; carried unchanged"});
      continue;
    }
    const std::size_t at = next++;
    if (is_ignored[at])
      report.skipped.push_back({addresses[at], g.node(id).op_type, "matches `ignore`"});
    else if (!is_wanted[at])
      report.skipped.push_back({addresses[at], g.node(id).op_type, "matches no pattern of `targets`"});
    else
      chosen.push_back(*layer);
  }
  return chosen;
}

Status Session::list_layers() {
  const graph::Graph& graph = model.graph;
  report.layers.clear();
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    exporter::LayerRow row;
    row.name = graph.address(layer.node);
    row.op = graph.node(layer.node).op_type;
    const graph::Value& weight = graph.value(layer.weight);
    const Shape& shape = weight.quantized ? weight.quantized->codes.shape() : weight.constant->shape();
    row.shape.assign(shape.begin(), shape.end());
    row.macs = layer_macs(model, layer.node);
    row.scheme = to_string(graph.node(layer.node).scheme);
    row.method = weight.quantized ? weight.quantized->method : "none";
    row.bytes = static_cast<std::int64_t>(weight.quantized ? stored_bytes(*weight.quantized) : elements(shape) * 4);
    report.layers.push_back(std::move(row));
  }
  CTK_TRY(const auto layers, target_layers({}, {}));  // lists what is none; stages that choose list again
  return {};
}

}  // namespace ctk::pipeline

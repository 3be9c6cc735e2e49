#include "compress/names.h"

#include "calibrate/observer.h"
#include "compress/prune/importance.h"
#include "compress/quantize/quantizers.h"
#include "compress/sensitivity/metrics.h"
#include "compress/transform/methods.h"
#include "data/metric.h"
#include "export/formats.h"
#include "search/solvers/solvers.h"

namespace ctk::pipeline {
namespace {

constexpr NameRow kStages[] = {
    {"distill", "", "train the model towards a teacher's outputs"},
    {"prune", "", "remove channels, with what is coupled to them"},
    {"finetune", "", "train the model on data.train"},
    {"early_exit", "", "give sure samples an earlier way out"},
    {"transform", "", "make the network easier to code without changing its function"},
    {"calibrate", "", "watch the range of every activation on data.calibrate"},
    {"sensitivity", "", "measure the loss of each layer under each scheme on data.score"},
    {"search", "", "choose a scheme for every layer under the budget"},
    {"quantize", "", "turn weights into codes"},
    {"qat", "", "train with quantization in the loop"},
    {"export", "", "write the result in each format"},
    {"validate", "", "measure float and result on data.evaluate, compare with others, apply the gate"},
};

constexpr std::string_view kOtherWidths = "kernels for weights of this width";
constexpr NameRow kSchemes[] = {
    {"fp32", "", "float32 weights and activations"},
    {"fp16", "", "float16 weights, float32 arithmetic"},
    {"w8a8_c", "", "8-bit weights, a scale per output channel; 8-bit activations"},
    {"w4a8_c", "", "4-bit weights, a scale per output channel; 8-bit activations"},
    {"w4a8_g32", "", "4-bit weights, a scale per 32 inputs; activations rounded to 8 bits as they run"},
    {"w4a8_g128", "", "4-bit weights, a scale per 128 inputs; activations rounded to 8 bits as they run"},
    {"w8a16_c", "", "8-bit weights, a scale per output channel; float activations"},
    {"w4a16_c", "", "4-bit weights, a scale per output channel; float activations"},
    {"w8a16_g32", "", "8-bit weights, a scale per 32 inputs; float activations"},
    {"w4a16_g32", "", "4-bit weights, a scale per 32 inputs; float activations"},
    {"w4a16_g64", "", "4-bit weights, a scale per 64 inputs; float activations"},
    {"w6a16_g64", "", "6-bit weights, a scale per 64 inputs; float activations (any width from 2 to 8)"},
    {"w3a16_g32", "", "3-bit weights, a scale per 32 inputs; float activations"},
    {"w4a16_g64_affine", "", "4-bit weights, a scale and a zero point per 64 inputs; float activations"},
};

// What is computed stands in the tables of the folders that compute it; what is known by name only is added here.
template <class Table>
std::vector<NameRow> merged(const Table& table, std::span<const NameRow> known) {
  std::vector<NameRow> rows;
  for (const auto& row : table) rows.push_back({row.name, "", row.what});
  rows.insert(rows.end(), known.begin(), known.end());
  return rows;
}

const std::vector<NameRow>& sensitivity_metric_rows() {
  static const std::vector<NameRow> rows = [] {
    std::vector<NameRow> all;
    for (const SensitivityMetric& metric : sensitivity_metrics()) all.push_back({metric.name, "", metric.formula});
    return all;
  }();
  return rows;
}

constexpr NameRow kMoreObservers[] = {
    {"auto", "", "of these, for each value, the one whose range loses least by gradients on data.score"},
};
const std::vector<NameRow>& observer_rows() {
  static const std::vector<NameRow> rows = merged(calibrate::observers(), kMoreObservers);
  return rows;
}

const std::vector<NameRow>& solver_rows() {
  static const std::vector<NameRow> rows = merged(search::solvers(), {});
  return rows;
}

const std::vector<NameRow>& quantizer_rows() {
  static const std::vector<NameRow> rows = merged(quantization::quantizers(), {});
  return rows;
}

constexpr NameRow kMoreFormats[] = {
    {"report", "", "report.json, report.md, report.html (always written)"},
    {"standalone", "the C++ writer", "one C++ file without dependencies"},
};
const std::vector<NameRow>& format_rows() {
  static const std::vector<NameRow> rows = merged(exporter::formats(), kMoreFormats);
  return rows;
}

const std::vector<NameRow>& metric_rows() {
  static const std::vector<NameRow> rows = merged(data::metrics(), {});
  return rows;
}

constexpr NameRow kOracles[] = {
    {"float", "", "the float model in our executor"},
    {"onnxruntime", "", "ONNX Runtime on the written ONNX file"},
    {"llama.cpp", "", "llama.cpp on the written GGUF file"},
    {"transformers", "", "Transformers on the written checkpoint"},
};

const std::vector<NameRow>& prune_method_rows() {
  static const std::vector<NameRow> rows = merged(pruning::importance_methods(), {});
  return rows;
}

const std::vector<NameRow>& transform_rows() {
  static const std::vector<NameRow> rows = merged(transform::methods(), {});
  return rows;
}

constexpr NameRow kTargets[] = {
    {"cpu", "", "this machine's processor"},
    {"gpu", "GPU kernels", "a graphics card"},
    {"npu", "the NPU executor", "a neural processing unit described by a device card"},
};

constexpr std::string_view kOnnxFormats[] = {"onnx_qdq", "onnx", "onnx_nbits"};
constexpr std::string_view kGgufFormats[] = {"gguf"};
constexpr std::string_view kSafetensorsFormats[] = {"safetensors"};

}  // namespace

std::span<const NameRow> names(NameKind kind) {
  switch (kind) {
    case NameKind::stage:
      return kStages;
    case NameKind::scheme:
      return kSchemes;
    case NameKind::observer:
      return observer_rows();
    case NameKind::sensitivity_metric:
      return sensitivity_metric_rows();
    case NameKind::solver:
      return solver_rows();
    case NameKind::quantizer:
      return quantizer_rows();
    case NameKind::format:
      return format_rows();
    case NameKind::metric:
      return metric_rows();
    case NameKind::oracle:
      return kOracles;
    case NameKind::prune_method:
      return prune_method_rows();
    case NameKind::transform:
      return transform_rows();
    case NameKind::target:
      return kTargets;
  }
  return {};
}

const NameRow* find_name(NameKind kind, std::string_view name) {
  for (const NameRow& row : names(kind)) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<std::string_view> list_names(NameKind kind) {
  std::vector<std::string_view> list;
  for (const NameRow& row : names(kind)) list.push_back(row.name);
  return list;
}

bool changes_network(std::string_view stage) {
  constexpr std::string_view kChanging[] = {"distill", "prune", "finetune", "early_exit", "transform"};
  return std::ranges::count(kChanging, stage) != 0;
}

std::string_view scheme_needs(const QuantScheme& scheme) {
  if (!scheme.is_integer_weight()) return "";
  if (scheme.activation_bits == 16) return "";  // any width, with zero points or without: activations stay float
  if (scheme.is_affine) return "kernels with zero points of weights beside 8-bit activations";
  if (scheme.granularity == Granularity::per_group && scheme.weight_bits == 8) {
    return "kernels for 8-bit weights in groups";
  }
  if (scheme.weight_bits != 4 && scheme.weight_bits != 8) return kOtherWidths;
  return "";
}

std::string_view title_of(NameKind kind) {
  switch (kind) {
    case NameKind::stage:
      return "stage";
    case NameKind::scheme:
      return "scheme";
    case NameKind::observer:
      return "observer";
    case NameKind::sensitivity_metric:
      return "sensitivity metric";
    case NameKind::solver:
      return "solver";
    case NameKind::quantizer:
      return "quantizer";
    case NameKind::format:
      return "format";
    case NameKind::metric:
      return "metric";
    case NameKind::oracle:
      return "program to validate against";
    case NameKind::prune_method:
      return "pruning method";
    case NameKind::transform:
      return "transform";
    case NameKind::target:
      return "target";
  }
  return "name";
}

double point_of_metric(std::string_view name) {
  constexpr std::string_view kUpToOne[] = {"top1", "top5", "agreement", "spearman", "cosine"};
  return std::ranges::count(kUpToOne, name) != 0 ? 0.01 : 1.0;
}

std::span<const std::string_view> formats_for_oracle(std::string_view oracle) {
  if (oracle == "onnxruntime") return kOnnxFormats;
  if (oracle == "llama.cpp") return kGgufFormats;
  if (oracle == "transformers") return kSafetensorsFormats;
  return {};
}

}  // namespace ctk::pipeline

#include "compress/transform_rules.h"

#include <algorithm>

namespace ctk::pipeline {
namespace {

using Problems = std::vector<std::pair<std::string, std::string>>;

bool has_stage(const CheckedValues& values, std::string_view name) {
  return std::ranges::count(values.stages, name) != 0;
}

bool is_given(const CheckedValues& values, const std::string& path) {
  const auto found = values.values.find(path);
  return found != values.values.end() && !found->second.where.empty();
}

// True where no scheme is known: what is wrong with them is told elsewhere.
bool has_integer_activations(const CheckedValues& values) {
  std::vector<std::string> list;
  if (const auto* texts = values.get<std::vector<std::string>>("stages.search.schemes")) list = *texts;
  if (const auto* text = values.get<std::string>("stages.quantize.scheme")) list = {*text};
  if (list.empty()) {
    const std::int64_t* bits = values.get<std::int64_t>("stages.quantize.activation_bits");
    return bits == nullptr || *bits == 8;
  }
  return std::ranges::any_of(list, [](const std::string& text) {
    const Result<QuantScheme> scheme = parse_scheme(text);
    return !scheme || scheme->is_integer_activation();
  });
}

void transform(const CheckedValues& values, Problems& problems) {
  if (!has_stage(values, "transform")) return;
  if (!has_stage(values, "quantize")) {
    problems.emplace_back("stages.transform",
                          "expected a stage \"quantize\" whose schemes it prepares for, found none. Add \"- quantize: "
                          "{scheme: w8a8_c}\".");
  }
  const auto* methods = values.get<std::vector<std::string>>("stages.transform.methods");
  if (methods == nullptr) return;
  const bool smooths = std::ranges::count(*methods, "smoothquant") != 0;
  if (is_given(values, "stages.transform.strength") && !smooths) {
    problems.emplace_back("stages.transform.strength",
                          "expected smoothquant among the methods beside it, found none. Remove this key.");
  }
  if (smooths && !has_integer_activations(values)) {
    problems.emplace_back("stages.transform.methods",
                          "expected a scheme with 8-bit activations for smoothquant, found none. Use awq, or a scheme "
                          "like w8a8_c.");
  }
}

// Corrections are nodes of their own, which a format must hold and a search would have to count.
void low_rank(const CheckedValues& values, Problems& problems) {
  const std::string key = "stages.quantize.low_rank";
  const std::int64_t* rank = values.get<std::int64_t>(key);
  if (rank == nullptr || *rank == 0) return;
  if (has_stage(values, "search")) {
    problems.emplace_back(
        key, "expected no stage \"search\" beside it, whose sizes do not count it, found one. Remove one.");
  }
  if (has_stage(values, "qat"))
    problems.emplace_back(key, "expected no stage \"qat\" beside it, found one. Remove one.");
  const auto* formats = values.get<std::vector<std::string>>("stages.export.formats");
  for (const std::string format : {"gguf", "safetensors"}) {
    if (formats == nullptr || std::ranges::count(*formats, format) == 0) continue;
    problems.emplace_back(key, "expected formats that hold products beside a layer, found \"" + format +
                                   "\", which has no place for them. Use bundle or onnx_qdq, or leave low_rank out.");
  }
}

}  // namespace

Problems transform_problems(const CheckedValues& values) {
  Problems problems;
  transform(values, problems);
  low_rank(values, problems);
  return problems;
}

}  // namespace ctk::pipeline

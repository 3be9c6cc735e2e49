#include "graph/hf/packed_weights.h"

#include <algorithm>
#include <cstring>

#include "core/printable.h"
#include "graph/hf/stored_codes.h"

namespace ctk::graph::hf {

namespace {

constexpr const char* kParts[] = {
    ".qweight",           ".qzeros",       ".scales",      ".g_idx", ".weight_packed", ".weight_scale",
    ".weight_zero_point", ".weight_shape", ".weight_g_idx"};

Tensor dequantized(const StoredCodes& stored, const CodeGroup& group, const Shape& shape) {
  Tensor floats = Tensor::zeros(DType::f32, shape).value();
  auto values = floats.mutable_values<float>();
  const auto in = static_cast<std::size_t>(shape[1]),
             groups = stored.scales.size() / static_cast<std::size_t>(shape[0]);
  const std::size_t size = group.group_size == 0 ? in : static_cast<std::size_t>(group.group_size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = i % in;
    const std::size_t own = stored.is_permuted ? static_cast<std::size_t>(stored.order[column]) : column / size;
    const std::size_t at = stored.scales.size() == 1 ? 0 : i / in * groups + own;
    values[i] = static_cast<float>(stored.codes[i] - stored.zeros[at]) * stored.scales[at];
  }
  return floats;
}

std::shared_ptr<const QuantTensor> assembled(StoredCodes stored, const CodeGroup& group, const Shape& shape) {
  const int middle = 1 << (group.bits - 1);
  auto weight = std::make_shared<QuantTensor>();
  // Symmetric codes of 8 bits end at -127 here: where the file has a -128, zero points of 0 make room.
  const bool is_narrow = group.bits < 8 || std::ranges::find(stored.codes, 0) == stored.codes.end();
  const bool are_middle = std::ranges::all_of(stored.zeros, [&](std::uint8_t z) { return z == middle; });
  const bool says_affine = group.form != CodeForm::gptq && group.form != CodeForm::awq && !*group.is_symmetric;
  weight->scheme.weight_bits = group.bits;
  weight->scheme.activation_bits = 16;
  weight->scheme.granularity = group.is_tensor_wide    ? Granularity::per_tensor
                               : group.group_size == 0 ? Granularity::per_channel
                                                       : Granularity::per_group;
  weight->scheme.group_size = static_cast<int>(group.group_size);
  weight->scheme.is_affine = says_affine || !are_middle || !is_narrow;
  weight->scales = std::move(stored.scales);
  weight->method = "given";
  const auto signed_number = [&](std::uint8_t number) { return static_cast<std::int8_t>(number - middle); };
  std::vector<std::int8_t> codes(stored.codes.size());
  std::ranges::transform(stored.codes, codes.begin(), signed_number);
  weight->codes = pack_codes(shape, codes, group.bits);
  if (weight->scheme.is_affine) {
    weight->zeros.resize(stored.zeros.size());
    std::ranges::transform(stored.zeros, weight->zeros.begin(), signed_number);
  }
  return weight;
}

bool ends_part(const std::string& tensor, std::string& module) {
  for (const char* part : kParts) {
    if (!tensor.ends_with(part)) continue;
    module = tensor.substr(0, tensor.size() - std::strlen(part));
    return true;
  }
  return false;
}

}  // namespace

bool holds_codes(const Checkpoint& checkpoint, const std::string& module) {
  return checkpoint.find(module + ".qweight") != nullptr || checkpoint.find(module + ".weight_packed") != nullptr ||
         (checkpoint.find(module + ".weight") != nullptr && checkpoint.find(module + ".weight_scale") != nullptr);
}

bool is_part_of_codes(const Checkpoint& checkpoint, const std::string& tensor) {
  std::string module;
  if (ends_part(tensor, module)) return holds_codes(checkpoint, module);
  if (!tensor.ends_with(".weight")) return false;
  return checkpoint.find(tensor + "_scale") != nullptr;
}

Result<CodedWeight> read_codes(const Checkpoint& checkpoint, const CodeGroup& group, const std::string& module,
                               const Shape& shape) {
  for (const char* part : {".qweight", ".weight_packed"}) {
    if (checkpoint.find(module + part) == nullptr || checkpoint.find(module + ".weight") == nullptr) continue;
    return input_error(checkpoint.folder() + ": module \"" + printable(module) + "\": expected " + (part + 1) +
                       " or weight, found both. Remove the stale one");
  }
  CTK_TRY(StoredCodes stored, read_stored(checkpoint, group, module, shape));
  CodedWeight weight;
  weight.tensors = std::move(stored.tensors);
  if (stored.floats.is_defined()) {
    weight.reason = "are floats off the grid of their scales (format dense): they are taken as stored";
    weight.floats = std::move(stored.floats);
  } else if (stored.is_permuted) {
    weight.reason = "have groups that are permuted (g_idx): they are dequantized to float32";
    weight.floats = dequantized(stored, group, shape);
  } else if (std::ranges::find(stored.scales, 0.0f) != stored.scales.end()) {
    weight.reason = "have scales of 0: they are dequantized to float32";
    weight.floats = dequantized(stored, group, shape);
  } else {
    weight.codes = assembled(std::move(stored), group, shape);
  }
  return weight;
}

}  // namespace ctk::graph::hf

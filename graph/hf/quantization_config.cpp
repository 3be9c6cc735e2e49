#include "graph/hf/quantization_config.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/printable.h"
#include "graph/hf/config_reader.h"

namespace ctk::graph::hf {
namespace {

using nlohmann::json;

constexpr const char* kWhere = "quantization_config.";
constexpr const char* kOther = "Take the checkpoint before it was quantized, or one in another form";
constexpr std::int64_t kLargestGroup = std::int64_t{1} << 20;

// What tells how codes were found, or how a library runs them, and not what they stand for.
constexpr std::array kIdle{"act_group_aware",
                           "awq_gemm_checkpoint",
                           "backend",
                           "batch_size",
                           "block_name_to_quantize",
                           "cache_block_outputs",
                           "damp_auto_increment",
                           "damp_percent",
                           "dataset",
                           "disable_exllama",
                           "do_fuse",
                           "exllama_config",
                           "fuse_max_seq_len",
                           "global_compression_ratio",
                           "hyb_act",
                           "lm_head",
                           "max_input_length",
                           "meta",
                           "model_file_base_name",
                           "model_name_or_path",
                           "model_seqlen",
                           "module_name_preceding_first_block",
                           "modules_in_block_to_quantize",
                           "modules_to_fuse",
                           "mse",
                           "pad_token_id",
                           "quant_method",
                           "quantization_status",
                           "static_groups",
                           "tokenizer",
                           "true_sequential",
                           "use_cuda_fp16",
                           "use_exllama"};

// Not "quoted": std has one, which strings that are not const would find.
std::string in_quotes(const std::string& text) {
  return "\"" + printable(text) + "\"";
}

// false, {} and [] say that something is off.
bool is_off(const json& value) {
  return (value.is_boolean() && !value.get<bool>()) || ((value.is_object() || value.is_array()) && value.empty());
}

void refuse_unknown(ConfigReader& reader, const json& object) {
  for (const std::string& key : reader.unasked()) {
    if (is_off(object.at(key))) continue;
    reader.fail(key, "no such key", shown(object.at(key)),
                std::string("This version does not know what it does. ") + kOther);
  }
}

void require_off(ConfigReader& reader, const json& object, const char* key) {
  reader.skip(key);
  const auto found = object.find(key);
  if (found == object.end() || found->is_null() || is_off(*found)) return;
  reader.fail(key, "null", shown(*found), kOther);
}

std::string lowered(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The group size as written: -1 is a whole row.
std::int64_t read_group_size(ConfigReader& reader, std::int64_t size) {
  if (size == -1) return 0;
  if (size < 1 || size > kLargestGroup) {
    reader.fail("group_size", "-1 or a number from 1 to " + std::to_string(kLargestGroup), std::to_string(size),
                "Correct the file");
  }
  return size;
}

std::vector<std::string> read_names(ConfigReader& reader, const char* key) {
  std::vector<std::string> names;
  const json* list = reader.list(key);
  for (const json& name : list == nullptr ? json::array() : *list) {
    if (!name.is_string()) {
      reader.fail(key, "names of modules", shown(name), "Correct the file");
      break;
    }
    names.push_back(name.get<std::string>());
  }
  return names;
}

// The older and the newer key of one setting.
std::string read_form(ConfigReader& reader, const char* older, const std::string& fallback) {
  const auto old = reader.text(older), now = reader.text("format");
  if (old && now && lowered(*old) != lowered(*now))
    reader.fail(older, "the same as format " + in_quotes(*now), in_quotes(*old), "Keep one of the two");
  return lowered(old ? *old : now.value_or(fallback));
}

void read_gptq(ConfigReader& reader, const json& object, CodeGroup& group, QuantizationConfig& config) {
  group.form = CodeForm::gptq;
  group.bits = static_cast<int>(std::clamp<std::int64_t>(reader.required_integer("bits"), -1, 99));
  if (group.bits != 2 && group.bits != 3 && group.bits != 4 && group.bits != 8)
    reader.fail("bits", "2, 3, 4 or 8", shown(object.value("bits", json())), kOther);
  group.group_size = read_group_size(reader, reader.required_integer("group_size"));
  group.is_symmetric = reader.boolean("sym");
  group.orders_groups = reader.boolean("desc_act").value_or(false);
  const std::string form = read_form(reader, "checkpoint_format", "gptq");
  if (form != "gptq" && form != "gptq_v2")
    reader.fail("checkpoint_format", "gptq or gptq_v2", in_quotes(form),
                "Convert the checkpoint, for example by GPTQModel");
  group.stores_zero_less_one = form == "gptq";
  require_off(reader, object, "is_marlin_format");
  require_off(reader, object, "dynamic");
  if (const auto type = reader.text("pack_dtype"); type && *type != "int32")
    reader.fail("pack_dtype", "int32", in_quotes(*type), kOther);
  config.ignore = read_names(reader, "modules_to_not_convert");
}

void read_awq(ConfigReader& reader, const json& object, CodeGroup& group, QuantizationConfig& config) {
  group.form = CodeForm::awq;
  group.bits = 4;
  if (reader.required_integer("bits") != 4) reader.fail("bits", "4", shown(object.value("bits", json())), kOther);
  group.group_size = read_group_size(reader, reader.required_integer("group_size"));
  if (const auto has_zeros = reader.boolean("zero_point"); has_zeros && !*has_zeros) group.is_symmetric = true;
  const std::string form = read_form(reader, "version", "gemm");
  if (form != "gemm") reader.fail("version", "gemm", in_quotes(form), "Convert the checkpoint, for example by AutoAWQ");
  reader.skip("checkpoint_format");
  reader.skip("sym");
  require_off(reader, object, "desc_act");
  config.ignore = read_names(reader, "modules_to_not_convert");
}

Result<CodeForm> form_of(const std::string& name, const std::string& where) {
  if (name == "pack-quantized") return CodeForm::packed;
  if (name == "int-quantized" || name == "naive-quantized") return CodeForm::integers;
  if (name == "dense") return CodeForm::dense;
  return input_error(where + "format: expected pack-quantized, int-quantized, naive-quantized or dense, found " +
                     in_quotes(name) + ". " + kOther);
}

Status read_weights(const json& object, CodeGroup& group) {
  ConfigReader reader(object, group.key + ".weights.");
  group.bits = static_cast<int>(std::clamp<std::int64_t>(reader.integer("num_bits").value_or(8), -1, 99));
  if (group.bits < 2 || group.bits > 8)
    reader.fail("num_bits", "a number from 2 to 8", shown(object.value("num_bits", json())), kOther);
  if (const std::string type = lowered(reader.text("type").value_or("int")); type != "int")
    reader.fail("type", "int", in_quotes(type), kOther);
  group.is_symmetric = reader.boolean("symmetric").value_or(true);
  const auto size = reader.integer("group_size");
  const std::string strategy = lowered(reader.text("strategy")
                                           .value_or(!size         ? "tensor"
                                                     : *size == -1 ? "channel"
                                                                   : "group"));
  if (strategy == "group") {
    group.group_size = read_group_size(reader, size.value_or(0));
    if (group.group_size == 0) reader.fail("group_size", "a number above 0", "-1", "Correct the file");
  } else if (strategy != "channel" && strategy != "tensor") {
    reader.fail("strategy", "group, channel or tensor", in_quotes(strategy), kOther);
  } else if (size && *size > 0) {
    reader.fail("group_size", "null beside strategy " + strategy, std::to_string(*size), "Correct the file");
  }
  group.is_tensor_wide = strategy == "tensor";
  require_off(reader, object, "block_structure");
  require_off(reader, object, "dynamic");
  reader.skip("actorder");
  if (const auto order = object.find("actorder"); order != object.end() && !order->is_null() && !is_off(*order)) {
    const std::string name = order->is_string() ? lowered(order->get<std::string>()) : "";
    group.orders_groups = *order == true || name == "group" || name == "dynamic";
    if (!group.orders_groups && name != "weight" && name != "static")
      reader.fail("actorder", "null, weight, static, group or dynamic", shown(*order), kOther);
  }
  for (const char* key : {"observer", "observer_kwargs", "scale_dtype", "zp_dtype"}) reader.skip(key);
  refuse_unknown(reader, object);
  return reader.status();
}

Status read_config_group(const std::string& name, const json& object, const std::string& overall, CodeGroup& group) {
  group.key = kWhere + ("config_groups." + printable(name));
  if (!object.is_object()) {
    return input_error(group.key + ": expected an object with targets and weights, found " + shown(object) +
                       ". Save the checkpoint with its schemes written out");
  }
  ConfigReader reader(object, group.key + ".");
  CTK_TRY(group.form,
          form_of(reader.text("format").value_or(overall), reader.has("format") ? group.key + "." : kWhere));
  group.targets = read_names(reader, "targets");
  if (group.targets.empty()) reader.fail("targets", "names of modules or classes", "none", "Correct the file");
  // Rounded as they run, a token at a time: no scheme of ours.
  for (const char* key : {"input_activations", "output_activations"}) require_off(reader, object, key);
  const json* weights = reader.object("weights");
  if (weights == nullptr) reader.fail("weights", "an object", "none", kOther);
  refuse_unknown(reader, object);
  CTK_CHECK(reader.status());
  return read_weights(*weights, group);
}

Status read_compressed_tensors(ConfigReader& reader, const json& object, QuantizationConfig& config) {
  const std::string overall = reader.text("format").value_or("dense");
  for (const char* key : {"kv_cache_scheme", "moe_sparsity_config"}) require_off(reader, object, key);
  for (const char* key : {"sparsity_config", "transform_config"}) {
    const json* found = reader.object(key);
    const bool is_plain = found == nullptr || found->empty() || found->value("format", json()) == "dense" ||
                          (found->size() == 1 && is_off(found->value("config_groups", json(1))));
    if (!is_plain) reader.fail(key, "none", shown(*found), kOther);
  }
  reader.skip("version");
  config.ignore = read_names(reader, "ignore");
  const json* groups = reader.object("config_groups");
  if (groups == nullptr || groups->empty())
    reader.fail("config_groups", "at least one group", groups == nullptr ? "none" : "{}", "Correct the file");
  CTK_CHECK(reader.status());
  for (const auto& [name, group] : groups->items()) {
    config.groups.emplace_back();
    CTK_CHECK(read_config_group(name, group, overall, config.groups.back()));
    CTK_CHECK(names_module(config.groups.back().targets, "", ""));  // patterns compile
  }
  CTK_CHECK(names_module(config.ignore, "", ""));
  return {};
}

}  // namespace

Result<QuantizationConfig> parse_quantization(const json& object) {
  QuantizationConfig config;
  ConfigReader reader(object, kWhere);
  config.method = reader.text("quant_method").value_or("");
  CTK_CHECK(reader.status());
  if (config.method == "compressed-tensors") {
    CTK_CHECK(read_compressed_tensors(reader, object, config));
  } else if (config.method == "gptq" || config.method == "awq") {
    CodeGroup group;
    group.key = "quantization_config";
    (config.method == "gptq" ? read_gptq : read_awq)(reader, object, group, config);
    config.groups.push_back(std::move(group));
  } else {
    reader.fail("quant_method", "compressed-tensors, gptq or awq",
                config.method.empty() ? "none" : in_quotes(config.method), kOther);
  }
  for (const char* key : kIdle) reader.skip(key);
  refuse_unknown(reader, object);
  CTK_CHECK(reader.status());
  return config;
}

}  // namespace ctk::graph::hf

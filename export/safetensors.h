// Checkpoint folders of compressed-tensors, form pack-quantized: what transformers and vLLM read.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "export/formats.h"
#include "graph/graph.h"

namespace ctk::exporter {

// hf/model.safetensors. `model`: the checkpoint folder the graph was read from. A coded linear layer becomes
//   <module>.weight_packed  I32 [out, ceil(in * bits / 32)], code + 2^(bits - 1), lowest bits first
//   <module>.weight_scale   F16 [out, groups] (F32 where a scale is no fp16 number)
//   <module>.weight_shape   I64 [2]
//   <module>.weight_zero_point  I32 [ceil(out * bits / 32), groups], affine ones: packed along the outputs
// of 4 bits (codes of up to 4) or 8. Where the last group is ragged, groups are the longest that divide both the group
// and the row; scales repeat. All other tensors keep the source's bytes, or are float32 where the graph has other
// numbers; codes of the source are not copied, but written as the graph has them. A head that is coded is written
// beside the embedding it was tied to. Errors: input (no checkpoint folder; a layer the folder has no weight for;
// activations that are codes; a group without a divisor of 4 or more: names the layer). Beside it config.json with
// quantization_config, in float32 (in 16 bits codes times scales would be rounded once more), and the tokenizer's files
// as they are.
Result<Written> write_safetensors(const graph::Graph& graph, const std::string& model);

inline constexpr std::string_view kSafetensorsFile = "hf/model.safetensors";
inline constexpr std::array<std::string_view, 8> kSafetensorsOthers{"hf/config.json",
                                                                    "hf/tokenizer.json",
                                                                    "hf/tokenizer_config.json",
                                                                    "hf/special_tokens_map.json",
                                                                    "hf/generation_config.json",
                                                                    "hf/chat_template.jinja",
                                                                    "hf/tokenizer.model",
                                                                    "hf/vocab.json"};

}  // namespace ctk::exporter

// Weights that a checkpoint stores as codes, with exactly the numbers of the file. Internal to graph/hf and to the
// writer of checkpoints.
// A number is (code - zero) * scale, in float32. What a QuantTensor cannot hold is dequantized: no number changes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/quant_tensor.h"
#include "graph/hf/checkpoint.h"
#include "graph/hf/quantization_config.h"

namespace ctk::graph::hf {

struct CodedWeight {
  std::shared_ptr<const QuantTensor> codes;  // null: no QuantTensor holds the numbers
  Tensor floats;                             // f32 [out, in], then
  std::string reason;                        // behind their number: "have scales of 0: ..."
  std::vector<std::string> tensors;          // of the file, that were read
};

// Whether the files hold codes for the module.
bool holds_codes(const Checkpoint& checkpoint, const std::string& module);
// Whether `tensor` is a part of a module's codes.
bool is_part_of_codes(const Checkpoint& checkpoint, const std::string& tensor);

// The weight [out, in] of a module that holds_codes(), of group `group`.
// Errors: input (folder, tensor, expected, found, remedy): another shape or type than config.json says, scales that are
// not finite, zero points or indices out of range, a tensor that is missing.
Result<CodedWeight> read_codes(const Checkpoint& checkpoint, const CodeGroup& group, const std::string& module,
                               const Shape& shape);

}  // namespace ctk::graph::hf

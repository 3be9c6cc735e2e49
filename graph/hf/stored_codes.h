// The numbers of a coded weight as a file has them, out of their packing.
//   gptq     <module>.qweight I32 [in * bits / 32, out] packed along the inputs, .qzeros I32 [groups, out * bits / 32],
//            .scales [groups, out], .g_idx I32 [in]. Both packings go across the ends of words.
//   awq      .qweight I32 [in, out / 8], .qzeros I32 [groups, out / 8], .scales [groups, out]
//   packed   .weight_packed I32 [out, ceil(in * bits / 32)], .weight_scale [out, groups], .weight_shape I64 [2],
//            .weight_zero_point I32 [ceil(out * bits / 32), groups] (older files: I8 [out, groups]), .weight_g_idx
//   integers .weight I8 [out, in], .weight_scale, .weight_zero_point I8 [out, groups]
//   dense    .weight in floats that lie on the grid of .weight_scale and .weight_zero_point, or do not
// Internal to graph/hf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/hf/checkpoint.h"
#include "graph/hf/quantization_config.h"

namespace ctk::graph::hf {

struct StoredCodes {
  std::vector<std::uint8_t> codes;   // [out, in], unsigned: 2^(bits-1) more than the signed ones
  std::vector<std::uint8_t> zeros;   // beside each scale, unsigned too
  std::vector<float> scales;         // [out, groups] or [1], finite
  std::vector<std::int64_t> order;   // [in]: the group of each input, where the file says it
  bool is_permuted = false;          // `order` is not what the inputs' places say
  Tensor floats;                     // f32 [out, in] of a dense weight off its grid; undefined else
  std::vector<std::string> tensors;  // of the file, that were read
};

// Errors: those of read_codes().
Result<StoredCodes> read_stored(const Checkpoint& checkpoint, const CodeGroup& group, const std::string& module,
                                const Shape& shape);

}  // namespace ctk::graph::hf

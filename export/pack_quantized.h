// Coded matrices as compressed-tensors packs them into 32-bit words. Internal to export/safetensors.
#pragma once

#include <optional>

#include "core/quant_tensor.h"

namespace ctk::exporter {

// What one entry of config_groups says.
struct PackedGrid {
  int bits = 4;                 // 4 or 8
  std::int64_t group_size = 0;  // 0: a scale a row
  bool is_affine = false;
  auto operator<=>(const PackedGrid&) const = default;
};

struct PackedWeight {
  PackedGrid grid;
  Tensor words;                 // i32 [out, ceil(in * bits / 32)]
  Tensor scales;                // f16 or f32 [out, groups]
  std::optional<Tensor> zeros;  // i32 [ceil(out * bits / 32), groups]
};

// The grid alone: cheap. Errors: input (no matrix [out, in], codes beside activations that are codes, groups that do
// not divide).
Result<PackedGrid> packed_grid(const QuantTensor& weight);
Result<PackedWeight> pack_weight(const QuantTensor& weight);

}  // namespace ctk::exporter

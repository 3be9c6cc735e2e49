// Coded matrices as MatMulNBits holds them: rows cut into blocks of a power of two, each with its own scale.
#pragma once

#include <optional>

#include "core/quant_tensor.h"

namespace ctk::exporter {

struct NbitsBlocks {
  int bits = 4;  // 4 or 8
  int block_size = 32;
  Tensor codes;                 // u8 [N, blocks, block_size * bits / 8], code + 2^(bits - 1), low half of a byte first
  Tensor scales;                // f32 [N, blocks]
  std::optional<Tensor> zeros;  // affine: u8 [N, ceil(blocks * bits / 8)], zero + 2^(bits - 1), packed as the codes
};

// `weight`: codes [N, K] with scales along N. What stands behind the end of a row is the code of 0.
// Errors: input (no matrix of that form; groups that no block of 16 to 256 divides).
Result<NbitsBlocks> nbits_blocks(const QuantTensor& weight);

}  // namespace ctk::exporter

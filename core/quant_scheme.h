// QuantScheme: how one layer's weights and input activations are represented. Spelled "w8a8_c", "w4a8_g32",
// "w4a16_g64_affine", "fp16".
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace ctk {

enum class Granularity { per_tensor, per_channel, per_group };

struct QuantScheme {
  int weight_bits = 32;                                // 32, 16: stored as float; 2..8: stored as codes
  int activation_bits = 32;                            // 32, 16: float; 8: affine uint8
  Granularity granularity = Granularity::per_channel;  // of the weight scales
  int group_size = 0;                                  // input elements a scale covers, with per_group only
  bool is_affine = false;                              // weights have a zero point beside each scale

  bool is_integer_weight() const { return weight_bits <= 8; }
  // Activations are codes in the graph, with calibrated ranges. Schemes with groups round theirs as they run instead,
  // to activation_bits, a row and group at a time.
  bool is_integer_activation() const { return activation_bits <= 8 && granularity != Granularity::per_group; }
  bool operator==(const QuantScheme&) const = default;
};

// "fp32", "fp16", "w<bits>a<8|16>_<t|c|g<size>>", with "_affine" behind it for zero points. Errors: config (says the
// known forms).
Result<QuantScheme> parse_scheme(std::string_view text);
std::string to_string(const QuantScheme& scheme);

}  // namespace ctk

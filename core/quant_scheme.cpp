#include "core/quant_scheme.h"

#include <charconv>

namespace ctk {
namespace {

// Reads digits at the front of `text` and drops them; -1 when there are none.
int take_number(std::string_view& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

Result<QuantScheme> parse_scheme(std::string_view text) {
  if (text == "fp32") return QuantScheme{};
  if (text == "fp16") return QuantScheme{16, 32, Granularity::per_channel, 0};
  const Error wrong = config_error("expected a scheme like \"fp32\", \"fp16\", \"w8a8_c\" or \"w4a8_g32\", found \"" +
                                   std::string(text) + "\"");
  std::string_view rest = text;
  QuantScheme scheme;
  if (!take(rest, "w")) return wrong;
  scheme.weight_bits = take_number(rest);
  if (!take(rest, "a")) return wrong;
  scheme.activation_bits = take_number(rest);
  if (!take(rest, "_")) return wrong;
  if (scheme.weight_bits < 2 || scheme.weight_bits > 8) return wrong;
  if (scheme.activation_bits != 8 && scheme.activation_bits != 16) return wrong;
  constexpr std::string_view kAffine = "_affine";
  if (rest.ends_with(kAffine)) {
    scheme.is_affine = true;
    rest.remove_suffix(kAffine.size());
  }
  if (rest == "t") {
    scheme.granularity = Granularity::per_tensor;
  } else if (rest == "c") {
    scheme.granularity = Granularity::per_channel;
  } else if (take(rest, "g")) {
    scheme.granularity = Granularity::per_group;
    scheme.group_size = take_number(rest);
    if (!rest.empty() || scheme.group_size < 1) return wrong;
  } else {
    return wrong;
  }
  if (to_string(scheme) != text) return wrong;  // one spelling each: no "w08a8_c"
  return scheme;
}

std::string to_string(const QuantScheme& scheme) {
  if (scheme.weight_bits == 32) return "fp32";
  if (scheme.weight_bits == 16) return "fp16";
  std::string text = "w";
  text += std::to_string(scheme.weight_bits);
  text += 'a';
  text += std::to_string(scheme.activation_bits);
  switch (scheme.granularity) {
    case Granularity::per_tensor:
      text += "_t";
      break;
    case Granularity::per_channel:
      text += "_c";
      break;
    case Granularity::per_group:
      text += "_g" + std::to_string(scheme.group_size);
      break;
  }
  return scheme.is_affine ? text + "_affine" : text;
}

}  // namespace ctk

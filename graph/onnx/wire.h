// Why a parser refused a file: told apart by a walk over the wire format that cannot overflow. Internal to graph/onnx.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ctk::graph::onnx {

// Messages nested deeper than this are refused by the parser, so that no file can exhaust the stack.
inline constexpr int kMaxNesting = 100;

// One sentence: cut off (with the numbers), nested too deeply, or not an ONNX model at all.
std::string explain_parse_failure(std::span<const std::byte> bytes);

}  // namespace ctk::graph::onnx

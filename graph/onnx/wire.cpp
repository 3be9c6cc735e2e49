#include "graph/onnx/wire.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ctk::graph::onnx {
namespace {

struct Field {
  std::uint64_t number = 0;
  int wire_type = 0;
  std::uint64_t length = 0;  // of a length-delimited field
};

// Which messages hold messages on the way to a nested graph; the path of ONNX's
// own field numbers.
enum class Message { model, graph, node, attribute, other };

Message child_of(Message message, std::uint64_t field) {
  switch (message) {
    case Message::model:
      return field == 7 ? Message::graph : Message::other;
    case Message::graph:
      return field == 1 ? Message::node : Message::other;
    case Message::node:
      return field == 5 ? Message::attribute : Message::other;
    case Message::attribute:
      return field == 6 || field == 11 ? Message::graph : Message::other;
    case Message::other:
      break;
  }
  return Message::other;
}

class Walker {
 public:
  explicit Walker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::string walk() {
    std::vector<Open> open{{Message::model, bytes_.size()}};
    while (!open.empty()) {
      if (at_ == open.back().end) {
        open.pop_back();
        continue;
      }
      const auto field = next();
      if (!field) return "the bytes are no ONNX model (damaged at byte " + std::to_string(at_) + ")";
      if (field->wire_type != 2) continue;
      if (field->length > bytes_.size() - at_) {
        return "the file is cut off: field " + std::to_string(field->number) + " at byte " + std::to_string(at_) +
               " needs " + std::to_string(field->length) + " bytes, " + std::to_string(bytes_.size() - at_) +
               " are left";
      }
      if (field->length > open.back().end - at_) {
        return "the bytes are no ONNX model (damaged at byte " + std::to_string(at_) + ")";
      }
      const Message child = child_of(open.back().message, field->number);
      if (child == Message::other) {
        at_ += field->length;
        continue;
      }
      open.push_back({child, at_ + field->length});
      if (static_cast<int>(open.size()) > kMaxNesting) {
        return "messages are nested deeper than " + std::to_string(kMaxNesting) +
               " (subgraphs of If, Loop or Scan inside each other)";
      }
    }
    return "the bytes are no ONNX model";
  }

 private:
  struct Open {
    Message message;
    std::size_t end;
  };

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) return std::nullopt;
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  std::optional<Field> next() {
    const auto tag = varint();
    if (!tag) return std::nullopt;
    Field field{*tag >> 3, static_cast<int>(*tag & 7), 0};
    std::size_t skip = 0;
    switch (field.wire_type) {
      case 0:
        if (!varint()) return std::nullopt;
        break;
      case 1:
        skip = 8;
        break;
      case 2: {
        const auto length = varint();
        if (!length) return std::nullopt;
        field.length = *length;
        break;
      }
      case 5:
        skip = 4;
        break;
      default:
        return std::nullopt;
    }
    if (field.number == 0 || skip > bytes_.size() - at_) return std::nullopt;
    at_ += skip;
    return field;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::string explain_parse_failure(std::span<const std::byte> bytes) {
  return Walker(bytes).walk();
}

}  // namespace ctk::graph::onnx

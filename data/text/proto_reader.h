// Protocol buffers, one field after another, every length checked against the bytes that are there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace ctk::data {

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

class ProtoReader {
 public:
  // `at`: where `bytes` start in the file, for messages, which `file` opens.
  ProtoReader(std::string_view bytes, std::string file, std::size_t at = 0)
      : bytes_(bytes), file_(std::move(file)), start_(at) {}

  // Reads the next field, past the value of the one before. False at the end.
  // Errors: input (a varint that does not end, a length beyond the end, a group or another unknown wire type).
  Result<bool> next();
  std::uint32_t field() const { return field_; }

  // The value of the field. `name` is that of the schema. Errors: input (another wire type).
  Result<std::int64_t> integer(std::string_view name) const;
  Result<bool> flag(std::string_view name) const;
  Result<float> real(std::string_view name) const;
  Result<std::string_view> text(std::string_view name) const;
  Result<ProtoReader> message(std::string_view name) const;

  // "byte 17 of t.model: pieces.score" opens an error about the field.
  std::string where(std::string_view name) const;

 private:
  Error broken(std::size_t at, const std::string& expected, const std::string& found) const;
  Status expect(WireType type, std::string_view name) const;
  Result<std::uint64_t> read_varint();

  std::string_view bytes_;
  std::string file_;
  std::size_t start_, at_ = 0, field_at_ = 0;
  std::uint32_t field_ = 0;
  WireType type_ = WireType::varint;
  std::uint64_t number_ = 0;  // varint, fixed32, fixed64
  std::string_view value_;    // bytes
};

}  // namespace ctk::data

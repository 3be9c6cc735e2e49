#include "data/text/proto_reader.h"

#include <bit>

namespace ctk::data {
namespace {

std::string name_of(WireType type) {
  switch (type) {
    case WireType::varint:
      return "a varint";
    case WireType::fixed64:
      return "8 bytes";
    case WireType::bytes:
      return "bytes with their length";
    case WireType::fixed32:
      return "4 bytes";
  }
  return "";
}

}  // namespace

Error ProtoReader::broken(std::size_t at, const std::string& expected, const std::string& found) const {
  return input_error(file_ + ": byte " + std::to_string(start_ + at) + ": expected " + expected + ", found " + found +
                     ". Fetch the file again.");
}

std::string ProtoReader::where(std::string_view name) const {
  return file_ + ": byte " + std::to_string(start_ + field_at_) + ": " + std::string(name);
}

Result<std::uint64_t> ProtoReader::read_varint() {
  const std::size_t start = at_;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (at_ == bytes_.size()) return broken(start, "a varint", "the end of the message inside it");
    const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
    if (shift == 63 && byte > 1) break;
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return broken(start, "a varint below 2^64, of at most 10 bytes", "a longer one");
}

Result<bool> ProtoReader::next() {
  if (at_ == bytes_.size()) return false;
  field_at_ = at_;
  CTK_TRY(const std::uint64_t tag, read_varint());
  if (tag >> 3 == 0 || tag >> 3 >= 1u << 29)
    return broken(field_at_, "a field number of 1 to 2^29 - 1", std::to_string(tag >> 3));
  field_ = static_cast<std::uint32_t>(tag >> 3);
  const auto wire = static_cast<unsigned>(tag & 7);
  if (wire != 0 && wire != 1 && wire != 2 && wire != 5)
    return broken(field_at_, "a wire type 0, 1, 2 or 5", std::to_string(wire));
  type_ = static_cast<WireType>(wire);
  std::uint64_t length = type_ == WireType::fixed32 ? 4 : 8;
  if (type_ == WireType::varint || type_ == WireType::bytes) {
    CTK_TRY(number_, read_varint());
    if (type_ == WireType::varint) return true;
    length = number_;
  }
  const std::size_t left = bytes_.size() - at_;
  if (length > left)
    return broken(field_at_, "a value inside the message, of which " + std::to_string(left) + " bytes are left",
                  "one of " + std::to_string(length));
  value_ = bytes_.substr(at_, static_cast<std::size_t>(length));
  at_ += value_.size();
  if (type_ == WireType::bytes) return true;
  number_ = 0;
  for (std::size_t i = 0; i < value_.size(); ++i)
    number_ |= std::uint64_t{static_cast<std::uint8_t>(value_[i])} << (8 * i);
  return true;
}

Status ProtoReader::expect(WireType type, std::string_view name) const {
  if (type_ == type) return {};
  return input_error(where(name) + ": expected " + name_of(type) + ", found " + name_of(type_) +
                     ". Take a model that sentencepiece wrote.");
}

Result<std::int64_t> ProtoReader::integer(std::string_view name) const {
  CTK_CHECK(expect(WireType::varint, name));
  return static_cast<std::int64_t>(number_);
}
Result<bool> ProtoReader::flag(std::string_view name) const {
  CTK_CHECK(expect(WireType::varint, name));
  return number_ != 0;
}
Result<float> ProtoReader::real(std::string_view name) const {
  CTK_CHECK(expect(WireType::fixed32, name));
  return std::bit_cast<float>(static_cast<std::uint32_t>(number_));
}
Result<std::string_view> ProtoReader::text(std::string_view name) const {
  CTK_CHECK(expect(WireType::bytes, name));
  return value_;
}
Result<ProtoReader> ProtoReader::message(std::string_view name) const {
  CTK_CHECK(expect(WireType::bytes, name));
  return ProtoReader(value_, file_, start_ + static_cast<std::size_t>(value_.data() - bytes_.data()));
}

}  // namespace ctk::data

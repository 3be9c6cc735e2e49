#include "compress/quantize/rank_bytes.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "compress/quantize/outcome_facts.h"

namespace ctk::quantization {
namespace {

using nlohmann::json;

json binary(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  return json::binary(std::vector<std::uint8_t>(bytes, bytes + size));
}

template <class T>
std::vector<T> values_of(const json& line) {
  const auto& bytes = line.get_binary();
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

void append(std::string& bytes, std::uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Nothing when there are not enough bytes.
std::optional<std::uint64_t> take(std::string_view& bytes) {
  std::uint64_t number = 0;
  if (bytes.size() < sizeof number) return std::nullopt;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

json line_of(const WeightOutcome& outcome) {
  const QuantTensor& tensor = outcome.tensor;
  return {{"scheme", to_string(tensor.scheme)},
          {"axis", tensor.channel_axis},
          {"groups", tensor.group_count},
          {"dtype", static_cast<int>(tensor.codes.dtype())},
          {"shape", tensor.codes.shape()},
          {"codes", binary(tensor.codes.data(), tensor.codes.bytes())},
          {"scales", binary(tensor.scales.data(), tensor.scales.size() * sizeof(float))},
          {"zeros", binary(tensor.zeros.data(), tensor.zeros.size())},
          {"method", tensor.method},
          {"facts", facts_of(outcome)}};
}

Result<WeightOutcome> outcome_of(const json& line) {
  WeightOutcome outcome;
  QuantTensor& tensor = outcome.tensor;
  CTK_TRY(tensor.scheme, parse_scheme(line["scheme"].get<std::string>()));
  tensor.channel_axis = line["axis"];
  tensor.group_count = line["groups"];
  CTK_TRY(tensor.codes, Tensor::zeros(static_cast<DType>(line["dtype"].get<int>()), line["shape"].get<Shape>()));
  const auto codes = values_of<std::uint8_t>(line["codes"]);
  if (codes.size() != tensor.codes.bytes()) return internal_error("quantize: expected all codes of a layer");
  if (!codes.empty()) std::memcpy(tensor.codes.mutable_data(), codes.data(), codes.size());
  tensor.scales = values_of<float>(line["scales"]);
  tensor.zeros = values_of<std::int8_t>(line["zeros"]);
  tensor.method = line["method"];
  take_facts(line["facts"], outcome);
  return outcome;
}

}  // namespace

std::string encode(std::span<const WeightOutcome> outcomes) {
  json lines = json::array();
  for (const WeightOutcome& outcome : outcomes) lines.push_back(line_of(outcome));
  const std::vector<std::uint8_t> bytes = json::to_cbor(lines);
  return {bytes.begin(), bytes.end()};
}

Result<std::vector<WeightOutcome>> decode(const std::string& bytes) {
  const json lines = json::from_cbor(bytes, true, false);
  if (!lines.is_array()) return internal_error("quantize: expected codes from every rank");
  std::vector<WeightOutcome> outcomes;
  for (const json& line : lines) {
    CTK_TRY(WeightOutcome outcome, outcome_of(line));
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

// Each: dtype, rank, dimensions, then its bytes as they are.
std::string encode_tensors(std::span<const Tensor> tensors) {
  std::string bytes;
  for (const Tensor& tensor : tensors) {
    append(bytes, static_cast<std::uint64_t>(tensor.dtype()));
    append(bytes, tensor.shape().size());
    for (const std::int64_t dim : tensor.shape()) append(bytes, static_cast<std::uint64_t>(dim));
    bytes.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  }
  return bytes;
}

Result<std::vector<Tensor>> decode_tensors(const std::string& bytes) {
  const Error torn = internal_error("quantize: expected whole values from every rank");
  std::vector<Tensor> tensors;
  for (std::string_view left = bytes; !left.empty();) {
    const auto dtype = take(left), dims = take(left);
    if (!dims) return torn;
    Shape shape;
    for (std::uint64_t d = 0; d < *dims; ++d) {
      const auto dim = take(left);
      if (!dim) return torn;
      shape.push_back(static_cast<std::int64_t>(*dim));
    }
    CTK_TRY(Tensor tensor, Tensor::zeros(static_cast<DType>(*dtype), shape));
    if (left.size() < tensor.bytes()) return torn;
    if (tensor.bytes() > 0) std::memcpy(tensor.mutable_data(), left.data(), tensor.bytes());
    left.remove_prefix(tensor.bytes());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace ctk::quantization

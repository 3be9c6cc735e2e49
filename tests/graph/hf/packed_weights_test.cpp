#include "graph/hf/packed_weights.h"

#include <cmath>
#include <cstring>

#include "tests/graph/hf/write_checkpoint.h"

namespace ctk::graph::hf::test {
namespace {

struct Part {
  std::string name, type, shape, bytes;
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
Part words(const std::string& name, const std::string& shape, const std::vector<std::uint32_t>& values) {
  return {name, "I32", shape, bytes_of(values)};
}
Part halves(const std::string& name, const std::string& shape, const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (float v : values) bits.push_back(float_to_half(v));
  return {name, "F16", shape, bytes_of(bits)};
}
Part floats(const std::string& name, const std::string& shape, const std::vector<float>& values) {
  return {name, "F32", shape, bytes_of(values)};
}

class PackedWeights : public Folder {
 protected:
  Result<CodedWeight> read(const std::vector<Part>& parts, const CodeGroup& group, const Shape& shape) const {
    std::string header = "{", data;
    for (const Part& part : parts) {
      header += (data.empty() ? "\"" : ",\"") + part.name + R"(":{"dtype":")" + part.type + R"(","shape":)" +
                part.shape + R"(,"data_offsets":[)" + std::to_string(data.size()) + "," +
                std::to_string(data.size() + part.bytes.size()) + "]}";
      data += part.bytes;
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    write("model.safetensors", file_of(header, data));
    CTK_TRY(const Checkpoint checkpoint, Checkpoint::open(root_.string()));
    EXPECT_TRUE(holds_codes(checkpoint, "m"));
    for (const Part& part : parts) EXPECT_TRUE(is_part_of_codes(checkpoint, part.name)) << part.name;
    return read_codes(checkpoint, group, "m", shape);
  }
};

CodeGroup gptq_group(int bits = 4, std::int64_t size = 4) {
  CodeGroup group;
  group.key = "quantization_config";
  group.form = CodeForm::gptq;
  group.bits = bits;
  group.group_size = size;
  group.stores_zero_less_one = true;
  return group;
}

// [8 out, 8 in] of 4 bits in groups of 4: code of input i is i; zero points 3 and 9 (stored 2 and 8), scale of output o
// 0.5 and 2.
std::vector<Part> gptq_parts() {
  return {words("m.qweight", "[1,8]", std::vector<std::uint32_t>(8, 0x76543210u)),
          words("m.qzeros", "[2,1]", {0x22222222u, 0x88888888u}),
          halves("m.scales", "[2,8]", {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 2, 2, 2, 2, 2, 2, 2, 2}),
          words("m.g_idx", "[8]", {0, 0, 0, 0, 1, 1, 1, 1})};
}

std::vector<float> row_of(const Tensor& weight, std::size_t row) {
  const auto width = static_cast<std::size_t>(weight.shape()[1]);
  const auto values = weight.values<float>().subspan(row * width, width);
  return {values.begin(), values.end()};
}

TEST_F(PackedWeights, GptqNumbersAreCodeLessZeroTimesScale) {
  const auto weight = read(gptq_parts(), gptq_group(), {8, 8});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  ASSERT_NE(weight->codes, nullptr);
  EXPECT_EQ(to_string(weight->codes->scheme), "w4a16_g4_affine");
  EXPECT_EQ(unpack_codes(*weight->codes)[5], 5 - 8);
  EXPECT_EQ(weight->codes->zeros[0], 3 - 8);
  EXPECT_EQ(weight->codes->zeros[1], 9 - 8);
  // (0 - 3) * 0.5 = -1.5, ..., (7 - 9) * 2 = -4
  const std::vector<float> row = {-1.5f, -1.0f, -0.5f, 0.0f, -10.0f, -8.0f, -6.0f, -4.0f};
  for (std::size_t o = 0; o < 8; ++o) EXPECT_EQ(row_of(dequantize(*weight->codes), o), row) << o;
  EXPECT_EQ(weight->tensors.size(), 4u);
}

TEST_F(PackedWeights, TheSecondFormStoresZerosAsTheyAre) {
  CodeGroup group = gptq_group();
  group.stores_zero_less_one = false;
  const auto weight = read(gptq_parts(), group, {8, 8});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(weight->codes->zeros[0], 2 - 8);
}

TEST_F(PackedWeights, ZerosInTheMiddleAreSymmetricCodes) {
  std::vector<Part> parts = gptq_parts();
  parts[1] = words("m.qzeros", "[2,1]", {0x77777777u, 0x77777777u});
  for (const std::optional<bool> says : {std::optional<bool>(), std::optional<bool>(true)}) {
    CodeGroup group = gptq_group();
    group.is_symmetric = says;
    const auto weight = read(parts, group, {8, 8});
    ASSERT_TRUE(weight.has_value()) << weight.error().message;
    EXPECT_EQ(to_string(weight->codes->scheme), "w4a16_g4");
    EXPECT_EQ(row_of(dequantize(*weight->codes), 3), (std::vector<float>{-4, -3.5f, -3, -2.5f, -8, -6, -4, -2}));
  }
}

TEST_F(PackedWeights, GroupsThatArePermutedBecomeFloats) {
  std::vector<Part> parts = gptq_parts();
  parts[3] = words("m.g_idx", "[8]", {1, 0, 0, 0, 0, 1, 1, 1});
  const auto weight = read(parts, gptq_group(), {8, 8});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(weight->codes, nullptr);
  EXPECT_NE(weight->reason.find("g_idx"), std::string::npos);
  // Input 0 is of group 1, (0 - 9) * 2 = -18, input 4 of group 0, (4 - 3) * 0.5 = 0.5
  EXPECT_EQ(row_of(weight->floats, 7), (std::vector<float>{-18, -1, -0.5f, 0, 0.5f, -8, -6, -4}));
}

TEST_F(PackedWeights, AMissingOrderIsThePlacesUnlessColumnsAreOrdered) {
  std::vector<Part> parts = gptq_parts();
  parts.pop_back();
  EXPECT_TRUE(read(parts, gptq_group(), {8, 8}).has_value());
  CodeGroup group = gptq_group();
  group.orders_groups = true;
  expect_error(read(parts, group, {8, 8}), {"tensor \"m.g_idx\"", "desc_act", "found none"});
}

TEST_F(PackedWeights, AScaleOfZeroMakesFloatsOfZero) {  // FAULTS B028
  std::vector<Part> parts = gptq_parts();
  parts[2].bytes[0] = parts[2].bytes[1] = 0;
  const auto weight = read(parts, gptq_group(), {8, 8});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(weight->codes, nullptr);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(row_of(weight->floats, 0)[i], 0.0f);
  EXPECT_EQ(row_of(weight->floats, 1)[0], -1.5f);
}

TEST_F(PackedWeights, ScalesThatAreNotFiniteAreCounted) {  // FAULTS B025
  std::vector<Part> parts = gptq_parts();
  std::vector<float> scales(16, 1.0f);
  scales[5] = NAN;
  scales[9] = INFINITY;
  parts[2] = halves("m.scales", "[2,8]", scales);
  expect_error(read(parts, gptq_group(), {8, 8}),
               {"tensor \"m.scales\"", "finite scales", "2 NaN or infinite, the first at 5 of [2,8]"});
}

TEST_F(PackedWeights, RefusesWhatDoesNotFitTheConfiguration) {
  std::vector<Part> parts = gptq_parts();
  expect_error(read(parts, gptq_group(4, 2), {8, 8}),
               {"tensor \"m.qzeros\"", "expected shape [4,1]", "groups of 2", "found [2,1]"});
  expect_error(read(parts, gptq_group(8), {8, 8}),
               {"tensor \"m.qweight\"", "expected shape [2,8]", "8 bits", "found [1,8]"});
  expect_error(read(parts, gptq_group(3), {8, 8}), {"fill words of 32 bits at 3 bits", "[8,8]"});
  parts[2] = halves("m.scales", "[8,2]", std::vector<float>(16, 1.0f));
  expect_error(read(parts, gptq_group(), {8, 8}), {"tensor \"m.scales\"", "expected shape [2,8]", "found [8,2]"});
  parts = gptq_parts();
  parts[0].type = "F32";
  expect_error(read(parts, gptq_group(), {8, 8}), {"tensor \"m.qweight\"", "type i32", "found F32"});
  parts = gptq_parts();
  parts.erase(parts.begin() + 1);
  expect_error(read(parts, gptq_group(), {8, 8}), {"tensor \"m.qzeros\"", "found none"});
  parts = gptq_parts();
  parts[3] = words("m.g_idx", "[8]", {0, 0, 0, 0, 1, 1, 2, 0xffffffffu});
  expect_error(read(parts, gptq_group(), {8, 8}), {"tensor \"m.g_idx\"", "from 0 to 1", "2 others, the first 2 at 6"});
}

TEST_F(PackedWeights, RefusesZeroPointsThatReadersTakeDifferently) {
  std::vector<Part> parts = gptq_parts();
  parts[1] = words("m.qzeros", "[2,1]", {0x22222222u, 0x88f88888u});
  expect_error(read(parts, gptq_group(), {8, 8}),
               {"tensor \"m.qzeros\"", "up to 14", "found 15 for output 5 of group 1"});
  CodeGroup group = gptq_group();
  group.is_symmetric = true;
  expect_error(read(gptq_parts(), group, {8, 8}), {"tensor \"m.qzeros\"", "zero points of 8", "found 3 for output 0"});
}

TEST_F(PackedWeights, RefusesTwoCopiesOfAWeight) {
  std::vector<Part> parts = gptq_parts();
  parts.push_back(floats("m.weight", "[1]", {1}));
  std::vector<Part> known = parts;
  known.push_back(floats("m.weight_scale", "[1]", {1}));  // so that all are parts of codes
  expect_error(read(known, gptq_group(), {8, 8}), {"module \"m\"", "qweight or weight", "found both"});
}

TEST_F(PackedWeights, AwqIsInputsByOutputsInItsOrder) {
  CodeGroup group;
  group.key = "quantization_config";
  group.form = CodeForm::awq;
  group.group_size = 2;
  // Outputs 0..7 of input 0 hold 0..7, of input 1 all 15; zero points of output o are o; scale 1.
  const std::vector<Part> parts = {words("m.qweight", "[2,1]", {0x75316420u, 0xffffffffu}),
                                   words("m.qzeros", "[1,1]", {0x75316420u}),
                                   halves("m.scales", "[1,8]", std::vector<float>(8, 1.0f))};
  const auto weight = read(parts, group, {8, 2});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  for (std::size_t o = 0; o < 8; ++o) {
    EXPECT_EQ(row_of(dequantize(*weight->codes), o), (std::vector<float>{0, 15 - static_cast<float>(o)})) << o;
  }
  expect_error(read(parts, group, {6, 2}), {"tensor \"m.qweight\"", "multiple of 8 outputs", "[6,2]"});
}

CodeGroup tensors_group(CodeForm form, int bits, std::int64_t size, bool is_symmetric) {
  CodeGroup group;
  group.key = "quantization_config.config_groups.g";
  group.form = form;
  group.bits = bits;
  group.group_size = size;
  group.is_symmetric = is_symmetric;
  return group;
}

std::vector<Part> packed_parts() {
  return {words("m.weight_packed", "[2,1]", {0x43210u, 0xfedc8u}),
          floats("m.weight_scale", "[2,2]", {1, 2, 0.1f, -1}),
          {"m.weight_shape", "I64", "[2]", bytes_of<std::int64_t>({2, 5})}};
}

TEST_F(PackedWeights, CompressedTensorsWithARaggedGroup) {
  const auto weight = read(packed_parts(), tensors_group(CodeForm::packed, 4, 4, true), {2, 5});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(to_string(weight->codes->scheme), "w4a16_g4");
  const Tensor numbers = dequantize(*weight->codes);
  EXPECT_EQ(row_of(numbers, 0), (std::vector<float>{-8, -7, -6, -5, -8}));  // the fifth: (4 - 8) * 2
  EXPECT_EQ(row_of(numbers, 1), (std::vector<float>{0.0f, 4 * 0.1f, 5 * 0.1f, 6 * 0.1f, -7}));
}

TEST_F(PackedWeights, ZeroPointsArePackedAlongTheOutputsOrBytes) {
  std::vector<Part> parts = packed_parts();
  parts.push_back(words("m.weight_zero_point", "[1,2]", {0x80u, 0x91u}));  // outputs 0, 1: 0 and 8; 1 and 9
  const CodeGroup group = tensors_group(CodeForm::packed, 4, 4, false);
  auto weight = read(parts, group, {2, 5});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(weight->codes->zeros, (std::vector<std::int8_t>{-8, -7, 0, 1}));
  parts.back() = {"m.weight_zero_point", "I8", "[2,2]", bytes_of<std::int8_t>({-8, -7, 0, 1})};
  weight = read(parts, group, {2, 5});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(weight->codes->zeros, (std::vector<std::int8_t>{-8, -7, 0, 1}));
  parts.back().bytes[2] = 8;
  expect_error(read(parts, group, {2, 5}), {"tensor \"m.weight_zero_point\"", "from -8 to 7", "the first 8 at 2"});
  parts.back().bytes[2] = 1;
  expect_error(read(parts, tensors_group(CodeForm::packed, 4, 4, true), {2, 5}),
               {"tensor \"m.weight_zero_point\"", "symmetric says", "found -8 at 0"});
  parts.pop_back();
  expect_error(read(parts, group, {2, 5}), {"tensor \"m.weight_zero_point\"", "found none"});
}

TEST_F(PackedWeights, TheStoredShapeMustBeTheModels) {
  std::vector<Part> parts = packed_parts();
  parts[2].bytes = bytes_of<std::int64_t>({2, 6});
  expect_error(read(parts, tensors_group(CodeForm::packed, 4, 4, true), {2, 5}),
               {"tensor \"m.weight_shape\"", "expected [2,5] by config.json", "found [2,6]"});
  parts = packed_parts();
  parts[1] = floats("m.weight_scale", "[2,1]", {1, 1});
  expect_error(read(parts, tensors_group(CodeForm::packed, 4, 4, true), {2, 5}),
               {"tensor \"m.weight_scale\"", "expected shape [2,2]", "found [2,1]"});
}

TEST_F(PackedWeights, CompressedTensorsMayDealColumnsOutToo) {
  std::vector<Part> parts = packed_parts();
  CodeGroup group = tensors_group(CodeForm::packed, 4, 4, true);
  group.orders_groups = true;
  expect_error(read(parts, group, {2, 5}), {"tensor \"m.weight_g_idx\"", "found none"});
  parts.push_back(words("m.weight_g_idx", "[5]", std::vector<std::uint32_t>(5, 0xffffffffu)));  // -1: never filled in
  auto weight = read(parts, group, {2, 5});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_NE(weight->codes, nullptr);
  parts.back() = words("m.weight_g_idx", "[5]", {1, 0, 0, 0, 0});
  weight = read(parts, group, {2, 5});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(weight->codes, nullptr);
  EXPECT_EQ(row_of(weight->floats, 0), (std::vector<float>{-16, -7, -6, -5, -4}));  // (0 - 8) * 2, then * 1
}

TEST_F(PackedWeights, OneScaleForTheWholeWeight) {
  std::vector<Part> parts = packed_parts();
  CodeGroup group = tensors_group(CodeForm::packed, 4, 0, true);
  group.is_tensor_wide = true;
  parts[1] = floats("m.weight_scale", "[1]", {0.5f});
  const auto weight = read(parts, group, {2, 5});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(to_string(weight->codes->scheme), "w4a16_t");
  EXPECT_EQ(row_of(dequantize(*weight->codes), 0), (std::vector<float>{-4, -3.5f, -3, -2.5f, -2}));
}

TEST_F(PackedWeights, OlderFilesLeaveTheRestOfAWord) {
  // 32 inputs of 3 bits: ten a word, 4 words; as a stream they would be 3.
  std::vector<std::uint32_t> slots(4, 0);
  slots[1] = 7;       // input 10
  slots[3] = 5 << 3;  // input 31
  const std::vector<Part> parts = {words("m.weight_packed", "[1,4]", slots),
                                   floats("m.weight_scale", "[1,1]", {1}),
                                   {"m.weight_shape", "I64", "[2]", bytes_of<std::int64_t>({1, 32})}};
  const auto weight = read(parts, tensors_group(CodeForm::packed, 3, 0, true), {1, 32});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  const std::vector<float> row = row_of(dequantize(*weight->codes), 0);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(row[i], i == 10 ? 3 : i == 31 ? 1 : -4) << i;
}

TEST_F(PackedWeights, BytesKeepMinus128ByAZeroPoint) {
  const std::vector<Part> parts = {{"m.weight", "I8", "[1,3]", bytes_of<std::int8_t>({-128, 0, 127})},
                                   floats("m.weight_scale", "[1,1]", {0.3f})};
  const auto weight = read(parts, tensors_group(CodeForm::integers, 8, 0, true), {1, 3});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(to_string(weight->codes->scheme), "w8a16_c_affine");
  EXPECT_EQ(row_of(dequantize(*weight->codes), 0), (std::vector<float>{-128 * 0.3f, 0, 127 * 0.3f}));
  expect_error(read(parts, tensors_group(CodeForm::integers, 4, 0, true), {1, 3}),
               {"tensor \"m.weight\"", "from -8 to 7 at 4 bits", "2 others, the first -128 at 0"});
}

TEST_F(PackedWeights, DenseWeightsOnTheGridAreCodesAndOthersStayAsStored) {
  const CodeGroup group = tensors_group(CodeForm::dense, 4, 0, true);
  const Part scale = floats("m.weight_scale", "[1,1]", {0.3f});
  auto weight = read({floats("m.weight", "[1,3]", {-8 * 0.3f, 0, 3 * 0.3f}), scale}, group, {1, 3});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  ASSERT_NE(weight->codes, nullptr);
  EXPECT_EQ(unpack_codes(*weight->codes), (std::vector<std::int8_t>{-8, 0, 3}));
  weight = read({floats("m.weight", "[1,3]", {-8 * 0.3f, 0.01f, 3 * 0.3f}), scale}, group, {1, 3});
  ASSERT_TRUE(weight.has_value()) << weight.error().message;
  EXPECT_EQ(weight->codes, nullptr);
  EXPECT_EQ(row_of(weight->floats, 0)[1], 0.01f);
}

}  // namespace
}  // namespace ctk::graph::hf::test

#include "graph/gguf/container.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <limits>

#include "core/file.h"
#include "graph/gguf/write.h"
#include "tests/graph/gguf/small_file.h"

namespace ctk::graph::gguf {
namespace {

using test::Bytes;
using test::header;
using test::parse;
using test::small_file;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

// The error of a file that must be refused.
std::string refusal(const std::string& text) {
  const auto file = parse(text);
  EXPECT_FALSE(file.has_value());
  return file ? "" : file.error().message;
}

TEST(GgufContainer, ReadsEveryValueType) {
  const auto file = parse(small_file());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->keys().size(), 15u);
  EXPECT_EQ(file->text("general.architecture").value(), "llama");
  EXPECT_EQ(file->integer("n.u8").value(), 200u);
  EXPECT_EQ(file->integer("n.u16").value(), 60000u);
  EXPECT_EQ(file->integer("n.u32").value(), 4000000000u);
  EXPECT_EQ(file->integer("n.u64").value(), std::uint64_t{1} << 63);
  EXPECT_EQ(file->real("n.i8").value(), -3.0);
  EXPECT_EQ(file->real("n.i16").value(), -300.0);
  EXPECT_EQ(file->real("n.f32").value(), 1.5);
  EXPECT_EQ(file->real("n.f64").value(), 0.25);
  EXPECT_TRUE(file->truth("n.bool").value());
  EXPECT_EQ(file->texts("words").value(), (std::vector<std::string_view>{"a", "", "\xc4\xa0xyz"}));
  EXPECT_EQ(file->reals("scores").value(), (std::vector<float>{0.5f, -1.0f}));
  const std::vector<MetadataValue> rows = nested(*file->find("rows"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].count, 2u);
  EXPECT_EQ(rows[1].element_type, ValueType::boolean);
}

TEST(GgufContainer, TensorsHaveRowsLast) {
  const auto file = parse(small_file());
  ASSERT_TRUE(file.has_value());
  const TensorInfo* matrix = file->find_tensor("matrix");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->shape, (Shape{2, 32}));
  const auto floats = file->floats(*matrix);
  ASSERT_TRUE(floats.has_value());
  EXPECT_EQ(floats->values<float>()[1], 1 - 8);        // row 0, byte 1: low nibble 1
  EXPECT_EQ(floats->values<float>()[32 + 16], 1 - 8);  // row 1, byte 0x10: high nibble 1
  EXPECT_EQ(file->floats(*file->find_tensor("last"))->values<float>()[2], 2.0f);
  EXPECT_EQ(file->floats(*file->find_tensor("norm"))->values<float>()[3], 3.0f);
  EXPECT_EQ(file->find_tensor("nothing"), nullptr);
}

TEST(GgufContainer, AccessorsNameKeyExpectedAndFound) {
  const auto file = parse(small_file());
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->integer("n.i32").error().message,
            "key \"n.i32\": expected an integer of at least 0, found -70000. Convert the model to GGUF again");
  for (const auto& message : {file->integer("n.none").error().message, file->integer("n.f32").error().message,
                              file->text("n.u8").error().message, file->texts("scores").error().message,
                              file->real("words").error().message, file->integers("words").error().message,
                              file->reals("rows").error().message, file->truth("n.u8").error().message}) {
    EXPECT_NE(message.find("expected a"), std::string::npos) << message;
    EXPECT_NE(message.find("found "), std::string::npos) << message;
  }
}

TEST(GgufContainer, RefusesEveryCut) {
  const std::string whole = small_file();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto file = parse(whole.substr(0, length));
    ASSERT_FALSE(file.has_value()) << "cut to " << length << " bytes";
    ASSERT_FALSE(file.error().message.empty());
  }
  EXPECT_TRUE(parse(whole + std::string(100, 'x')).has_value());
}

TEST(GgufContainer, RefusesOtherVersionsAndMagic) {
  EXPECT_NE(refusal("GGML" + small_file().substr(4)).find("found \"GGML\""), std::string::npos);
  EXPECT_NE(refusal(header(0, 0, 1).text).find("version 2 or 3, found 1"), std::string::npos);
  EXPECT_NE(refusal(header(0, 0, 4).text).find("found 4"), std::string::npos);
  EXPECT_NE(refusal(header(0, 0, 0x03000000).text).find("big-endian"), std::string::npos);
  EXPECT_TRUE(parse(header(0, 0, 2).text).has_value());
}

TEST(GgufContainer, RefusesCountsPastTheFile) {
  for (std::uint64_t lie :
       {kHuge, kHuge - 7, std::uint64_t{1} << 60, kHuge / 13 + 1, kHuge / 24 + 1, std::uint64_t{100}}) {
    EXPECT_NE(refusal(header(lie, 0).text + std::string(160, 'k')).find("expected counts that fit"), std::string::npos);
    EXPECT_NE(refusal(header(0, lie).text + std::string(160, 'k')).find("expected counts that fit"), std::string::npos);
    Bytes longer = header(0, 1).key("s", 8).put(lie);
    EXPECT_NE(
        refusal(longer.text + std::string(20, 's')).find("expected " + std::to_string(lie) + " bytes of a string"),
        std::string::npos);
    for (std::uint32_t element : {0u, 7u, 8u, 9u, 12u}) {
      Bytes array = header(0, 1).key("a", 9).put(element).put(lie);
      EXPECT_NE(refusal(array.text + std::string(40, '\0')).find("found a count of " + std::to_string(lie)),
                std::string::npos)
          << element;
    }
    Bytes name = header(0, 1).put(lie);
    EXPECT_NE(refusal(name.text + std::string(40, 'n')).find("bytes of a key"), std::string::npos);
  }
}

TEST(GgufContainer, RefusesBadValues) {
  EXPECT_NE(refusal(header(0, 1).key("t", 13).put(0).put(0).text).find("value type of 0..12, found 13"),
            std::string::npos);
  EXPECT_NE(refusal(header(0, 1).key("b", 7).put(std::uint8_t{2}).text).find("bool of 0 or 1, found 2"),
            std::string::npos);
  EXPECT_NE(refusal(header(0, 1).key("", 0).put(0).text).find("1 to 65535 bytes, found 0"), std::string::npos);
  EXPECT_NE(refusal(header(0, 1).key(std::string(70000, 'k'), 0).put(0).text).find("found 70000"), std::string::npos);
  EXPECT_NE(refusal(header(0, 2).key("k", 0).put('a').key("k", 0).put('b').text).find("\"k\": expected every key once"),
            std::string::npos);
  Bytes deep = header(0, 1).key("deep", 9);
  for (int i = 0; i < 9; ++i) deep.put(std::uint32_t{9}).put(std::uint64_t{1});
  EXPECT_NE(refusal(deep.put(std::uint32_t{0}).put(std::uint64_t{0}).text).find("nested at most 8"), std::string::npos);
}

TEST(GgufContainer, HoldsAlignmentToPowersOfTwo) {
  for (std::uint32_t wrong : {0u, 3u, 24u, 0xffffffffu})
    EXPECT_NE(refusal(header(0, 1).key("general.alignment", 4).put(wrong).text).find("power of two"),
              std::string::npos);
  EXPECT_NE(refusal(header(0, 1).key("general.alignment", 10).put(std::uint64_t{32}).text).find("found u64 32"),
            std::string::npos);
  Bytes wide = header(1, 1).key("general.alignment", 4).put(std::uint32_t{128}).tensor("t", {1}, 0, 128).pad(128);
  EXPECT_TRUE(parse(wide.text + std::string(132, '\0')).has_value());
  // 2^31 is a power of two; the data would start past the end.
  Bytes far = header(1, 1).key("general.alignment", 4).put(std::uint32_t{1} << 31).tensor("t", {1}, 0, 0);
  EXPECT_NE(refusal(far.text + std::string(160, '\0')).find("found 0 bytes of data"), std::string::npos);
}

std::string one_tensor(std::vector<std::uint64_t> dims, std::uint32_t type, std::uint64_t offset = 0) {
  return header(1, 0).tensor("t", std::move(dims), type, offset).pad(32).text + std::string(160, '\0');
}

TEST(GgufContainer, RefusesTensorsThatLie) {
  const std::uint64_t wrapping = (std::uint64_t{1} << 42) + 1;  // times 2^22 wraps to 4194304
  EXPECT_NE(refusal(one_tensor({wrapping, 1u << 22}, 0)).find("more than 2^48 elements"), std::string::npos);
  EXPECT_NE(refusal(one_tensor({kHuge}, 0)).find("dimensions of 1 to 2^48"), std::string::npos);
  EXPECT_NE(refusal(one_tensor({0}, 0)).find("dimensions of 1 to 2^48, found 0"), std::string::npos);
  EXPECT_NE(refusal(one_tensor(std::vector<std::uint64_t>(9, 1), 0)).find("at most 4 dimensions, found 9"),
            std::string::npos);
  EXPECT_NE(refusal(one_tensor({1}, 99)).find("found type 99"), std::string::npos);
  EXPECT_NE(refusal(one_tensor({1}, 0, kHuge - 31)).find("found 160 bytes of data"), std::string::npos);
  EXPECT_NE(refusal(one_tensor({1}, 0, 4)).find("multiple of 32, found 4"), std::string::npos);
  EXPECT_NE(refusal(one_tensor({172, 64}, 2)).find("found a row length of 172"), std::string::npos);
  EXPECT_NE(refusal(one_tensor({64, 172}, 12)).find("Q4_K blocks of 256, found a row length of 64"), std::string::npos);
  EXPECT_NE(refusal(one_tensor({std::uint64_t{1} << 48}, 28)).find("bytes of data"), std::string::npos);
  EXPECT_TRUE(parse(one_tensor({40}, 0)).has_value());
  EXPECT_FALSE(parse(one_tensor({41}, 0)).has_value());
  EXPECT_TRUE(parse(one_tensor({}, 0)).has_value());
}

TEST(GgufContainer, RefusesSharedNamesAndPlaces) {
  const std::string data(160, '\0');
  EXPECT_NE(refusal(header(2, 0).tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).pad(32).text + data)
                .find("\"t\": expected every tensor once"),
            std::string::npos);
  EXPECT_NE(refusal(header(2, 0).tensor("b", {9}, 0, 32).tensor("a", {9}, 0, 0).pad(32).text + data)
                .find("\"a\" and \"b\": expected places of their own, found that they overlap at offset 32"),
            std::string::npos);
  EXPECT_NE(refusal(header(1, 0).tensor(std::string(65, 'n'), {1}, 0, 0).pad(32).text + data).find("found 65"),
            std::string::npos);
}

TEST(GgufWrite, WhatIsWrittenReadsTheSame) {
  const auto source = parse(small_file());
  ASSERT_TRUE(source.has_value());
  Metadata metadata;
  for (std::string_view key : source->keys()) metadata.copy(key, *source->find(key));
  metadata.set_u32("new.u32", 7);
  metadata.set_f32("new.f32", 0.5f);
  metadata.set_truth("new.bool", true);
  metadata.set_text("new.text", "word");
  metadata.set_texts("new.texts", std::vector<std::string>{"x", ""});
  metadata.set_i32s("new.i32s", std::vector<std::int32_t>{-1, 5});
  metadata.set_f32s("new.f32s", std::vector<float>{0.25f});
  std::vector<TensorToWrite> tensors;
  for (const TensorInfo& tensor : source->tensors()) {
    tensors.push_back(
        {std::string(tensor.name), tensor.type, tensor.shape, [bytes = tensor.bytes](const Sink& sink) -> Status {
           CTK_CHECK(sink(bytes.first(1)));
           return sink(bytes.subspan(1));
         }});
  }
  std::string text;
  const auto append = [&](std::span<const std::byte> piece) -> Status {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  };
  ASSERT_TRUE(write(metadata, tensors, append).has_value());
  EXPECT_EQ(text.size(), written_bytes(metadata, tensors));
  const auto back = parse(text);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  ASSERT_EQ(back->keys().size(), source->keys().size() + 7);
  for (std::string_view key : source->keys()) {
    const MetadataValue &a = *source->find(key), &b = *back->find(key);
    EXPECT_EQ(a.type, b.type);
    EXPECT_TRUE(std::ranges::equal(a.bytes, b.bytes)) << key;
  }
  EXPECT_EQ(back->integers("new.i32s").value(), (std::vector<std::int64_t>{-1, 5}));
  EXPECT_EQ(back->texts("new.texts").value(), (std::vector<std::string_view>{"x", ""}));
  for (const TensorInfo& tensor : source->tensors()) {
    const TensorInfo* same = back->find_tensor(tensor.name);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(same->bytes, tensor.bytes));
  }
}

TEST(GgufWrite, RefusesWhatNoReaderWouldTake) {
  const Sink nowhere = [](std::span<const std::byte>) { return Status(); };
  const auto content = [](const Sink& sink) { return sink({}); };
  const BlockType* q4 = find_block_type("Q4_0");
  const auto refused = [&](std::vector<TensorToWrite> tensors) {
    const Status status = write({}, tensors, nowhere);
    return status ? std::string() : status.error().message;
  };
  EXPECT_NE(refused({{"a", q4, {64, 172}, content}}).find("found shape [64,172]"), std::string::npos);
  EXPECT_NE(refused({{"a", q4, {32}, content}}).find("expected 18 bytes to write, found 0"), std::string::npos);
  EXPECT_NE(refused({{std::string(65, 'a'), q4, {32}, content}}).find("found 65 bytes"), std::string::npos);
  Metadata twice;
  twice.set_u32("k", 1);
  twice.set_u32("k", 2);
  EXPECT_NE(write(twice, {}, nowhere).error().message.find("\"k\" was set twice"), std::string::npos);
}

TEST(GgufWrite, LeavesNothingBehindOnFailure) {
  const std::string path = ::testing::TempDir() + std::to_string(::getpid()) + "_gguf_failed.gguf";
  const auto failing = [](const Sink&) { return Status(input_error("no more")); };
  EXPECT_FALSE(write_file({}, {{"a", find_block_type("F32"), {1}, failing}}, path).has_value());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".part." + std::to_string(::getpid())));
}

TEST(GgufContainer, OpenNamesTheFile) {
  const std::string path = ::testing::TempDir() + std::to_string(::getpid()) + "_gguf_b c.gguf";
  ASSERT_TRUE(ctk::write_file(path, small_file()).has_value());
  EXPECT_TRUE(File::open(path).has_value());
  ASSERT_TRUE(ctk::write_file(path, std::string_view("GG")).has_value());
  EXPECT_EQ(File::open(path).error().message.find(path + ": "), 0u);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ctk::graph::gguf

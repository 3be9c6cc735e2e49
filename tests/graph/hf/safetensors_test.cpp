#include "graph/hf/safetensors.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/graph/hf/write_checkpoint.h"
#include "tests/support/seed.h"

namespace ctk::graph::hf::test {
namespace {

constexpr const char* kPlain = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                               R"("b":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}})";

class Safetensors : public Folder {
 protected:
  Result<SafetensorsFile> open(const std::string& header, std::size_t data_bytes) {
    write("m.safetensors", file_of(header, std::string(data_bytes, '\x01')));
    return SafetensorsFile::open(path("m.safetensors"));
  }
  // The header is refused, and the message names the file and holds every word.
  void expect_refused(const std::string& header, const std::vector<std::string>& words, std::size_t data_bytes = 16) {
    expect_error(open(header, data_bytes), words);
  }
  static std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  }
};

TEST_F(Safetensors, MapsTensorsWithoutCopying) {
  const auto file = open(kPlain, 16);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto a = file->tensor("a"), again = file->tensor("a");
  ASSERT_TRUE(a.has_value() && again.has_value());
  EXPECT_EQ(a->shape(), Shape{2});
  EXPECT_EQ(a->data(), again->data());
  EXPECT_EQ(file->tensor("b")->values<std::int64_t>()[0], 0x0101010101010101);
}

TEST_F(Safetensors, TensorsOutliveTheFileObjectAndTheName) {
  Tensor a;
  {
    const auto file = open(kPlain, 16);
    ASSERT_TRUE(file.has_value());
    a = *file->tensor("a");
  }
  std::filesystem::remove(path("m.safetensors"));
  EXPECT_EQ(static_cast<const unsigned char*>(a.data())[7], 1);
}

TEST_F(Safetensors, CopiesWhatLiesUnaligned) {
  // The byte tensor before it leaves the float at an odd address.
  const auto file = open(R"({"c":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("w":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                         5);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->tensor("w")->data()) % 4, 0u);
  EXPECT_EQ(static_cast<const unsigned char*>(file->tensor("w")->data())[0], 1);
}

TEST_F(Safetensors, EmptyTensorsAndNoTensorsAreFine) {
  EXPECT_TRUE(open(R"({"w":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})", 0).has_value());
  EXPECT_TRUE(open("{}", 0).has_value());
  EXPECT_TRUE(open(R"({"__metadata__":{"format":"pt"}}  )", 0).has_value());
}

// FAULTS B095: header length 2^64 - 1, 2^40, 0; offsets [8,4], [-4,4], [0,4] for F32[1000,1000]; overflow; 7 bytes.
TEST_F(Safetensors, RefusesLengthsThatLie) {
  const std::string whole = file_of(kPlain, std::string(16, '\0'));
  for (const std::uint64_t length : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 40,
                                     std::uint64_t{0}, std::uint64_t{1}, static_cast<std::uint64_t>(whole.size())}) {
    std::string lying = whole;
    for (std::size_t i = 0; i < 8; ++i) lying[i] = static_cast<char>(length >> (8 * i));
    write("m.safetensors", lying);
    expect_error(SafetensorsFile::open(path("m.safetensors")),
                 {"m.safetensors: header", "found " + std::to_string(length)});
  }
}

TEST_F(Safetensors, RefusesHeadersOver100Megabytes) {
  std::string lying(8, '\0');
  const std::uint64_t length = 100'000'001;
  for (std::size_t i = 0; i < 8; ++i) lying[i] = static_cast<char>(length >> (8 * i));
  write("m.safetensors", lying);
  std::filesystem::resize_file(path("m.safetensors"), 8 + length);  // sparse: takes no room
  expect_error(SafetensorsFile::open(path("m.safetensors")), {"at most 100000000", "found 100000001"});
}

TEST_F(Safetensors, RefusesAFileCutAnywhere) {
  const std::string whole = file_of(kPlain, std::string(16, '\x01'));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write("m.safetensors", whole.substr(0, size));
    const auto file = SafetensorsFile::open(path("m.safetensors"));
    ASSERT_FALSE(file.has_value()) << size;
    EXPECT_EQ(file.error().code, ErrorCode::input);
  }
}

TEST_F(Safetensors, RefusesOffsetsThatDisagreeWithTheShape) {
  expect_refused(entry("\"F32\"", "[1]", "[8,4]"), {"tensor \"w\": data_offsets", "[8,4]"});
  expect_refused(entry("\"F32\"", "[2]", "[-4,4]"), {"tensor \"w\": data_offsets", "[-4,4]"});
  expect_refused(entry("\"F32\"", "[1000,1000]", "[0,4]"), {"4000000 bytes", "found 4"});
  expect_refused(entry("\"F32\"", "[5]", "[0,20]"), {"<= 16", "[0,20]"});
  expect_refused(entry("\"F32\"", "[1]", "[18446744073709551612,18446744073709551615]"), {"<= 16"});
  expect_refused(entry("\"F32\"", "[1]", "[0,18446744073709551620]"), {"two unsigned numbers"});
  expect_refused(entry("\"F32\"", "[1]", "[0.0,4.0]"), {"two unsigned numbers"});
  expect_refused(entry("\"F32\"", "[1]", "[0,4,8]"), {"two unsigned numbers"});
  expect_refused(entry("\"BF16\"", "[]", "[0,4]"), {"2 bytes for BF16 []", "found 4"});
}

TEST_F(Safetensors, RefusesShapesWhoseProductOverflows) {
  expect_refused(entry("\"F32\"", "[4294967296,4294967296]", "[0,0]"), {"tensor \"w\": shape"});
  expect_refused(entry("\"F32\"", "[281474976710656,281474976710656,0]", "[0,0]"), {"tensor \"w\""});
  expect_refused(entry("\"F32\"", "[18446744073709551615]", "[0,4]"), {"list of at most 32 sizes"});
  expect_refused(entry("\"F32\"", "[-1]", "[0,4]"), {"list of at most 32 sizes", "[-1]"});
  expect_refused(entry("\"F32\"", "[\"1\"]", "[0,4]"), {"list of at most 32 sizes"});
  expect_refused(entry("\"F32\"", "4", "[0,16]"), {"list of at most 32 sizes", "found 4"});
}

TEST_F(Safetensors, RefusesTensorsThatShareBytes) {
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                 R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                 {"tensor \"b\"", "inside \"a\""});
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                 R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                 {"tensor \"b\"", "inside \"a\""});
}

TEST_F(Safetensors, RefusesHeadersThatAreNoTable) {
  expect_refused("[]", {"header", "object"});
  expect_refused("{\"w\":", {"header", "JSON"});
  expect_refused("{\"w\":7}", {"tensor \"w\"", "found 7"});
  expect_refused(R"({"w":{"dtype":"F32","shape":[1]}})", {"data_offsets", "found none"});
  expect_refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1}})", {"alone"});
  expect_refused(entry("\"F31\"", "[1]", "[0,4]"), {"dtype", "found \"F31\""});
  expect_refused(entry("4", "[1]", "[0,4]"), {"dtype", "found 4"});
  expect_refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                 {"\"w\" twice"});
  expect_refused(R"({"w":{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}})", {"\"dtype\" twice"});
  expect_refused("{\"\xff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", {"header", "UTF-8"});
}

TEST_F(Safetensors, RefusesDeepNestingWithoutFallingOver) {
  expect_refused("{\"w\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}", {"nested at most 3"});
}

TEST_F(Safetensors, EightBitFloatsAreCarriedAndRefusedByName) {
  const auto file = open(R"({"w":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  expect_error(file->tensor("w"), {"tensor \"w\"", "found F8_E4M3"});
}

// Whatever bytes of a header are changed: a clean error, or tensors whose every byte can be read.
TEST_F(Safetensors, AnyChangedByteIsRefusedOrHarmless) {
  const std::uint64_t seed = ctk::test::test_seed();
  std::mt19937_64 random(seed);
  const std::string whole = file_of(kPlain, std::string(16, '\x01'));
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string changed = whole;
    for (std::uint64_t i = 0; i <= random() % 3; ++i) {
      const char letters[] = "0123456789-.,:[]{}\"\\abF";
      const std::size_t at = random() % changed.size();
      changed[at] = random() % 4 == 0 ? static_cast<char>(random()) : letters[random() % (sizeof letters - 1)];
    }
    write("m.safetensors", changed);
    const auto file = SafetensorsFile::open(path("m.safetensors"));
    if (!file) {
      ASSERT_EQ(file.error().code, ErrorCode::input) << "seed " << seed << ", round " << round;
      continue;
    }
    ++opened;
    for (const auto& [name, stored] : file->tensors()) {
      const auto tensor = file->tensor(name);
      if (!tensor) continue;
      unsigned sum = 0;
      for (std::byte b : tensor->raw()) sum += static_cast<unsigned>(b);
      ASSERT_LE(sum, 255u * 16u) << "seed " << seed << ", round " << round;
    }
  }
  EXPECT_GT(opened, 0);
}

}  // namespace
}  // namespace ctk::graph::hf::test

#include "core/hash.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/file.h"

namespace ctk {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// FIPS 180-2, appendix B, and the well-known digest of nothing.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_of(bytes_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of(bytes_of(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, ReadsFiles) {
  const std::string path = std::filesystem::temp_directory_path() / ("ctk_hash_" + std::to_string(::getpid()));
  ASSERT_TRUE(write_file(path, "abc"));
  EXPECT_EQ(sha256_of_file(path).value(), sha256_of(bytes_of("abc")));
  std::filesystem::remove(path);
  EXPECT_FALSE(sha256_of_file(path).has_value());
}

TEST(Hash64, GivesThePublishedHashOfNothing) {
  EXPECT_EQ(hash64({}), 0x2d06800538d394c2u);
}

TEST(Hash64, IsTheSameForMappedFilesInPieces) {
  const std::string path = std::filesystem::temp_directory_path() / ("ctk_hash64_" + std::to_string(::getpid()));
  std::string text;
  for (int i = 0; text.size() < std::size_t{5} << 19; ++i) text += std::to_string(i);  // two pieces and a half
  ASSERT_TRUE(write_file(path, text));
  const MappedFile file = MappedFile::open(path).value();
  EXPECT_EQ(hash64_of_mapped(file.bytes()), hash64(bytes_of(text)));
  EXPECT_EQ(hash64_of_mapped(file.bytes().subspan(64)), hash64(bytes_of(text).subspan(64)));
  EXPECT_EQ(hash64_of_mapped({}), hash64({}));
  EXPECT_EQ(file.text(), text);
  std::filesystem::remove(path);
}

std::string fingerprint(std::initializer_list<std::string_view> parts) {
  Fingerprint print;
  for (std::string_view part : parts) print.add(part);
  return print.hex();
}

TEST(Fingerprint, FramesItsParts) {
  EXPECT_EQ(fingerprint({"ab", "c"}).size(), 32u);
  EXPECT_EQ(fingerprint({"ab", "c"}), fingerprint({"ab", "c"}));
  EXPECT_NE(fingerprint({"ab", "c"}), fingerprint({"a", "bc"}));
  EXPECT_NE(fingerprint({"ab", "c"}), fingerprint({"abc"}));
  EXPECT_NE(fingerprint({}), fingerprint({""}));
}

TEST(Fingerprint, CanBeReadAndAddedTo) {
  Fingerprint print;
  print.add(std::uint64_t{1});
  const std::string first = print.hex();
  EXPECT_EQ(print.hex(), first);
  print.add(std::uint64_t{2});
  EXPECT_NE(print.hex(), first);
}

}  // namespace
}  // namespace ctk

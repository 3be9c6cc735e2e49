#include <gtest/gtest.h>

#include <cstring>

#include "data/npy.h"
#include "data/source.h"
#include "data/zip.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using namespace test;

const std::vector<InputInfo> kRow3 = {{"x", DType::f32, {3}}};

Result<std::unique_ptr<Source>> open(const std::string& path) {
  SourceSpec spec;
  spec.path = path;
  return open_source(spec, kRow3);
}

std::vector<float> all_floats(const Source& source) {
  std::vector<std::size_t> indices(source.count());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  const Batch batch = source.read_batch(indices).value();
  const auto values = batch.inputs[0].values<float>();
  return {values.begin(), values.end()};
}

std::string swapped(const std::string& bytes, std::size_t item) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += item)
    out.append(bytes.rbegin() + static_cast<long>(bytes.size() - i - item),
               bytes.rbegin() + static_cast<long>(bytes.size() - i));
  return out;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

const std::vector<float> kSix = {1, 2, 3, 4, 5, 6};

TEST(Npz, ReadsStoredDeflatedAnd64BitEntriesAlike) {
  TempFolder folder;
  for (bool deflated : {false, true})
    for (bool zip64 : {false, true}) {
      ZipItem item{"x.npy", npy<float>({2, 3}, kSix), deflated, {}, {}, {}, 0, {}, zip64};
      auto source = open(folder.write("a.npz", zip_of({item})));
      ASSERT_TRUE(source) << source.error().message;
      EXPECT_EQ(all_floats(**source), kSix);
    }
}

TEST(Npz, MapsAStoredAlignedEntryAndCopiesAMisalignedOne) {
  TempFolder folder;
  for (std::size_t pad : {0u, 1u, 2u, 3u}) {  // some of these lengths put the elements off a multiple of 4
    auto source =
        open(folder.write("a.npz", zip_of({{std::string(4 + pad, 'n'), "."}, {"x.npy", npy<float>({2, 3}, kSix)}})));
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ(all_floats(**source), kSix);
  }
}

TEST(Npy, ReadsFortranOrderAndBigEndian) {
  TempFolder folder;
  // columns of [[1,2,3],[4,5,6]]
  auto fortran = open(folder.write("f.npy", npy_header("<f4", "(2, 3)", true) + raw<float>({1, 4, 2, 5, 3, 6})));
  ASSERT_TRUE(fortran) << fortran.error().message;
  EXPECT_EQ(all_floats(**fortran), kSix);
  auto big = open(folder.write("b.npy", npy_header(">f4", "(2, 3)") + swapped(raw(kSix), 4)));
  ASSERT_TRUE(big) << big.error().message;
  EXPECT_EQ(all_floats(**big), kSix);
  auto both =
      open(folder.write("c.npy", npy_header(">f4", "(2, 3)", true) + swapped(raw<float>({1, 4, 2, 5, 3, 6}), 4)));
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(all_floats(**both), kSix);
}

TEST(Npy, ReadsVersion2Headers) {
  TempFolder folder;
  std::string bytes = npy<float>({2, 3}, kSix);
  bytes[6] = '\2';
  bytes.insert(10, 2, '\0');  // the length takes four bytes
  auto source = open(folder.write("a.npy", bytes));
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(all_floats(**source), kSix);
}

TEST(NpyErrors, RefusesPickledObjectsStructsAndOddTypes) {
  TempFolder folder;
  expect_error(open(folder.write("a.npz", zip_of({{"x.npy", npy_header("|O", "(2,)") + std::string(16, 'p')}}))),
               ErrorCode::input, {"'x'", "'|O'", "pickled Python objects", "refused"});
  std::string structs = npy_header("@", "(2,)") + std::string(16, 'p');
  structs.replace(structs.find("'@'"), 3, "[('a', '<f4')]");
  expect_error(open(folder.write("b.npy", structs)), ErrorCode::input, {"b.npy"});
  for (const char* descr : {"<c8", "<M8", "<f16", "<f", "f4", "<i3", "<f4x", ""})
    expect_error(open(folder.write("c.npy", npy_header(descr, "(2,)") + std::string(16, 'p'))), ErrorCode::input,
                 {"c.npy", "real numbers"});
}

TEST(NpyErrors, RefusesShapesThatDisagreeWithTheBytes) {
  TempFolder folder;
  const std::string values = raw(kSix);
  for (const char* shape :
       {"(3, 3)", "(1, 3)", "(4611686018427387904, 3)", "(4294967296, 4294967296, 3)", "(281474976710656, 3)", "()"})
    expect_error(open(folder.write("a.npy", npy_header("<f4", shape) + values)), ErrorCode::input,
                 {"a.npy", "shape", "24 bytes"});
  for (const char* shape : {"(-2, 3)", "(2, 3", "(2; 3)", "2", "(99999999999999999999, 3)", "(2, 'a')"})
    expect_error(open(folder.write("a.npy", npy_header("<f4", shape) + values)), ErrorCode::input, {"a.npy", "header"});
  expect_error(open(folder.write("a.npy", npy_header("<f4", "(2, 3)") + values.substr(1))), ErrorCode::input,
               {"23 bytes", "truncated"});
}

TEST(NpyErrors, SurvivesEveryTruncationOfAFile) {
  TempFolder folder;
  const std::string whole = npy<float>({2, 3}, kSix);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(open(folder.write("a.npy", whole.substr(0, length)))) << length;
}

TEST(NpyErrors, RefusesAHeaderLengthPastTheFile) {
  TempFolder folder;
  std::string bytes = npy<float>({2, 3}, kSix);
  bytes[8] = bytes[9] = '\xff';
  expect_error(open(folder.write("a.npy", bytes)), ErrorCode::input, {"header is damaged"});
}

TEST(ZipErrors, SurvivesEveryTruncationOfAnArchive) {
  TempFolder folder;
  const std::string whole = zip_of({{"x.npy", npy<float>({2, 3}, kSix), true}});
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(open(folder.write("a.npz", whole.substr(0, length)))) << length;
}

TEST(ZipErrors, SurvivesEveryChangedByte) {
  TempFolder folder;
  const std::string whole = zip_of({{"x.npy", npy<float>({2, 3}, kSix), true}});
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int flip : {0x01, 0x80, 0xff}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      auto source = open(folder.write("a.npz", changed));
      // Dates and the unread copies of sizes may change unnoticed; the numbers may not.
      if (source) {
        EXPECT_EQ(all_floats(**source), kSix) << i;
      }
    }
}

TEST(ZipErrors, RefusesSizesThatDoNotFitTheContent) {
  TempFolder folder;
  const std::string content = npy<float>({2, 3}, kSix);
  ZipItem item{"x.npy", content, true};
  item.claimed_bytes = 0xfffffffe;  // about 4 GiB from some 100 bytes: refused before any memory is asked for
  expect_error(open(folder.write("a.npz", zip_of({item}))), ErrorCode::input,
               {"'x.npy'", "4294967294 bytes", "cannot be"});
  item.claimed_bytes = static_cast<std::uint32_t>(content.size() + 4);
  expect_error(open(folder.write("b.npz", zip_of({item}))), ErrorCode::input, {"'x.npy'", "does not inflate"});
  item.claimed_bytes.reset();
  item.claimed_packed = 0x7fffffff;
  expect_error(open(folder.write("c.npz", zip_of({item}))), ErrorCode::input, {"'x.npy'", "more than the file has"});
  item.claimed_packed.reset();
  item.claimed_crc = 1;
  expect_error(open(folder.write("d.npz", zip_of({item}))), ErrorCode::input, {"'x.npy'", "checksum"});
  item = {"x.npy", content, false};
  item.claimed_bytes = 4096;
  expect_error(open(folder.write("e.npz", zip_of({item}))), ErrorCode::input, {"'x.npy'", "4096 bytes"});
}

// A bomb: the archive's sizes agree with each other, the array header does not with them.
TEST(ZipErrors, ChecksTheInflatedSizeAgainstTheArrayHeader) {
  TempFolder folder;
  const std::string bomb = npy_header("<f4", "(2, 3)") + std::string(64 << 20, '\0');
  const std::string path = folder.write("a.npz", zip_of({{"x.npy", bomb, true}}));
  expect_error(open(path), ErrorCode::input, {"[2,3]", "67108864 bytes"});
  ZipItem longer{"x.npy", npy<float>({2, 3}, kSix) + "more", true};
  longer.claimed_bytes = static_cast<std::uint32_t>(longer.content.size() - 4);
  expect_error(open(folder.write("b.npz", zip_of({longer}))), ErrorCode::input, {"'x.npy'", "holds more"});
}

TEST(ZipErrors, RefusesEncryptedDoubledAndOddlyPackedEntries) {
  TempFolder folder;
  const std::string content = npy<float>({2, 3}, kSix);
  ZipItem item{"x.npy", content};
  item.flags = 1;
  expect_error(open(folder.write("a.npz", zip_of({item}))), ErrorCode::input, {"encrypted"});
  item.flags = 0;
  item.method = 12;
  expect_error(open(folder.write("b.npz", zip_of({item}))), ErrorCode::input, {"method 12"});
  item.method.reset();
  expect_error(open(folder.write("c.npz", zip_of({item, item}))), ErrorCode::input, {"'x.npy'", "twice"});
}

TEST(ZipErrors, RefusesADirectoryThatClaimsMoreEntriesThanItHolds) {
  TempFolder folder;
  std::string bytes = zip_of({{"x.npy", npy<float>({2, 3}, kSix)}});
  bytes.replace(bytes.size() - 14, 4, little(0xfffe, 2) + little(0xfffe, 2));  // both counts
  expect_error(open(folder.write("a.npz", bytes)), ErrorCode::input, {"65534 entries", "damaged"});
}

TEST(ZipErrors, RefusesAnArchiveWithoutTheArray) {
  TempFolder folder;
  expect_error(open(folder.write("a.npz", zip_of({{"readme.txt", "no arrays here"}}))), ErrorCode::input,
               {"input 'x'", "no arrays"});
  expect_error(open(folder.write("b.npz", zip_of({}))), ErrorCode::input, {"input 'x'", "no arrays"});
}

}  // namespace
}  // namespace ctk::data

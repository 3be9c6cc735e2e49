#include "core/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/mapped_pages.h"

namespace ctk {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string name = (fs::temp_directory_path() / "ctk_file_test_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename());
    return found;
  }
  fs::path folder_;
};

TEST_F(FileTest, ReadsBackWhatItWrote) {
  ASSERT_TRUE(write_file(path("a"), "one\0two"));
  ASSERT_TRUE(write_file(path("a"), "three"));
  EXPECT_EQ(read_text(path("a")).value(), "three");
  EXPECT_EQ(names(), (std::vector<std::string>{"a"}));
}

TEST_F(FileTest, MapsAnEmptyFile) {
  ASSERT_TRUE(write_file(path("empty"), ""));
  const auto file = MappedFile::open(path("empty"));
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->bytes().empty());
  EXPECT_EQ(file->text(), "");
}

TEST_F(FileTest, MappingOutlivesTheName) {
  ASSERT_TRUE(write_file(path("a"), "old"));
  const MappedFile file = MappedFile::open(path("a")).value();
  ASSERT_TRUE(write_file(path("a"), "new text"));
  fs::remove(path("a"));
  EXPECT_EQ(file.text(), "old");
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(FileTest, ReleasedPagesNoLongerCountAndAreReadAgain) {
  constexpr std::size_t kBytes = std::size_t{48} << 20;
  ASSERT_TRUE(write_file(path("a"), std::string(kBytes, 'x')));
  const MappedFile file = MappedFile::open(path("a")).value();
  const auto sum = [&] {
    std::size_t total = 0;
    for (std::byte b : file.bytes()) total += static_cast<std::size_t>(b);
    return total;
  };
  ASSERT_EQ(sum(), kBytes * 'x');
  const std::size_t before = resident_bytes();
  release_pages(file.bytes().data() + 100, kBytes - 100);
  EXPECT_LT(resident_bytes() + kBytes / 2, before);
  EXPECT_EQ(sum(), kBytes * 'x');
}

TEST_F(FileTest, MemoryOfNoFileIsNotReleased) {
  std::vector<char> own(std::size_t{1} << 22, 'y');
  release_pages(own.data(), own.size());
  EXPECT_EQ(std::count(own.begin(), own.end(), 'y'), std::ptrdiff_t{1} << 22);
}

TEST_F(FileTest, SaysWhichFileIsMissing) {
  const auto file = MappedFile::open(path("missing"));
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, ErrorCode::input);
  EXPECT_NE(file.error().message.find(path("missing")), std::string::npos);
  EXPECT_NE(file.error().message.find("No such file"), std::string::npos);
}

TEST_F(FileTest, RefusesFoldersAndPipesWithoutWaiting) {
  EXPECT_FALSE(MappedFile::open(folder_.string()).has_value());
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(MappedFile::open(path("pipe")).has_value());
}

TEST_F(FileTest, LeavesNothingWithoutCommit) {
  ASSERT_TRUE(write_file(path("a"), "kept"));
  {
    FileWriter writer = FileWriter::create(path("a")).value();
    ASSERT_TRUE(writer.append(std::as_bytes(std::span("half", 4))));
  }
  EXPECT_EQ(read_text(path("a")).value(), "kept");
  EXPECT_EQ(names(), (std::vector<std::string>{"a"}));
}

TEST_F(FileTest, AppendsInOrder) {
  FileWriter writer = FileWriter::create(path("a")).value();
  for (const char* part : {"ab", "", "cd"}) {
    ASSERT_TRUE(writer.append(std::as_bytes(std::span(part, std::string_view(part).size()))));
  }
  EXPECT_FALSE(fs::exists(path("a")));  // nobody sees a part of it
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(read_text(path("a")).value(), "abcd");
}

TEST_F(FileTest, FailureLeavesTheOldFileAndNoOther) {
  ASSERT_TRUE(write_file(path("a"), "kept"));
  // A limit on file sizes stands in for a full disk.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = write_file(path("a"), std::string(100000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::input);
  EXPECT_NE(status.error().message.find(path("a")), std::string::npos);
  EXPECT_EQ(read_text(path("a")).value(), "kept");
  EXPECT_EQ(names(), (std::vector<std::string>{"a"}));
}

TEST_F(FileTest, CannotReplaceAFolderAndLeavesNothingBeside) {
  fs::create_directory(path("folder"));
  ASSERT_FALSE(write_file(path("folder"), "text").has_value());
  EXPECT_EQ(names(), (std::vector<std::string>{"folder"}));
  EXPECT_FALSE(write_file(path("no/such/folder"), "text").has_value());
}

TEST_F(FileTest, KnowsTheSameFileThroughLinks) {
  ASSERT_TRUE(write_file(path("a"), "x"));
  ASSERT_TRUE(write_file(path("b"), "x"));
  fs::create_symlink(path("a"), path("link"));
  EXPECT_TRUE(is_same_file(path("a"), path("link")));
  EXPECT_TRUE(is_same_file(path("a"), path("./a")));
  EXPECT_FALSE(is_same_file(path("a"), path("b")));
  EXPECT_FALSE(is_same_file(path("a"), path("missing")));
}

}  // namespace
}  // namespace ctk

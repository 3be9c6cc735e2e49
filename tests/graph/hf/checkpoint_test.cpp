#include "graph/hf/checkpoint.h"

#include "tests/graph/hf/write_checkpoint.h"

namespace ctk::graph::hf::test {
namespace {

class CheckpointFolder : public Folder {
 protected:
  static constexpr const char* kIndex = "model.safetensors.index.json";
  void write_two_shards() const {
    write("s1.safetensors", file_of_tensors({{"a", {2}}}, '\x01'));
    write("s2.safetensors", file_of_tensors({{"b", {3}}}, '\x02'));
  }
  void write_index(const std::string& weight_map) const { write(kIndex, R"({"weight_map":)" + weight_map + "}"); }
  Result<Checkpoint> open() const { return Checkpoint::open(root_.string()); }
};

TEST_F(CheckpointFolder, ReadsOneFile) {
  write("model.safetensors", file_of_tensors({{"a", {2}}, {"b", {1, 3}}}));
  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(checkpoint->find("b")->shape, (Shape{1, 3}));
  expect_error(checkpoint->tensor("c"), {"tensor \"c\"", "found none"});
}

TEST_F(CheckpointFolder, FindsEachTensorInTheShardOfTheIndex) {
  write_two_shards();
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(static_cast<const char*>(checkpoint->tensor("a")->data())[0], 1);
  EXPECT_EQ(static_cast<const char*>(checkpoint->tensor("b")->data())[0], 2);
  EXPECT_EQ(checkpoint->paths(), (std::vector<std::string>{path("s1.safetensors"), path("s2.safetensors")}));
}

TEST_F(CheckpointFolder, FilesTheIndexDoesNotNameAreNotOpened) {
  write_two_shards();
  write("consolidated.safetensors", "no safetensors at all");
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  EXPECT_TRUE(open().has_value());
}

TEST_F(CheckpointFolder, RefusesAMissingShard) {
  write_two_shards();
  std::filesystem::remove(path("s2.safetensors"));
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  expect_error(open(), {"its 2 files", "\"s2.safetensors\"", "Download"});
}

TEST_F(CheckpointFolder, AStaleCopyInAnotherShardYieldsToTheIndex) {
  write("s1.safetensors", file_of_tensors({{"a", {2}}, {"b", {3}}}));
  write("s2.safetensors", file_of_tensors({{"b", {5}}}));
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensor("b")->shape(), (Shape{5}));
  ASSERT_EQ(checkpoint->notes().size(), 1u);
  EXPECT_EQ(checkpoint->notes()[0],
            "tensor \"b\" of \"s1.safetensors\" was passed over: the index names \"s2.safetensors\"");
}

TEST_F(CheckpointFolder, RefusesTwoCopiesThatTheIndexIsSilentAbout) {
  write("s1.safetensors", file_of_tensors({{"a", {2}}, {"b", {3}}}));
  write("s2.safetensors", file_of_tensors({{"b", {3}}, {"c", {1}}}));
  write_index(R"({"a":"s1.safetensors","c":"s2.safetensors"})");
  expect_error(open(), {"tensor \"b\"", "\"s1.safetensors\" and \"s2.safetensors\"", "stale"});
}

TEST_F(CheckpointFolder, RefusesAnIndexThatPromisesWhatIsNotThere) {
  write_two_shards();
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors","c":"s2.safetensors"})");
  expect_error(open(), {"tensor \"c\"", "\"s2.safetensors\"", "in no file"});
  write_index(R"({"a":"s2.safetensors","b":"s1.safetensors"})");
  expect_error(open(), {"tensor \"a\"", "expected in \"s2.safetensors\"", "found in \"s1.safetensors\""});
}

TEST_F(CheckpointFolder, RefusesIndexAndSingleFileTogether) {
  write_two_shards();
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  write("model.safetensors", file_of_tensors({{"a", {2}}}));
  expect_error(open(), {"found both", "stale"});
}

TEST_F(CheckpointFolder, RefusesAFolderWithoutWeights) {
  expect_error(open(), {"model.safetensors", "found neither"});
}

TEST_F(CheckpointFolder, RefusesFileNamesThatLeadElsewhere) {
  write_two_shards();
  for (const char* name : {"\"../s1.safetensors\"", "\"/s1.safetensors\"", "\"\"", "\"..\"", "7", "\"x/y\""}) {
    write_index(R"({"a":)" + std::string(name) + "}");
    expect_error(open(), {"tensor \"a\"", "the name of a file", name});
  }
}

TEST_F(CheckpointFolder, RefusesAnIndexThatIsNone) {
  write_index("{}");
  expect_error(open(), {"weight_map", "found {}"});
  write(kIndex, "{}");
  expect_error(open(), {"weight_map", "found none"});
  write(kIndex, "{\"weight_map\": {\"a\": ");
  expect_error(open(), {"JSON"});
  write_index(R"({"a":"s1.safetensors","a":"s2.safetensors"})");
  expect_error(open(), {"\"a\" twice"});
}

}  // namespace
}  // namespace ctk::graph::hf::test

#include "graph/onnx/external_data.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/graph/onnx/model_maker.h"

namespace ctk::graph::onnx::test {
namespace {

namespace fs = std::filesystem;

class OnnxExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("onnx_external_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "model" / "sub");
    write(folder_ / "secret.bin", floats({9, 9}));
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string floats(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }
  static void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  // x[2] + W[2], with W at `location`.
  ModelMaker model_at(const std::string& location, const std::string& offset = "", const std::string& length = "") {
    ModelMaker model;
    model.input("x", {2});
    model.output("y", {2});
    auto& W = model.tensor("W", {2}, 1);
    W.set_data_location(::onnx::TensorProto::EXTERNAL);
    const auto add = [&](const std::string& key, const std::string& value) {
      if (value.empty()) return;
      auto& entry = *W.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    add("location", location);
    add("offset", offset);
    add("length", length);
    model.node("Add", {"x", "W"}, {"y"});
    return model;
  }

  Result<Graph> read_at(const ModelMaker& model) {
    const fs::path path = folder_ / "model" / "m.onnx";
    write(path, model.bytes());
    return read_model(path.string());
  }

  static std::vector<float> weight(const Graph& graph) {
    const auto values = graph.value(*graph.find_value("W")).constant->values<float>();
    return {values.begin(), values.end()};
  }

  fs::path folder_;
};

TEST_F(OnnxExternalData, ReadsAtAnOffsetAlignedOrNot) {
  write(folder_ / "model" / "w.bin", "abcd" + floats({1, 2}));
  write(folder_ / "model" / "sub" / "w.bin", "abc" + floats({3, 4}));
  const auto aligned = read_at(model_at("w.bin", "4", "8"));
  ASSERT_TRUE(aligned.has_value()) << aligned.error().message;
  EXPECT_EQ(weight(*aligned), (std::vector<float>{1, 2}));
  const auto crooked = read_at(model_at("sub/w.bin", "3"));
  ASSERT_TRUE(crooked.has_value()) << crooked.error().message;
  EXPECT_EQ(weight(*crooked), (std::vector<float>{3, 4}));
}

// FAULTS B087: odd names, and another working directory.
TEST_F(OnnxExternalData, LooksBesideTheModelWhateverTheFoldersAreCalled) {
  const fs::path odd = folder_ / "модель 重み";
  fs::create_directories(odd);
  write(odd / "вес.bin", floats({5, 6}));
  write(odd / "a b.onnx", model_at("вес.bin").bytes());
  const auto absolute = read_model((odd / "a b.onnx").string());
  ASSERT_TRUE(absolute.has_value()) << absolute.error().message;
  EXPECT_EQ(weight(*absolute), (std::vector<float>{5, 6}));

  const fs::path before = fs::current_path();
  fs::current_path(odd);
  const auto relative = read_model("a b.onnx");
  fs::current_path(before);
  ASSERT_TRUE(relative.has_value()) << relative.error().message;
  EXPECT_EQ(weight(*relative), (std::vector<float>{5, 6}));
}

TEST_F(OnnxExternalData, HandsOutTheFilesItOpenedWithLinksFollowed) {
  write(folder_ / "model" / "sub" / "w.bin", floats({3, 4}));
  fs::create_symlink("sub/w.bin", folder_ / "model" / "inside.bin");
  write(folder_ / "model" / "m.onnx", model_at("inside.bin").bytes());
  std::vector<std::string> files{"left from before"};
  ASSERT_TRUE(read_model((folder_ / "model" / "m.onnx").string(), {}, &files).has_value());
  EXPECT_EQ(files, std::vector<std::string>{fs::canonical(folder_ / "model" / "sub" / "w.bin").string()});
}

TEST_F(OnnxExternalData, TakesWindowsSeparators) {
  write(folder_ / "model" / "sub" / "w.bin", floats({3, 4}));
  const auto graph = read_at(model_at("sub\\w.bin"));
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(weight(*graph), (std::vector<float>{3, 4}));
}

// FAULTS B091.
TEST_F(OnnxExternalData, RefusesLocationsThatLeadOutside) {
  fs::create_symlink(folder_ / "secret.bin", folder_ / "model" / "link.bin");
  fs::create_symlink(folder_, folder_ / "model" / "up");
  fs::create_hard_link(folder_ / "secret.bin", folder_ / "model" / "hard.bin");
  fs::create_directory(folder_ / "model" / "folder.bin");
  const std::string absolute = (folder_ / "secret.bin").string();
  for (const std::string& location :
       {std::string("../secret.bin"), std::string("sub/../../secret.bin"), std::string("..\\secret.bin"), absolute,
        std::string("link.bin"), std::string("up/secret.bin"), std::string("hard.bin"), std::string("folder.bin")}) {
    expect_error(read_at(model_at(location)), ErrorCode::input, {"m.onnx", "\"W\"", location});
  }
  ModelMaker nothing = model_at("");
  expect_error(read_at(nothing), ErrorCode::input, {"\"W\"", "empty location"});
}

TEST_F(OnnxExternalData, FollowsLinksThatStayInside) {
  write(folder_ / "model" / "sub" / "w.bin", floats({3, 4}));
  fs::create_symlink("sub/w.bin", folder_ / "model" / "inside.bin");
  EXPECT_TRUE(read_at(model_at("inside.bin")).has_value());
}

TEST_F(OnnxExternalData, RefusesWrongOffsetsAndLengths) {
  write(folder_ / "model" / "w.bin", floats({1, 2}));
  expect_error(read_at(model_at("w.bin", "4")), ErrorCode::input, {"\"W\"", "8 bytes at offset 4", "file of 8 bytes"});
  expect_error(read_at(model_at("w.bin", "18446744073709551615")), ErrorCode::input, {"\"W\"", "file of 8 bytes"});
  expect_error(read_at(model_at("w.bin", "-4")), ErrorCode::input, {"\"W\"", "offset", "\"-4\""});
  expect_error(read_at(model_at("w.bin", "0", "12")), ErrorCode::input, {"\"W\"", "needs 8 bytes", "12"});
  expect_error(read_at(model_at("none.bin")), ErrorCode::input, {"\"W\"", "none.bin"});
}

TEST_F(OnnxExternalData, RefusesExternalDataOfAModelInMemory) {
  expect_error(read(model_at("w.bin")), ErrorCode::input, {"\"W\"", "from memory"});
}

Graph large_graph() {
  ModelMaker model;
  model.input("x", {1024});
  model.output("y", {1024});
  model.codes("code", {1025}, 3, std::vector<int>(1025, 7));
  model.floats("W", {1024}, std::vector<float>(1024, 0.5f));
  model.floats("small", {1}, {2});
  model.node("Add", {"x", "W"}, {"h"});
  model.node("Mul", {"h", "small"}, {"y"});
  return must_read(model);
}

TEST_F(OnnxExternalData, WritesLargeTensorsBesideTheModelWithoutGaps) {
  const std::string path = (folder_ / "model" / "out.onnx").string();
  for (int run = 0; run < 2; ++run) {  // a second run replaces, and does not append
    const auto written = write_model(large_graph(), path, {0, "sub/w.bin"});
    ASSERT_TRUE(written.has_value()) << written.error().message;
    EXPECT_EQ(fs::file_size(folder_ / "model" / "sub" / "w.bin"), 4096u + 1025u);
  }
  const auto back = read_model(path);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(weight(*back), std::vector<float>(1024, 0.5f));
  EXPECT_EQ(back->value(*back->find_value("code")).constant->values<std::int8_t>()[1024], 7);
  // Rewriting a model onto the file its own weights are mapped from.
  ASSERT_TRUE(write_model(*back, path, {0, "sub/w.bin"}).has_value());
  EXPECT_EQ(weight(*read_model(path)), std::vector<float>(1024, 0.5f));
}

TEST_F(OnnxExternalData, WritesNothingOutsideTheFolder) {
  fs::create_symlink(folder_, folder_ / "model" / "up");
  fs::create_symlink(folder_ / "secret.bin", folder_ / "model" / "link.bin");
  const std::string path = (folder_ / "model" / "out.onnx").string();
  const std::string absolute = (folder_ / "new.bin").string();
  for (const std::string& location :
       {std::string("../new.bin"), std::string("sub/../../new.bin"), absolute, std::string("up/new.bin"),
        std::string("up/made/new.bin"), std::string("link.bin"), std::string("sub")}) {
    const auto written = write_model(large_graph(), path, {0, location});
    ASSERT_FALSE(written.has_value()) << location;
    EXPECT_EQ(written.error().code, ErrorCode::input);
    EXPECT_NE(written.error().message.find(location), std::string::npos) << written.error().message;
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(folder_ / "new.bin"));
  EXPECT_FALSE(fs::exists(folder_ / "made"));
  EXPECT_EQ(fs::file_size(folder_ / "secret.bin"), 8u);
  EXPECT_FALSE(write_model(large_graph(), path, {0, "out.onnx"}).has_value());
}

}  // namespace
}  // namespace ctk::graph::onnx::test

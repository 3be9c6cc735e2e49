// Codes of a whole network, and a walk that was stopped and goes on.
#include "compress/quantize/from_inputs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compress/quantize/code_store.h"
#include "export/bundle.h"
#include "tests/support/graph_builder.h"
#include "tests/support/made_rows.h"

namespace ctk::test {
namespace {

namespace fs = std::filesystem;
using graph::Graph;
using quantization::FromInputsOptions;
using quantization::InputCodes;

// Three products, one behind the other.
Graph network() {
  GraphBuilder b;
  auto x = b.input("x", {-1, 32});
  for (const char* name : {"a", "b", "c"}) {
    const auto w = b.constant(std::string("w") + name, varied({32, 32}, static_cast<unsigned>(name[0])));
    x = b.node("Gemm", {x, w}, name, {{"transB", std::int64_t{1}}});
  }
  b.output(x);
  return b.graph;
}

class StoppedWalk : public ::testing::Test {
 protected:
  StoppedWalk() {
    std::string name = (fs::temp_directory_path() / "ctk_codes_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    for (const char* layer : {"Gemm_a", "Gemm_b", "Gemm_c"}) schemes_[layer] = parse_scheme("w4a16_g32").value();
    also_["Gemm_b"] = {parse_scheme("w3a16_c").value()};
  }
  ~StoppedWalk() override { fs::remove_all(folder_); }

  Result<InputCodes> run(const std::string& store, int layers = 99) const {
    FromInputsOptions options;
    options.store = store;
    options.also = also_;
    options.hold_out_every = 4;
    int done = 0;
    const Graph graph = network();
    const data::Split split = made_split(graph, {32}, 12);
    options.progress = [&](std::size_t, std::size_t) { done += 1; };
    if (layers < 3) {  // as a kill would: what is behind the first layers never happens
      auto some = schemes_;
      while (some.size() > static_cast<std::size_t>(layers)) some.erase(std::prev(some.end()));
      return quantization::code_from_inputs(graph, some, "gptq", split, options);
    }
    auto codes = quantization::code_from_inputs(graph, schemes_, "gptq", split, options);
    EXPECT_EQ(done, 3);
    return codes;
  }
  std::string text_of(const InputCodes& codes) const {
    Graph graph = network();
    quantization::ApplyOptions options;
    options.given = &codes.given;
    options.method = "gptq";
    auto applied = quantization::apply_schemes(graph, schemes_, {}, options);
    EXPECT_TRUE(applied.has_value()) << applied.error().message;
    std::string text = exporter::bundle_of(graph);
    for (const auto& line : applied->layers) {
      text += line.method + std::to_string(line.receipt->error) + std::to_string(line.error_method);
    }
    const auto& other = codes.also.at({"Gemm_b", "w3a16_c"});
    for (float scale : other.tensor.scales) text += std::to_string(scale);
    return text;
  }

  fs::path folder_;
  quantization::SchemeMap schemes_;
  std::map<std::string, std::vector<QuantScheme>> also_;
};

TEST_F(StoppedWalk, GoesOnBehindTheLastLayerItHadCoded) {
  const auto straight = run("");
  ASSERT_TRUE(straight.has_value()) << straight.error().message;
  const std::string store = (folder_ / "store").string();
  ASSERT_TRUE(run(store, 2).has_value());
  std::map<fs::path, fs::file_time_type> before;
  for (const auto& file : fs::directory_iterator(store)) before[file.path()] = file.last_write_time();
  ASSERT_EQ(before.size(), 2u);
  const auto resumed = run(store);
  ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
  EXPECT_EQ(text_of(*resumed), text_of(*straight));
  for (const auto& [path, time] : before) EXPECT_EQ(fs::last_write_time(path), time) << "coded again: " << path;
  EXPECT_EQ(std::distance(fs::directory_iterator(store), fs::directory_iterator{}), 3);
}

TEST_F(StoppedWalk, CodesALayerAgainWhoseFileIsDamaged) {
  const std::string store = (folder_ / "store").string();
  const auto straight = run(store);
  ASSERT_TRUE(straight.has_value());
  const std::string expected = text_of(*straight);
  for (const auto& file : fs::directory_iterator(store)) {
    const auto size = fs::file_size(file.path());
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(size / 2));
    stream.put('!');
  }
  const auto again = run(store);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(text_of(*again), expected);
}

TEST(FromInputs, CodesAllRowsOfALayerJudgedBySomeOfThem) {
  // 640 rows are judged by every second; all are coded, as they are where nothing is held out and nothing judged.
  GraphBuilder b;
  const auto x = b.input("x", {-1, 16});  // 64 features of rank 16, where the method wins
  const auto mixed =
      b.node("Gemm", {x, b.constant("mixing", varied({64, 16}, 3))}, "mix", {{"transB", std::int64_t{1}}});
  b.output(b.node("Gemm", {mixed, b.constant("w", varied({640, 64}, 7))}, "wide", {{"transB", std::int64_t{1}}}));
  const quantization::SchemeMap schemes = {{"Gemm_wide", parse_scheme("w3a16_g32").value()}};
  const data::Split split = made_split(b.graph, {16}, 400);
  FromInputsOptions options;
  options.hold_out_every = 4;
  const auto judged = quantization::code_from_inputs(b.graph, schemes, "gptq", split, options);
  options.hold_out_every = 0;
  const auto whole = quantization::code_from_inputs(b.graph, schemes, "gptq", split, options);
  ASSERT_TRUE(judged.has_value()) << judged.error().message;
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  const auto& found = judged->given.at("Gemm_wide");
  EXPECT_EQ(found.receipt->rows, 300);
  EXPECT_EQ(found.receipt->held_out_rows, 100);
  EXPECT_FALSE(found.receipt->fell_back);
  EXPECT_LT(found.receipt->error, found.receipt->error_rounding);
  EXPECT_EQ(found.tensor.codes.shape(), (Shape{640, 64}));
  const auto codes = unpack_codes(found.tensor), expected = unpack_codes(whole->given.at("Gemm_wide").tensor);
  std::size_t same = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) same += codes[i] == expected[i];
  EXPECT_GT(same, codes.size() * 95 / 100);  // the moments' sums differ in their last bits, and some codes with them
}

TEST(CodeStore, GivesBackWhatItWasGiven) {
  std::string name = (fs::temp_directory_path() / "ctk_codes_XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const quantization::CodeStore store(folder.string());
  quantization::WeightOutcome outcome;
  outcome.tensor.scheme = parse_scheme("w4a16_g32_affine").value();
  const std::int8_t codes[] = {-8, 7, 0, 3, 1, -1, 2, 5};
  outcome.tensor.codes = pack_codes({2, 4}, codes, 4);
  outcome.tensor.scales = {0.5f, -0.25f};
  outcome.tensor.zeros = {-8, 7};
  outcome.tensor.method = "gptq";
  outcome.squared_error = 0.1;
  outcome.raised_scales = 3;
  outcome.receipt = quantization::InputReceipt{12, 2, 0.01, 1, 1.0 / 3, 0.25, true};
  const std::vector<std::string> layers = {"one layer", "another"};
  EXPECT_FALSE(store.find(layers).has_value());
  ASSERT_TRUE(store.put(layers, {{{"one layer", "w4a16_g32_affine"}, outcome}}).has_value());
  const auto found = store.find(layers);
  ASSERT_TRUE(found.has_value());
  const auto& back = found->at({"one layer", "w4a16_g32_affine"});
  EXPECT_EQ(unpack_codes(back.tensor), (std::vector<std::int8_t>(std::begin(codes), std::end(codes))));
  EXPECT_EQ(back.tensor.scales, outcome.tensor.scales);
  EXPECT_EQ(back.tensor.zeros, outcome.tensor.zeros);
  EXPECT_EQ(back.tensor.method, "gptq");
  EXPECT_EQ(back.squared_error, 0.1);
  EXPECT_EQ(back.raised_scales, 3);
  EXPECT_EQ(back.receipt->error_rounding, 1.0 / 3);
  EXPECT_EQ(back.receipt->held_out_rows, 2);
  EXPECT_TRUE(back.receipt->fell_back);
  EXPECT_FALSE(store.find({"another"}).has_value());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace ctk::test

#include "export/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "export/figures.h"

namespace ctk::exporter {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Report example() {
  Report report;
  report.version = "0.1.0";
  report.command = "compress run edge.yaml";
  report.config = {"edge.yaml", "abc"};
  report.seed = 7;
  report.threads = 2;
  report.machine = {"A processor", "x86_avx2", 2, 8'000'000'000};
  report.model = {"net.onnx", "00", "onnx", 33578, 1483584};
  report.splits = {{"calibrate", "digits.npz", 256, "f1"}, {"test", "digits.npz", 500, "f2"}};
  report.metric = MetricPart{"top1", true, 0.998, 0.996, 0.002, 0.002};
  report.size = {143221, 40000};
  report.latency.threads = 2;
  report.latency.baseline = {200, 220, 100};
  report.latency.final = {100, 110, 100};
  report.memory = {50000, 20000, 90'000'000};
  report.budget = {{"size", "bytes", 45000, 40000, 40000, true, 1e-6},
                   {"metric_drop", "points", 1.0, std::nullopt, 0.2, true, std::nullopt}};
  report.layers = {{"conv<1>",
                    "Conv",
                    {32, 1, 3, 3},
                    18432,
                    "w8a8_c",
                    "rtn",
                    1e-4,
                    2e-5,
                    12.5,
                    416,
                    "least loss",
                    256,
                    1e-5,
                    1e-5,
                    11.6},
                   {"fc", "Gemm", {10, 32}, 320, "fp16", "", std::nullopt, {}, 3.0, 640, "", 0, {}, {}, 16}};
  report.search =
      SearchPart{"kl", "size", {{1e-4, {40000, 100, {}, 8.5, {}, {}}, {1e-9, {}, {}, {}, {}, {}}, true}}, 0.25, {}};
  report.search->trials = {{40000, {}, 1e-4, 2e-4, 0.996, 0.2, true}};
  report.floor = FloorPart{"top1", 1.0, 2.0, 0.5, 0.02, 0.01, 7, 24, {{"fc", "w4a8_c", "fp16", 0.01, 480, true}}};
  report.skipped = {{"head", "Gemm", "ignored by \"re:.*head\""}};
  report.stages = {{"prune", 0.5, false, 1000, 0.998, 0.99, true, 18752, 9376, 37504, 11.5},
                   {"quantize", 0.1, true, 1000, 0.998, 0.996, true, {}, {}, {}, {}}};
  report.files = {{"model.bundle", "bundle", 40000, "aa"}};
  report.warnings = {{"overlap", "score and calibrate share 3 samples"}};
  report.ranges = {{"image", 0, 1, 16384, "mse"}};
  report.skipped_samples = {{"calibrate", 2, "digits.npz row 2", "image", "element 5 is NaN"}};
  report.checks = {{"onnxruntime", "model.onnx", 1.0, 1e-5, 0.996, "agrees"}};
  report.output = "out";
  return report;
}

// What of JSON Schema our schema uses: type, properties, required, items, additionalProperties, enum, $ref.
void hold(const Json& value, const Json& schema, const Json& root, const std::string& path, std::string& problems) {
  if (schema.contains("$ref")) {
    const std::string name = schema["$ref"].get<std::string>().substr(std::string("#/$defs/").size());
    return hold(value, root["$defs"][name], root, path, problems);
  }
  if (schema.contains("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    const std::string found = value.is_null()             ? "null"
                              : value.is_boolean()        ? "boolean"
                              : value.is_string()         ? "string"
                              : value.is_array()          ? "array"
                              : value.is_object()         ? "object"
                              : value.is_number_integer() ? "integer"
                                                          : "number";
    bool is_allowed = false;
    for (const Json& type : types) is_allowed = is_allowed || type == found || (type == "number" && found == "integer");
    if (!is_allowed) problems += path + " is " + found + "\n";
  }
  if (schema.contains("enum")) {
    bool is_listed = false;
    for (const Json& one : schema["enum"]) is_listed = is_listed || one == value;
    if (!is_listed) problems += path + " is not listed\n";
  }
  if (value.is_object()) {
    for (const Json& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>())) problems += path + " lacks " + key.get<std::string>() + "\n";
    }
    for (const auto& [key, child] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(key)) {
        hold(child, schema["properties"][key], root, path + "." + key, problems);
      } else if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
        hold(child, schema["additionalProperties"], root, path + "." + key, problems);
      } else {
        problems += path + " has the unknown key " + key + "\n";
      }
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      hold(value[i], schema["items"], root, path + "[" + std::to_string(i) + "]", problems);
    }
  }
}

std::string against_schema(const Report& report) {
  std::ifstream file(fs::path(CTK_SOURCE_DIR) / "configs/schema/report.schema.json");
  const Json schema = Json::parse(file);
  std::string problems;
  hold(Json::parse(to_json(report)), schema, schema, "report", problems);
  return problems;
}

TEST(Report, MeetsItsSchema) {
  EXPECT_EQ(against_schema(example()), "");
  EXPECT_EQ(against_schema(Report{}), "");
  Report language_model = example();
  language_model.latency.phases.emplace();
  EXPECT_EQ(against_schema(language_model), "");
}

TEST(Report, HasTheKeysOfTheDesignPageInTheirOrder) {
  const Json json = Json::parse(to_json(example()));
  const std::vector<std::string> wanted = {"version", "command", "config",  "seed",   "threads", "machine",
                                           "model",   "splits",  "metric",  "size",   "latency", "memory",
                                           "budget",  "layers",  "skipped", "stages", "files",   "warnings"};
  std::vector<std::string> found;
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(wanted, key) != wanted.end()) found.push_back(key);
  }
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(json["metric"]["better"], "higher");
  EXPECT_EQ(json["latency"]["unit"], "us");
  EXPECT_EQ(json["splits"]["test"]["count"], 500);
  EXPECT_TRUE(json["layers"][1]["loss"].is_null());
}

TEST(Report, ReadsBackWhatItWrote) {
  const std::string json = to_json(example());
  const Result<Report> back = parse_report(json);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), json);
}

TEST(Report, WritesNullAndWarnsForNumbersThatAreNotFinite) {
  Report report = example();
  report.layers[0].loss = std::numeric_limits<double>::quiet_NaN();
  report.latency.final.p95 = std::numeric_limits<double>::infinity();
  const Json json = Json::parse(to_json(report));
  EXPECT_TRUE(json["layers"][0]["loss"].is_null());
  EXPECT_TRUE(json["latency"]["final"]["p95"].is_null());
  ASSERT_EQ(json["warnings"].size(), 3u);
  EXPECT_EQ(json["warnings"][1]["code"], "not_finite");
  EXPECT_EQ(json["warnings"][1]["text"], "latency.final.p95 is infinite; written as null");
  EXPECT_EQ(json["warnings"][2]["text"], "layers[0].loss is not a number; written as null");
  EXPECT_EQ(to_html(report).find("nan"), std::string::npos);
}

TEST(Report, RepairsTextThatIsNotUtf8) {
  Report report = example();
  report.model.path = "bad\xff.onnx";
  EXPECT_FALSE(Json::parse(to_json(report), nullptr, false).is_discarded());
}

TEST(Report, RefusesJsonOfAnotherShape) {
  EXPECT_NE(parse_report("{").error().message.find("expected a JSON object"), std::string::npos);
  const auto wrong = parse_report("{\"layers\": [{\"name\": 3}]}");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "report.layers[0].name: expected a text");
}

TEST(ReportHtml, NeedsNothingFromOutsideAndEscapesNames) {
  const std::string html = to_html(example());
  for (const char* forbidden : {"http://", "https://", "src=", "@import", "<script", "conv<1>"}) {
    EXPECT_EQ(html.find(forbidden), std::string::npos) << forbidden;
  }
  EXPECT_NE(html.find("conv&lt;1&gt;"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
}

TEST(ReportMarkdown, OpensWithBeforeAndAfter) {
  const std::string text = to_markdown(example());
  EXPECT_NE(text.find("| accuracy (top1) | 99.80 % | 99.60 % | -0.20 pt | drop of at most 1 pt | yes |"),
            std::string::npos)
      << text;
  // 40000 / 143221 - 1 = -0.7207
  EXPECT_NE(text.find("| file size | 143.2 kB | 40.0 kB | -72 % | at most 45.0 kB | yes |"), std::string::npos) << text;
  EXPECT_NE(text.find("| latency | 200 us | 100 us | 2.00x as fast |  |  |"), std::string::npos) << text;
}

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("report_test_" + std::to_string(::getpid()) + " модель 重み");
    fs::create_directories(folder / "sub");
    ASSERT_TRUE(write_file((folder / "a b.onnx").string(), std::string_view("abc")));
    ASSERT_TRUE(write_file((folder / "sub/вес.bin").string(), std::string_view("")));
  }
  void TearDown() override { fs::remove_all(folder); }
  std::vector<FileRow> files() const {
    return {*describe_file(folder.string(), "sub/вес.bin", "data"),
            *describe_file(folder.string(), "a b.onnx", "onnx_qdq")};
  }
  fs::path folder;
};

TEST_F(Folder, ManifestListsBytesAndHashesByPath) {
  ASSERT_TRUE(write_manifest(files(), folder.string()));
  const Json json = Json::parse(*read_text((folder / "manifest.json").string()));
  ASSERT_EQ(json["files"].size(), 2u);
  EXPECT_EQ(json["files"][0]["path"], "a b.onnx");
  EXPECT_EQ(json["files"][0]["bytes"], 3);
  // SHA-256 of "abc", as in FIPS 180-2, appendix B.1
  EXPECT_EQ(json["files"][0]["sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(verify_manifest(folder.string()));
}

TEST_F(Folder, ManifestTellsAFileThatChangedOrIsGone) {
  ASSERT_TRUE(write_manifest(files(), folder.string()));
  ASSERT_TRUE(write_file((folder / "a b.onnx").string(), std::string_view("abd")));
  fs::remove(folder / "sub/вес.bin");
  const Status status = verify_manifest(folder.string());
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("a b.onnx: expected SHA-256"), std::string::npos);
  EXPECT_NE(status.error().message.find("вес.bin"), std::string::npos);
}

TEST_F(Folder, ManifestThatLeavesItsFolderIsRefused) {
  ASSERT_TRUE(write_file((folder / "manifest.json").string(),
                         std::string_view("{\"files\": [{\"path\": \"a/../../x\", \"bytes\": 1, \"sha256\": \"\"}]}")));
  EXPECT_NE(read_manifest(folder.string()).error().message.find("inside its folder"), std::string::npos);
}

TEST_F(Folder, WritesTheReportInThreeForms) {
  ASSERT_TRUE(write_report(example(), folder.string()));
  for (const char* name : {"report.json", "report.md", "report.html"})
    EXPECT_GT(fs::file_size(folder / name), 500u) << name;
  EXPECT_FALSE(write_report(example(), (folder / "absent").string()));
}

TEST(Figures, ReadableUnits) {
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(36000), "36.0 kB");
  EXPECT_EQ(format_us(8.4), "8.40 us");
  EXPECT_EQ(format_us(4200), "4.20 ms");
}

}  // namespace
}  // namespace ctk::exporter

#include "compress/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compress/config_schema.h"
#include "tests/compress/config_text.h"

namespace ctk::pipeline {
namespace {

using namespace test;

TEST(Config, ReadsEveryPartOfAGoodFile) {
  const auto config = parsed(kGood);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->model, "/work/net.onnx");
  EXPECT_EQ(config->output, "/work/out");
  EXPECT_EQ(config->calibrate_data->spec.path, "/work/a.npz");
  EXPECT_EQ(config->calibrate_data->spec.samples, 16);
  EXPECT_EQ(config->evaluate->spec.metric, "top1");
  EXPECT_DOUBLE_EQ(config->budget.size->value, 60000);
  EXPECT_DOUBLE_EQ(config->budget.latency->value, 200);
  EXPECT_FALSE(config->budget.latency->is_share);
  EXPECT_DOUBLE_EQ(config->budget.metric_drop->value, 1.0);
  EXPECT_EQ(config->search->schemes.size(), 3u);
  EXPECT_EQ(config->calibrate->method, "mse");
  EXPECT_EQ(config->stages.size(), 6u);
  EXPECT_TRUE(config->unavailable.empty());
  EXPECT_TRUE(require_available(*config));
}

TEST(Config, NamesNearestKeyOfAMisspeltKey) {  // B081
  const std::string message = refusal(with_quantize("{bitz: 4}"));
  EXPECT_SAYS(message, "edge.yaml:6: stages[1].quantize.bitz: ");
  EXPECT_SAYS(message, "did you mean \"bits\"?");
}

TEST(Config, SaysWhereAKeyOneLevelTooHighBelongs) {  // B081
  const std::string beside = refusal(with_quantize("{scheme: w8a8_c}\n    group_size: 32"));
  EXPECT_SAYS(beside, "edge.yaml:7: stages[1].group_size: ");
  EXPECT_SAYS(beside, "\"group_size\" is valid under stages.quantize");
  const std::string at_top = refusal("group_size: 32\n" + with_quantize("{scheme: w8a8_c}"));
  EXPECT_SAYS(at_top, "edge.yaml:1: group_size: ");
  EXPECT_SAYS(at_top, "\"group_size\" is valid under stages.quantize");
}

TEST(Config, RefusesAWordForANumber) {  // B081
  const std::string message = refusal(with_quantize("{bits: \"four\"}"));
  EXPECT_SAYS(message, "edge.yaml:6: stages[1].quantize.bits: expected an integer, found \"four\"");
}

TEST(Config, RefusesTheSameKeyTwice) {  // B081
  const std::string message = refusal("seed: 1\n" + with_quantize("{scheme: w8a8_c, scheme: w4a8_c}") + "seed: 2\n");
  EXPECT_SAYS(message, "edge.yaml:7: stages[1].quantize.scheme: expected each key once");
  EXPECT_SAYS(message, "edge.yaml:8: seed: expected each key once, found \"seed\" again (first at edge.yaml:1)");
}

TEST(Config, RefusesAnUnknownStage) {  // B081
  const std::string message = refusal(replaced(kGood, "- quantize:", "- quantise:"));
  EXPECT_SAYS(message, "edge.yaml:11: stages[3].quantise: ");
  EXPECT_SAYS(message, "did you mean \"quantize\"?");
}

TEST(Config, RefusesAnEmptyFile) {  // B081
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n"}) {
    EXPECT_SAYS(refusal(text), "edge.yaml:") << text;
    EXPECT_SAYS(refusal(text), "empty file") << text;
  }
}

TEST(Config, TellsAllProblemsAtOnce) {  // B081
  std::string text = kGood;
  text = replaced(text, "model: net", "modell: net");
  text = replaced(text, "samples: 16", "samples: 0");
  text = replaced(text, "size: 60 kB", "size: 60");
  text = replaced(text, "w4a8_c", "w4a8c");
  text = replaced(text, "solver: ilp", "solver: ipl");
  text = replaced(text, "method: mse", "method: msee");
  text = replaced(text, "onnx_qdq", "onnx_qqd");
  const std::string message = refusal(text);
  EXPECT_SAYS(message, "edge.yaml:1: modell: ");
  EXPECT_SAYS(message, "did you mean \"model\"?");
  EXPECT_SAYS(message, "model: expected a path, found nothing");
  EXPECT_SAYS(message, "edge.yaml:4: data.calibrate.samples: expected an integer of at least 1, found \"0\"");
  EXPECT_SAYS(message,
              "edge.yaml:6: budget.size: expected a size like \"60 kB\" or a share like \"20 %\", found \"60\"");
  EXPECT_SAYS(message, "Add a unit");
  EXPECT_SAYS(message, "edge.yaml:10: stages[2].search.schemes: expected a scheme");
  EXPECT_SAYS(message, "found \"w4a8c\"; did you mean \"w4a8_c\"?");
  EXPECT_SAYS(message, "did you mean \"ilp\"?");
  EXPECT_SAYS(message, "did you mean \"mse\"?");
  EXPECT_SAYS(message, "did you mean \"onnx_qdq\"?");
}

TEST(Config, RefusesStagesOutOfOrderOrTwice) {
  const std::string swapped = refusal(
      "model: m.onnx\noutput: o\ndata: {calibrate: {path: a}}\nstages:\n  - quantize: {scheme: w8a8_c}\n  - "
      "calibrate:\n");
  EXPECT_SAYS(swapped, "edge.yaml:6: stages[1].calibrate: expected \"calibrate\" before \"quantize\"");
  const std::string twice = refusal(with_quantize("{scheme: w8a8_c}\n  - quantize: {scheme: w4a8_c}"));
  EXPECT_SAYS(twice, "edge.yaml:7: stages[2].quantize: expected each stage once");
}

TEST(Config, RefusesAStageWithoutWhatItNeeds) {
  EXPECT_SAYS(refusal(replaced(kGood, "  - sensitivity: {metric: kl}\n", "")), "expected a stage \"sensitivity\"");
  EXPECT_SAYS(refusal(replaced(kGood, "  - calibrate: {method: mse}\n", "")), "expected a stage \"calibrate\"");
  EXPECT_SAYS(refusal(with_quantize("{method: rtn}")), "expected a scheme, found none");
  EXPECT_SAYS(refusal(replaced(kGood, "{method: rtn}", "{scheme: w8a8_c}")), "expected no scheme here");
  EXPECT_SAYS(refusal(replaced(kGood, "  calibrate: {path: a.npz, samples: 16}\n", "")), "expected data.calibrate");
  EXPECT_SAYS(refusal(replaced(kGood, "onnx_qdq, ", "")), "expected an exported file that onnxruntime reads");
}

TEST(Config, RefusesBudgetsThatContradictEachOther) {
  const std::string message = refusal(replaced(kGood, "gate: {metric_drop: 1.0 pt}", "gate: {metric_drop: 2.0 pt}"));
  EXPECT_SAYS(message, "edge.yaml:13: stages[5].validate.gate.metric_drop: expected at most budget.metric_drop (1 pt)");
}

TEST(Config, RefusesNumbersWithoutSense) {
  EXPECT_SAYS(refusal(replaced(kGood, "samples: 16", "samples: -3")), "at least 1");
  EXPECT_SAYS(refusal(replaced(kGood, "samples: 16", "samples: 1.5")), "expected an integer, found \"1.5\"");
  EXPECT_SAYS(refusal(replaced(kGood, "samples: 16", "samples: \"16\"")), "Remove the quotes");
  EXPECT_SAYS(refusal(replaced(kGood, "samples: 16", "samples: 99999999999999999999")), "at least 1");
  EXPECT_SAYS(refusal(replaced(kGood, "samples: 16", "std: [0.2, 0, 0.2]")), "expected a number above 0, found \"0\"");
  EXPECT_SAYS(refusal(replaced(kGood, "samples: 16", "scale: .nan")), "expected a number, found \".nan\"");
  EXPECT_SAYS(refusal(replaced(kGood, "60 kB", "-60 kB")), "must be above 0");
  EXPECT_SAYS(refusal(replaced(kGood, "60 kB", "0 kB")), "must be above 0");
  EXPECT_SAYS(refusal(replaced(kGood, "60 kB", "60 kb")), "Add a unit");
  EXPECT_SAYS(refusal(replaced(kGood, "0.20 ms", "0.20")), "Add a unit: us, ms, s or %");
  EXPECT_SAYS(refusal(replaced(kGood, "budget: {", "seed: -1\nbudget: {")),
              "seed: expected an integer of at least 0, found \"-1\"");
}

TEST(Config, RefusesSyntaxErrorsWithTheirLine) {
  EXPECT_SAYS(refusal("model: a\noutput: [1, 2\n"), "edge.yaml:");
  EXPECT_SAYS(refusal("model: a.onnx\n---\nmodel: b.onnx\n"), "expected one YAML document");
  EXPECT_SAYS(refusal("just words"), "expected a map of keys");
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'j'; ++name) {
    const std::string previous = std::string("*") + static_cast<char>(name - 1);
    bomb += std::string(1, name) + ": &" + name + " [" + previous;
    for (int i = 0; i < 9; ++i) bomb += ", " + previous;
    bomb += "]\n";
  }
  EXPECT_SAYS(refusal(bomb), "expected at most");
  EXPECT_SAYS(refusal(std::string(100'000, '[')), "edge.yaml");
}

TEST(Config, OverridesReplaceBeforeChecking) {
  const auto config = parsed(kGood, {"model=other.onnx", "budget.size=70 kB", "stages.search.schemes=[w8a8_c]",
                                     "stages.calibrate.method=minmax", "seed=7"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->model, "other.onnx");  // of the command line: relative to where the user stands
  EXPECT_DOUBLE_EQ(config->budget.size->value, 70000);
  EXPECT_EQ(config->search->schemes.size(), 1u);
  EXPECT_EQ(config->calibrate->method, "minmax");
  EXPECT_EQ(config->seed, 7u);
  EXPECT_EQ(parsed(kGood, {"stages[1].sensitivity.metric=kl"})->sensitivity->metric, "kl");
}

TEST(Config, OverridesAreHeldToTheSameRules) {
  EXPECT_SAYS(refusal(kGood, {"stages.quantize.bitz=4"}), "--set stages.quantize.bitz: expected one of ");
  EXPECT_SAYS(refusal(kGood, {"stages.prune.macs=0.5"}), "expected a stage of the file, found \"prune\"");
  EXPECT_SAYS(refusal(kGood, {"seed"}), "expected key=value");
  EXPECT_SAYS(refusal(kGood, {"model.x=1"}), "expected a map above");
  EXPECT_SAYS(refusal(kGood, {"budget.size=60"}), "Add a unit");
}

TEST(Config, SpellsASchemeOutInBitsAndGroupSize) {
  const auto channels = parsed(with_quantize("{bits: 4}"));
  ASSERT_TRUE(channels) << channels.error().message;
  EXPECT_EQ(to_string(*channels->quantize->scheme), "w4a8_c");
  const auto groups = parsed(with_quantize("{bits: 4, activation_bits: 16, group_size: 32}"));
  ASSERT_TRUE(groups) << groups.error().message;
  EXPECT_EQ(to_string(*groups->quantize->scheme), "w4a16_g32");
  EXPECT_SAYS(refusal(with_quantize("{scheme: w4a8_c, group_size: 32}")), "expected either scheme or bits");
}

TEST(Config, RefusesWhatThisBuildLacksBeforeWork) {
  const auto config = parsed(with_quantize("{method: rtn, scheme: w3a8_c}"));
  ASSERT_TRUE(config) << config.error().message;
  const Status status = require_available(*config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::config);
  EXPECT_SAYS(status.error().message, "scheme \"w3a8_c\" needs kernels for weights of this width");
}

TEST(Config, EverySectionThatTrainsTakesTheSameKeys) {
  const auto train = [](const std::string& stage, const std::string& keys) {
    return replaced(kGood, "stages:\n",
                    "stages:\n  - " + stage + ": {" + (stage == "prune" ? "macs: 0.7, finetune: {" : "") + keys +
                        (stage == "prune" ? "}}\n" : "}\n"));
  };
  const std::string data = "data:\n  train: {path: train.npz}\n";
  for (const std::string stage : {"distill", "prune", "finetune"}) {
    const auto config = parsed(replaced(train(stage,
                                              "teacher: t.onnx, epochs: 3, optimizer: adamw, schedule: step, "
                                              "clip_norm: 1, ema: 0.5, batch_norm: false"),
                                        "data:\n", data));
    ASSERT_TRUE(config) << config.error().message;
    const std::optional<TrainConfig>& found = stage == "distill" ? config->distill
                                              : stage == "prune" ? config->prune->finetune
                                                                 : config->finetune;
    ASSERT_TRUE(found) << stage;
    EXPECT_EQ(found->epochs, 3);
    EXPECT_EQ(found->optimizer, "adamw");
    EXPECT_EQ(found->schedule, "step");
    EXPECT_EQ(found->clip_norm, 1.0);
    EXPECT_EQ(found->ema, 0.5);
    EXPECT_FALSE(found->batch_norm);
    EXPECT_EQ(found->learning_rate, 0.02);  // the default
    EXPECT_SAYS(refusal(replaced(train(stage, "teacher: t.onnx, optimizer: lion"), "data:\n", data)),
                "expected sgd, adam or adamw, found \"lion\"");
  }
  EXPECT_SAYS(refusal(replaced(train("distill", "epochs: 3"), "data:\n", data)), "Add the key \"teacher\"");
}

TEST(Config, PruneTakesOneAimThatLeavesSomething) {
  const auto with_prune = [](const std::string& keys) {
    return replaced(kGood, "stages:\n", "stages:\n  - prune: {" + keys + "}\n");
  };
  const auto pruned = parsed(with_prune("macs: 0.7, round_to: 8"));
  ASSERT_TRUE(pruned) << pruned.error().message;
  EXPECT_TRUE(require_available(*pruned));
  EXPECT_EQ(pruned->prune->round_to, 8);
  EXPECT_FALSE(pruned->prune->repair.has_value());
  EXPECT_SAYS(refusal(with_prune("method: l1")), "expected macs (share kept), pruning_ratio");
  EXPECT_SAYS(refusal(with_prune("macs: 0.5, pruning_ratio: 0.5")), "expected either macs or pruning_ratio");
  EXPECT_SAYS(refusal(with_prune("pruning_ratio: 1")), "expected a share below 1");
  EXPECT_SAYS(refusal(with_prune("macs: 0.5, ratios: fair")),
              "expected auto, uniform, global, sensitivity, timed or joint");
  EXPECT_SAYS(refusal(with_prune("macs: 0.5, round_to: x")), "expected auto or a count of channels");
}

TEST(Config, FingerprintFollowsValuesAndNotSpelling) {
  const std::string base = parsed(kGood)->fingerprint();
  EXPECT_EQ(parsed(replaced(kGood, "60 kB", "60000 B"))->fingerprint(), base);
  EXPECT_EQ(parsed(replaced(kGood, "stages:", "seed: 0\nstages:"))->fingerprint(), base);
  EXPECT_EQ(parsed(kGood, {"output=elsewhere"})->fingerprint(), base);
  EXPECT_NE(parsed(kGood, {"seed=1"})->fingerprint(), base);
  const auto a = parsed(kGood), b = parsed(kGood, {"budget.size=61 kB"});
  EXPECT_EQ(a->fingerprint_of({"data", "stages.calibrate"}), b->fingerprint_of({"data", "stages.calibrate"}));
  EXPECT_NE(a->fingerprint_of({"budget"}), b->fingerprint_of({"budget"}));
}

TEST(Config, ADeviceCardLimitsSchemes) {
  const std::string card = std::string("target=") + CTK_SOURCE_DIR + "/configs/targets/cpu.yaml";
  const auto good = parsed(kGood, {card});
  EXPECT_TRUE(good) << good.error().message;
  EXPECT_SAYS(refusal(with_quantize("{scheme: w4a8_g32}"), {card}), "target: expected schemes that");
  const auto absent = parsed(kGood, {"target=no_such_card.yaml"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::input);
}

TEST(ConfigSchema, EveryDefaultPassesItsOwnRow) {
  for (const KeyRow& row : key_rows()) {
    if (row.fallback.empty() || row.fallback == "!") continue;
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = row.fallback;
    CheckedValues values;
    EXPECT_TRUE(check_value(node, row, {"", ""}, values)) << row.path;
  }
}

TEST(ConfigSchema, EveryStageIsASectionOfTheTable) {
  for (const NameRow& stage : names(NameKind::stage)) {
    const KeyRow* row = find_row("stages." + std::string(stage.name));
    ASSERT_NE(row, nullptr) << stage.name;
    EXPECT_EQ(row->kind, ValueKind::section);
    EXPECT_EQ(row->needs, stage.needs) << stage.name;
  }
}

TEST(ConfigSchema, StagesThatChangeTheNetworkAreThoseBeforeCalibrate) {
  bool is_before = true;
  for (const NameRow& stage : names(NameKind::stage)) {
    is_before = is_before && stage.name != "calibrate";
    EXPECT_EQ(changes_network(stage.name), is_before) << stage.name;
  }
}

TEST(ConfigSchema, EverySchemeRowParsesAndSaysWhatItNeeds) {
  for (const NameRow& row : names(NameKind::scheme)) {
    const auto scheme = parse_scheme(row.name);
    ASSERT_TRUE(scheme) << row.name;
    EXPECT_EQ(scheme_needs(*scheme), row.needs) << row.name;
  }
}

TEST(ConfigSchema, NoNameStandsTwiceInATable) {
  for (const NameKind kind : {NameKind::stage, NameKind::scheme, NameKind::observer, NameKind::sensitivity_metric,
                              NameKind::solver, NameKind::quantizer, NameKind::format, NameKind::metric,
                              NameKind::oracle, NameKind::prune_method, NameKind::target}) {
    for (const NameRow& row : names(kind)) EXPECT_EQ(find_name(kind, row.name), &row) << row.name;
    EXPECT_FALSE(names(kind).empty());
  }
}

// The nine files that fix the spelling of keys, and the file of the quickstart.
TEST(Config, ReadsThePipelinesThatFixTheSpelling) {
  const std::filesystem::path root = CTK_SOURCE_DIR;
  int count = 0;
  for (const auto& folder : {root / "configs/pipelines", root / "tests/compress/pipelines"}) {
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml") continue;
      const auto config = load_config(entry.path().string());
      EXPECT_TRUE(config) << config.error().message;
      ++count;
    }
  }
  EXPECT_GE(count, 10);
}

TEST(ConfigYaml, TellsTheLineOfAQuoteThatIsNotClosed) {
  EXPECT_SAYS(refusal("model: net.onnx\noutput: \"out\nstages: []\n"),
              "edge.yaml:2: expected YAML, found a syntax error");
  EXPECT_SAYS(refusal("model: 'it''s\noutput: out\n"), "edge.yaml:1: expected YAML");
}

TEST(Config, AnOverrideWithThePositionOfAnotherStageIsRefused) {
  EXPECT_SAYS(refusal(kGood, {"stages[9].search.solver=ilp"}), "expected the stage \"search\" at position 9");
  EXPECT_SAYS(refusal(kGood, {"stages[0].search.solver=ilp"}), "Leave the position out");
  EXPECT_TRUE(parsed(kGood, {"stages[2].search.solver=ilp"}));
}

}  // namespace
}  // namespace ctk::pipeline

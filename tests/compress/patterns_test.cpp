#include "compress/patterns.h"

#include <gtest/gtest.h>

#include "compress/nearest_key.h"

namespace ctk::pipeline {
namespace {

const std::vector<std::string> kLayers = {"layer3.0.conv1", "layer3.0.conv2", "lm_head", "head.fc"};

TEST(Patterns, AnAddressPicksItselfOnly) {
  EXPECT_EQ(*match_patterns({"layer3.0.conv1"}, kLayers, "ignore"), (std::vector<bool>{true, false, false, false}));
}

TEST(Patterns, AnExpressionMustMatchTheWholeAddress) {
  EXPECT_EQ(*match_patterns({"re:.*head"}, kLayers, "ignore"), (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(*match_patterns({"re:layer3\\..*"}, kLayers, "ignore"), (std::vector<bool>{true, true, false, false}));
}

TEST(Patterns, OneThatMatchesNothingNamesTheNearestLayer) {
  const auto result = match_patterns({"lm_head", "layer3.0.conv3"}, kLayers, "stages.quantize.ignore");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::config);
  EXPECT_NE(result.error().message.find("stages.quantize.ignore: "), std::string::npos);
  EXPECT_NE(result.error().message.find("the nearest layer is \"layer3.0.conv1\""), std::string::npos);
  EXPECT_FALSE(match_patterns({"re:.*tail"}, kLayers, "ignore"));
}

TEST(Patterns, ABrokenExpressionIsAConfigurationError) {
  const Status status = check_pattern("re:([a-z");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::config);
  EXPECT_TRUE(check_pattern("([a-z"));  // an address may be anything
  EXPECT_FALSE(check_pattern("re:" + std::string(5000, 'a')));
}

TEST(Patterns, ReadsWhatEcmaScriptMeans) {
  EXPECT_EQ(*match_patterns({"re:(layer\\d+|head)\\.(?!0\\.conv2).+"}, kLayers, "ignore"),
            (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(*match_patterns({"re:[^.]*\\u005Fhead"}, kLayers, "ignore"),
            (std::vector<bool>{false, false, true, false}));
  EXPECT_FALSE(match_patterns({"re:lm_head$x|b"}, kLayers, "ignore"));
}

TEST(Patterns, OneThatWouldBacktrackForEverIsRefusedInTime) {
  std::vector<std::string> names(1, "c");
  names[0].insert(0, 60, 'a');
  const auto result = match_patterns({"re:(a+)+(b|d)"}, names, "stages.quantize.ignore");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::config);
  EXPECT_NE(result.error().message.find("steps"), std::string::npos) << result.error().message;
}

TEST(Patterns, TargetsWithoutIgnoredOnes) {
  EXPECT_EQ(*select_layers({}, {"lm_head"}, kLayers), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(*select_layers({"re:layer.*"}, {"layer3.0.conv2"}, kLayers),
            (std::vector<bool>{true, false, false, false}));
}

TEST(NearestKey, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ipl", "ilp"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

TEST(NearestKey, TiesGoToTheEarlierAndFarOnesAreNotOffered) {
  const std::vector<std::string_view> words = {"scheme", "schema", "solver"};
  EXPECT_EQ(nearest("schemx", words), "scheme");
  EXPECT_EQ(did_you_mean("zzzzzz", words), "");
  EXPECT_EQ(did_you_mean("Scheme", words), "; did you mean \"scheme\"?");
}

}  // namespace
}  // namespace ctk::pipeline

#include "core/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace ctk {
namespace {

Result<int> parse(const std::string& text) {
  if (text.empty()) return input_error("expected a number, found nothing");
  return static_cast<int>(text.size());
}

Result<std::string> twice(const std::string& text) {
  CTK_TRY(const int length, parse(text));
  CTK_TRY(const int again, parse(text + text));
  return std::to_string(length + again);
}

Status check(const std::string& text) {
  CTK_CHECK(parse(text));
  return {};
}

TEST(Result, HandsValuesAndErrorsUp) {
  EXPECT_EQ(twice("ab").value(), "6");
  ASSERT_FALSE(twice("").has_value());
  EXPECT_EQ(twice("").error().code, ErrorCode::input);
  EXPECT_TRUE(check("a").has_value());
  EXPECT_FALSE(check("").has_value());
}

TEST(Result, ContextStandsInFront) {
  EXPECT_EQ(std::move(twice("").error()).with_context("layer3").message, "layer3: expected a number, found nothing");
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const std::unique_ptr<int> five = std::move(make()).value();
  EXPECT_EQ(*five, 5);
}

TEST(ExitCode, IsTheDocumentedOne) {
  EXPECT_EQ(exit_code(ErrorCode::internal), 1);
  EXPECT_EQ(exit_code(ErrorCode::config), 2);
  EXPECT_EQ(exit_code(ErrorCode::input), 3);
  EXPECT_EQ(exit_code(ErrorCode::budget_infeasible), 4);
  EXPECT_EQ(exit_code(ErrorCode::gate_refused), 5);
  EXPECT_EQ(exit_code(ErrorCode::interrupted), 130);
}

}  // namespace
}  // namespace ctk

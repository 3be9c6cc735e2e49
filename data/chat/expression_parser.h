// Expressions of a chat template, by precedence as Jinja has it. Internal to data/chat.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/chat/lexer.h"
#include "data/chat/syntax.h"

namespace ctk::data::chat {

// Reads tokens front to back; what parses statements is built on it.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  // Errors of all: input (line, expected, found; nested or chained too deep).
  Result<ExpressionPtr> parse_expression();
  Result<ExpressionPtr> parse_or();  // without "if" behind it

  const Token& now() const { return tokens_[at_]; }
  bool is_name(std::string_view text) const { return now().kind == Token::Kind::name && now().text == text; }
  bool is_sign(std::string_view text) const { return now().kind == Token::Kind::sign && now().text == text; }
  bool take_name(std::string_view text) { return is_name(text) && ++at_; }
  bool take_sign(std::string_view text) { return is_sign(text) && ++at_; }
  Status expect_sign(std::string_view sign);
  Result<std::string> expect_name();
  Error fails(const std::string& expected, const std::string& found) const;
  Error fails(const std::string& expected) const;
  Status enter();  // one level deeper; the caller counts depth_ down again

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;

 private:
  using Kind = Expression::Kind;
  using Level = Result<ExpressionPtr> (ExpressionParser::*)();

  std::string shown() const;
  ExpressionPtr make(Kind kind, std::string text = "") const;
  Result<ExpressionPtr> whole(ExpressionPtr e) const;
  Result<ExpressionPtr> joined(std::string sign, ExpressionPtr left, ExpressionPtr right) const;
  Result<ExpressionPtr> parse_words(std::string_view word, Level below);
  Result<ExpressionPtr> parse_and();
  Result<ExpressionPtr> parse_not();
  Result<ExpressionPtr> parse_comparison();
  Result<ExpressionPtr> parse_signs(std::size_t level);
  Result<ExpressionPtr> parse_unary();
  Result<ExpressionPtr> parse_primary();
  Result<ExpressionPtr> parse_behind(ExpressionPtr value);
  Status parse_subscript(Expression& e, ExpressionPtr value);
  Status parse_arguments(Expression& e);
  Result<ExpressionPtr> parse_test(ExpressionPtr test, ExpressionPtr value);
};

}  // namespace ctk::data::chat

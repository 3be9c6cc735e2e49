#include "data/chat/expression_parser.h"

#include <algorithm>

#include "core/printable.h"

namespace ctk::data::chat {
namespace {

constexpr int kMostDepth = 200;    // of expressions and blocks inside each other
constexpr int kMostHeight = 1000;  // of an expression's tree: "a + b + c" grows by one a sign

}  // namespace

std::string ExpressionParser::shown() const {
  switch (now().kind) {
    case Token::Kind::end:
      return "the end of the template";
    case Token::Kind::text:
      return "text";
    case Token::Kind::print_begin:
      return "\"{{\"";
    case Token::Kind::print_end:
      return "\"}}\"";
    case Token::Kind::block_begin:
      return "\"{%\"";
    case Token::Kind::block_end:
      return "\"%}\"";
    default:
      return "\"" + printable(now().text) + "\"";
  }
}
Error ExpressionParser::fails(const std::string& expected, const std::string& found) const {
  return input_error("line " + std::to_string(now().line) + ": expected " + expected + ", found " + found +
                     ". Correct the template");
}
Error ExpressionParser::fails(const std::string& expected) const {
  return fails(expected, shown());
}

Status ExpressionParser::expect_sign(std::string_view sign) {
  if (!take_sign(sign)) return fails("\"" + std::string(sign) + "\"");
  return {};
}
Result<std::string> ExpressionParser::expect_name() {
  if (now().kind != Token::Kind::name) return fails("a name");
  return tokens_[at_++].text;
}

ExpressionPtr ExpressionParser::make(Kind kind, std::string text) const {
  auto e = std::make_unique<Expression>();
  e->kind = kind;
  e->text = std::move(text);
  e->line = now().line;
  return e;
}

// Every expression that has others in it passes here once it is whole.
Result<ExpressionPtr> ExpressionParser::whole(ExpressionPtr e) const {
  for (const ExpressionPtr& operand : e->operands) {
    if (operand != nullptr) e->height = std::max(e->height, operand->height + 1);
  }
  for (const Argument& argument : e->arguments) e->height = std::max(e->height, argument.value->height + 1);
  if (e->height > kMostHeight)
    return fails("an expression of at most " + std::to_string(kMostHeight) + " steps", "more");
  return e;
}
Status ExpressionParser::enter() {
  if (++depth_ > kMostDepth)
    return fails("at most " + std::to_string(kMostDepth) + " things inside each other", "more");
  return {};
}

// ---- expressions, loosest first

Result<ExpressionPtr> ExpressionParser::parse_expression() {
  CTK_CHECK(enter());
  CTK_TRY(ExpressionPtr value, parse_or());
  while (take_name("if")) {
    ExpressionPtr choice = make(Kind::choice);
    CTK_TRY(ExpressionPtr condition, parse_or());
    ExpressionPtr other;
    if (take_name("else")) {
      CTK_TRY(other, parse_expression());
    }
    choice->operands.push_back(std::move(condition));
    choice->operands.push_back(std::move(value));
    choice->operands.push_back(std::move(other));
    CTK_TRY(value, whole(std::move(choice)));
  }
  --depth_;
  return value;
}

Result<ExpressionPtr> ExpressionParser::joined(std::string sign, ExpressionPtr left, ExpressionPtr right) const {
  ExpressionPtr both = make(Kind::binary, std::move(sign));
  both->operands.push_back(std::move(left));
  both->operands.push_back(std::move(right));
  return whole(std::move(both));
}

Result<ExpressionPtr> ExpressionParser::parse_words(std::string_view word, Level below) {
  CTK_TRY(ExpressionPtr left, (this->*below)());
  while (take_name(word)) {
    CTK_TRY(ExpressionPtr right, (this->*below)());
    CTK_TRY(left, joined(std::string(word), std::move(left), std::move(right)));
  }
  return left;
}
Result<ExpressionPtr> ExpressionParser::parse_or() {
  return parse_words("or", &ExpressionParser::parse_and);
}
Result<ExpressionPtr> ExpressionParser::parse_and() {
  return parse_words("and", &ExpressionParser::parse_not);
}

Result<ExpressionPtr> ExpressionParser::parse_not() {
  if (!take_name("not")) return parse_comparison();
  CTK_CHECK(enter());
  ExpressionPtr e = make(Kind::unary, "not");
  CTK_TRY(ExpressionPtr operand, parse_not());
  --depth_;
  e->operands.push_back(std::move(operand));
  return whole(std::move(e));
}

Result<ExpressionPtr> ExpressionParser::parse_comparison() {
  CTK_TRY(ExpressionPtr left, parse_signs(0));
  for (;;) {
    std::string sign;
    for (const char* known : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (sign.empty() && is_sign(known)) sign = known;
    }
    if (sign.empty() && is_name("in")) sign = "in";
    if (sign.empty() && is_name("not") && tokens_[at_ + 1].kind == Token::Kind::name && tokens_[at_ + 1].text == "in") {
      sign = "not in";
      ++at_;
    }
    if (sign.empty()) return left;
    ++at_;
    CTK_TRY(ExpressionPtr right, parse_signs(0));
    CTK_TRY(left, joined(std::move(sign), std::move(left), std::move(right)));
  }
}

// + and -, then ~, then * / // %, then **.
Result<ExpressionPtr> ExpressionParser::parse_signs(std::size_t level) {
  static const std::vector<std::vector<std::string_view>> kLevels = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}};
  if (level == kLevels.size()) return parse_unary();
  CTK_TRY(ExpressionPtr left, parse_signs(level + 1));
  for (;;) {
    const auto found = std::ranges::find_if(kLevels[level], [&](std::string_view sign) { return is_sign(sign); });
    if (found == kLevels[level].end()) return left;
    ++at_;
    CTK_TRY(ExpressionPtr right, parse_signs(level + 1));
    CTK_TRY(left, joined(std::string(*found), std::move(left), std::move(right)));
  }
}

Result<ExpressionPtr> ExpressionParser::parse_unary() {
  if (is_sign("-") || is_sign("+")) {
    CTK_CHECK(enter());
    ExpressionPtr e = make(Kind::unary, now().text);
    ++at_;
    CTK_TRY(ExpressionPtr operand, parse_unary());
    --depth_;
    e->operands.push_back(std::move(operand));
    return whole(std::move(e));
  }
  CTK_TRY(ExpressionPtr value, parse_primary());
  return parse_behind(std::move(value));
}

Result<ExpressionPtr> ExpressionParser::parse_primary() {
  const Token token = now();
  ExpressionPtr e = make(Kind::constant);
  if (token.kind == Token::Kind::string) {
    std::string text;
    while (now().kind == Token::Kind::string) text += tokens_[at_++].text;  // neighbours are one
    e->value = std::move(text);
    return e;
  }
  if (token.kind == Token::Kind::whole || token.kind == Token::Kind::real) {
    ++at_;
    e->value = token.kind == Token::Kind::whole ? Value(static_cast<std::int64_t>(std::stoll(token.text)))
                                                : Value(std::stod(token.text));
    return e;
  }
  if (token.kind == Token::Kind::name) {
    ++at_;
    if (token.text == "true" || token.text == "True") {
      e->value = true;
    } else if (token.text == "false" || token.text == "False") {
      e->value = false;
    } else if (token.text == "none" || token.text == "None") {
      e->value = None{};
    } else {
      e->kind = Kind::name;
      e->text = token.text;
    }
    return e;
  }
  if (take_sign("(")) {
    CTK_TRY(ExpressionPtr inner, parse_expression());
    if (is_sign(",")) {  // a tuple
      e->kind = Kind::list;
      e->operands.push_back(std::move(inner));
      while (take_sign(",") && !is_sign(")")) {
        CTK_TRY(ExpressionPtr more, parse_expression());
        e->operands.push_back(std::move(more));
      }
      CTK_CHECK(expect_sign(")"));
      return whole(std::move(e));
    }
    CTK_CHECK(expect_sign(")"));
    return inner;
  }
  if (take_sign("[")) {
    e->kind = Kind::list;
    while (!is_sign("]")) {
      CTK_TRY(ExpressionPtr item, parse_expression());
      e->operands.push_back(std::move(item));
      if (!take_sign(",")) break;
    }
    CTK_CHECK(expect_sign("]"));
    return whole(std::move(e));
  }
  if (take_sign("{")) {
    e->kind = Kind::map;
    while (!is_sign("}")) {
      CTK_TRY(ExpressionPtr key, parse_expression());
      CTK_CHECK(expect_sign(":"));
      CTK_TRY(ExpressionPtr value, parse_expression());
      e->operands.push_back(std::move(key));
      e->operands.push_back(std::move(value));
      if (!take_sign(",")) break;
    }
    CTK_CHECK(expect_sign("}"));
    return whole(std::move(e));
  }
  return fails("a value");
}

Result<ExpressionPtr> ExpressionParser::parse_behind(ExpressionPtr value) {
  for (;;) {
    ExpressionPtr e = make(Kind::attribute);
    if (take_sign(".")) {
      if (now().kind == Token::Kind::whole) {
        e->kind = Kind::item;
        ExpressionPtr index = make(Kind::constant);
        index->value = static_cast<std::int64_t>(std::stoll(tokens_[at_++].text));
        e->operands.push_back(std::move(value));
        e->operands.push_back(std::move(index));
      } else {
        CTK_TRY(e->text, expect_name());
        e->operands.push_back(std::move(value));
      }
    } else if (take_sign("[")) {
      CTK_CHECK(parse_subscript(*e, std::move(value)));
    } else if (is_sign("(")) {
      e->kind = Kind::call;
      e->operands.push_back(std::move(value));
      CTK_CHECK(parse_arguments(*e));
    } else if (take_sign("|")) {
      e->kind = Kind::filter;
      CTK_TRY(e->text, expect_name());
      e->operands.push_back(std::move(value));
      if (is_sign("(")) CTK_CHECK(parse_arguments(*e));
    } else if (take_name("is")) {
      CTK_TRY(value, parse_test(std::move(e), std::move(value)));
      continue;
    } else {
      return value;
    }
    CTK_TRY(value, whole(std::move(e)));
  }
}

Status ExpressionParser::parse_subscript(Expression& e, ExpressionPtr value) {
  std::vector<ExpressionPtr> parts(1);
  bool is_slice = false;
  while (!is_sign("]")) {
    if (take_sign(":")) {
      is_slice = true;
      parts.emplace_back();
      continue;
    }
    if (parts.back() != nullptr) return fails("\"]\" or \":\"");
    CTK_TRY(parts.back(), parse_expression());
  }
  ++at_;
  if (!is_slice && parts[0] == nullptr) return fails("an index", "\"]\"");
  if (parts.size() > 3) return fails("at most three parts of a slice", std::to_string(parts.size()));
  e.kind = is_slice ? Kind::slice : Kind::item;
  e.operands.push_back(std::move(value));
  for (ExpressionPtr& part : parts) e.operands.push_back(std::move(part));
  if (is_slice) e.operands.resize(4);
  return {};
}

Status ExpressionParser::parse_arguments(Expression& e) {
  CTK_CHECK(expect_sign("("));
  while (!is_sign(")")) {
    Argument argument;
    if (now().kind == Token::Kind::name && tokens_[at_ + 1].kind == Token::Kind::sign && tokens_[at_ + 1].text == "=") {
      argument.name = now().text;
      at_ += 2;
    }
    CTK_TRY(argument.value, parse_expression());
    e.arguments.push_back(std::move(argument));
    if (!take_sign(",")) break;
  }
  return expect_sign(")");
}

// "is not defined", "is equalto 3", "is in xs"
Result<ExpressionPtr> ExpressionParser::parse_test(ExpressionPtr test, ExpressionPtr value) {
  const bool is_negated = take_name("not");
  test->kind = Kind::test;
  CTK_TRY(test->text, expect_name());
  test->operands.push_back(std::move(value));
  const bool takes_one = test->text == "equalto" || test->text == "eq" || test->text == "ne" || test->text == "in" ||
                         test->text == "divisibleby";
  if (is_sign("(")) {
    CTK_CHECK(parse_arguments(*test));
  } else if (takes_one) {
    Argument argument;
    CTK_TRY(argument.value, parse_unary());
    test->arguments.push_back(std::move(argument));
  }
  if (!is_negated) return whole(std::move(test));
  ExpressionPtr e = make(Kind::unary, "not");
  e->operands.push_back(std::move(test));
  return whole(std::move(e));
}

}  // namespace ctk::data::chat

#include <set>

#include "data/chat/expression_parser.h"

namespace ctk::data::chat {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Result<Block> run() {
    CTK_TRY(Block block, parse_block({}));
    if (now().kind != Token::Kind::end) return fails("a statement", "the end of one that is not open");
    return block;
  }

 private:
  Status expect_block_end() {
    if (now().kind != Token::Kind::block_end) return fails("\"%}\"");
    ++at_;
    return {};
  }

  // Up to a tag that opens with one of `ends`, which is left at its name.
  Result<Block> parse_block(const std::set<std::string>& ends) {
    CTK_CHECK(enter());
    Block block;
    while (now().kind != Token::Kind::end) {
      Statement statement;
      statement.line = now().line;
      if (now().kind == Token::Kind::text) {
        statement.text = tokens_[at_++].text;
        block.push_back(std::move(statement));
        continue;
      }
      if (now().kind == Token::Kind::print_begin) {
        ++at_;
        statement.kind = Statement::Kind::print;
        CTK_TRY(statement.expression, parse_expression());
        if (now().kind != Token::Kind::print_end) return fails("an operator or \"}}\"");
        ++at_;
        block.push_back(std::move(statement));
        continue;
      }
      ++at_;  // block_begin
      if (now().kind != Token::Kind::name) return fails("a statement");
      if (ends.contains(now().text)) {
        --depth_;
        return block;
      }
      CTK_CHECK(parse_statement(statement, block));
    }
    --depth_;
    if (!ends.empty()) return fails("\"{% " + *ends.rbegin() + " %}\"");
    return block;
  }

  Status parse_statement(Statement& statement, Block& block) {
    CTK_TRY(const std::string word, expect_name());
    if (word == "if") {
      CTK_CHECK(parse_if(statement));
    } else if (word == "for") {
      CTK_CHECK(parse_for(statement));
    } else if (word == "set") {
      CTK_CHECK(parse_set(statement));
    } else if (word == "break" || word == "continue") {
      statement.kind = word == "break" ? Statement::Kind::leave : Statement::Kind::skip;
      CTK_CHECK(expect_block_end());
    } else if (word == "generation" || word == "endgeneration") {
      return expect_block_end();  // marks what a trainer learns from; prints nothing
    } else {
      --at_;
      return fails("if, for, set, break or continue");
    }
    block.push_back(std::move(statement));
    return {};
  }

  Status parse_if(Statement& statement) {
    statement.kind = Statement::Kind::branch;
    for (bool is_else = false;;) {
      Branch branch;
      if (!is_else) {
        CTK_TRY(branch.condition, parse_expression());
      }
      CTK_CHECK(expect_block_end());
      CTK_TRY(branch.body,
              parse_block(is_else ? std::set<std::string>{"endif"} : std::set<std::string>{"elif", "else", "endif"}));
      statement.branches.push_back(std::move(branch));
      CTK_TRY(const std::string word, expect_name());
      if (word == "endif") return expect_block_end();
      is_else = word == "else";
    }
  }

  Status parse_for(Statement& statement) {
    statement.kind = Statement::Kind::loop;
    const bool has_parenthesis = take_sign("(");
    do {
      CTK_TRY(std::string name, expect_name());
      statement.names.push_back(std::move(name));
    } while (take_sign(","));
    if (has_parenthesis) CTK_CHECK(expect_sign(")"));
    if (!take_name("in")) return fails("\"in\"");
    CTK_TRY(statement.expression, parse_or());  // "if" behind it is the loop's filter
    if (take_name("if")) {
      CTK_TRY(statement.condition, parse_expression());
    }
    if (is_name("recursive")) return fails("\"%}\"");
    CTK_CHECK(expect_block_end());
    CTK_TRY(statement.body, parse_block({"else", "endfor"}));
    CTK_TRY(const std::string word, expect_name());
    if (word == "endfor") return expect_block_end();
    CTK_CHECK(expect_block_end());
    CTK_TRY(statement.otherwise, parse_block({"endfor"}));
    ++at_;
    return expect_block_end();
  }

  Status parse_set(Statement& statement) {
    CTK_TRY(statement.text, expect_name());
    if (take_sign(".")) {
      CTK_TRY(statement.field, expect_name());
    }
    if (take_sign("=")) {
      statement.kind = Statement::Kind::set;
      CTK_TRY(statement.expression, parse_expression());
      return expect_block_end();
    }
    statement.kind = Statement::Kind::set_block;
    CTK_CHECK(expect_block_end());
    CTK_TRY(statement.body, parse_block({"endset"}));
    ++at_;
    return expect_block_end();
  }
};

}  // namespace

Result<Block> parse_template(std::string_view source) {
  CTK_TRY(std::vector<Token> tokens, cut(source));
  return Parser(std::move(tokens)).run();
}

}  // namespace ctk::data::chat

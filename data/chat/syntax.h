// A parsed chat template: expressions and statements. Internal to data/chat.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "data/chat/value.h"

namespace ctk::data::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Argument {
  std::string name;  // empty: by position
  ExpressionPtr value;
};

struct Expression {
  enum class Kind {
    constant,
    name,
    list,
    map,        // operands: key, value, key, value
    attribute,  // operands[0].text
    item,       // operands[0][operands[1]]
    slice,      // operands[0][operands[1]:operands[2]:operands[3]], parts may be null
    call,       // operands[0](arguments)
    filter,     // operands[0] | text(arguments)
    test,       // operands[0] is text(arguments)
    unary,      // text operands[0]
    binary,     // operands[0] text operands[1]
    choice,     // operands[1] if operands[0] else operands[2], which may be null
  };
  Kind kind = Kind::constant;
  std::string text;
  Value value;
  std::vector<ExpressionPtr> operands;
  std::vector<Argument> arguments;
  int line = 1;
  int height = 1;  // of the tree below
};

struct Statement;
using Block = std::vector<Statement>;

struct Branch {
  ExpressionPtr condition;  // null: else
  Block body;
};

struct Statement {
  enum class Kind { text, print, branch, loop, set, set_block, leave, skip };
  Kind kind = Kind::text;
  std::string text;                // of text; the name a `set` writes
  std::string field;               // `set ns.field = ...`
  std::vector<std::string> names;  // a loop's
  ExpressionPtr expression;        // printed, set, or looped over
  ExpressionPtr condition;         // `for x in xs if condition`
  std::vector<Branch> branches;    // of branch
  Block body, otherwise;           // of a loop: body, and what stands for an empty one
  int line = 1;
};

// Errors: input (line, expected, found).
Result<Block> parse_template(std::string_view source);

}  // namespace ctk::data::chat

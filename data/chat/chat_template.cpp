#include "data/chat/chat_template.h"

#include <cmath>
#include <optional>

#include "core/printable.h"
#include "data/chat/operations.h"

namespace ctk::data::chat {
namespace {

using Kind = Expression::Kind;

constexpr std::size_t kMostSteps = 10'000'000, kBytesAStep = 64;

enum class Flow { on, leave, skip };

class Interpreter {
 public:
  explicit Interpreter(Map globals) { scopes_.push_back(std::move(globals)); }

  Result<std::string> run(const Block& block) {
    CTK_TRY(const Flow flow, execute(block));
    if (flow != Flow::on) return input_error("expected break and continue within a loop, found one outside");
    return std::move(out_);
  }

 private:
  Error at(int line, Error error) const {
    if (is_placed_) return error;  // the innermost place is the one
    is_placed_ = true;
    return std::move(error).with_context("line " + std::to_string(line));
  }

  Status step() {
    if (++steps_ > kMostSteps)
      return input_error("expected at most " + std::to_string(kMostSteps) + " steps, found more. Shorten the messages");
    return {};
  }
  Status write(const std::string& text) {
    if (out_.size() + text.size() > kMostText)
      return input_error("expected a prompt of at most 64 MB, found more. Shorten the messages");
    out_ += text;
    return {};
  }

  const Value* look_up(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const Value* found = find(*scope, name)) return found;
    }
    return nullptr;
  }
  static void assign(Map& map, const std::string& name, Value value) {
    for (auto& [key, held] : map) {
      if (key == name) {
        held = std::move(value);
        return;
      }
    }
    map.emplace_back(name, std::move(value));
  }

  // ---- statements

  Result<Flow> execute(const Block& block) {
    for (const Statement& statement : block) {
      CTK_CHECK(step());
      auto flow = execute(statement);
      if (!flow) return at(statement.line, std::move(flow).error());
      if (*flow != Flow::on) return *flow;
    }
    return Flow::on;
  }

  Result<Flow> execute(const Statement& statement) {
    switch (statement.kind) {
      case Statement::Kind::text:
        CTK_CHECK(write(statement.text));
        return Flow::on;
      case Statement::Kind::print: {
        CTK_TRY(const Value value, evaluate(*statement.expression));
        CTK_CHECK(write(to_text(value)));
        return Flow::on;
      }
      case Statement::Kind::branch:
        for (const Branch& branch : statement.branches) {
          if (branch.condition != nullptr) {
            CTK_TRY(const Value condition, evaluate(*branch.condition));
            if (!is_true(condition)) continue;
          }
          return execute(branch.body);
        }
        return Flow::on;
      case Statement::Kind::loop:
        return loop(statement);
      case Statement::Kind::set: {
        CTK_TRY(Value value, evaluate(*statement.expression));
        return set(statement, std::move(value));
      }
      case Statement::Kind::set_block: {
        std::string before = std::move(out_);
        out_.clear();
        CTK_TRY(const Flow flow, execute(statement.body));
        std::string made = std::move(out_);
        out_ = std::move(before);
        if (flow != Flow::on) return flow;
        return set(statement, Value(std::move(made)));
      }
      case Statement::Kind::leave:
        return Flow::leave;
      case Statement::Kind::skip:
        return Flow::skip;
    }
    return Flow::on;
  }

  Result<Flow> set(const Statement& statement, Value value) {
    if (statement.field.empty()) {
      assign(scopes_.back(), statement.text, std::move(value));
      return Flow::on;
    }
    const Value* space = look_up(statement.text);
    if (space == nullptr || space->map() == nullptr)
      return input_error("set " + printable(statement.text) + "." + printable(statement.field) +
                         ": expected a namespace, found " + type_name(space != nullptr ? *space : Value()) +
                         ". Correct the template");
    assign(*space->map(), statement.field, std::move(value));
    return Flow::on;
  }

  Status bind(const Statement& statement, const Value& item) {
    Map& scope = scopes_.back();
    if (statement.names.size() == 1) {
      assign(scope, statement.names[0], item);
      return {};
    }
    const List* parts = item.list();
    if (parts == nullptr || parts->size() != statement.names.size())
      return input_error("a loop: expected " + std::to_string(statement.names.size()) + " values at a time, found " +
                         type_name(item) + ". Correct the template");
    for (std::size_t i = 0; i < parts->size(); ++i) assign(scope, statement.names[i], (*parts)[i]);
    return {};
  }

  Result<Flow> loop(const Statement& statement) {
    CTK_TRY(const Value over, evaluate(*statement.expression));
    CTK_TRY(List items, items_of(over));
    if (statement.condition != nullptr) {
      List kept;
      for (const Value& item : items) {
        scopes_.emplace_back();
        CTK_CHECK(bind(statement, item));
        CTK_TRY(const Value condition, evaluate(*statement.condition));
        scopes_.pop_back();
        if (is_true(condition)) kept.push_back(item);
      }
      items = std::move(kept);
    }
    if (items.empty()) return execute(statement.otherwise);
    const auto count = static_cast<std::int64_t>(items.size());
    for (std::int64_t i = 0; i < count; ++i) {
      CTK_CHECK(step());
      const auto index = static_cast<std::size_t>(i);
      scopes_.emplace_back();
      CTK_CHECK(bind(statement, items[index]));
      Map facts = {{"index", Value(i + 1)},        {"index0", Value(i)},
                   {"revindex", Value(count - i)}, {"revindex0", Value(count - i - 1)},
                   {"first", Value(i == 0)},       {"last", Value(i + 1 == count)},
                   {"length", Value(count)}};
      if (i > 0) facts.emplace_back("previtem", items[index - 1]);
      if (i + 1 < count) facts.emplace_back("nextitem", items[index + 1]);
      assign(scopes_.back(), "loop", Value(std::move(facts)));
      CTK_TRY(const Flow flow, execute(statement.body));
      scopes_.pop_back();
      if (flow == Flow::leave) break;
    }
    return Flow::on;
  }

  // ---- expressions

  Result<Value> evaluate(const Expression& e) {
    CTK_CHECK(step());
    auto value = evaluate_kind(e);
    if (!value) return at(e.line, std::move(value).error());
    // Long values take their share of the steps, so that work stays bounded.
    const auto* text = value->get<std::string>();
    const std::size_t size = text != nullptr ? text->size() : value->list() != nullptr ? value->list()->size() : 0;
    if (size > (text != nullptr ? kMostText : kMostItems))
      return at(e.line, input_error("expected texts of at most 64 MB and lists of at most a million, found more. "
                                    "Shorten the messages"));
    steps_ += size / kBytesAStep;
    return value;
  }

  Result<Value> evaluate_kind(const Expression& e) {
    switch (e.kind) {
      case Kind::constant:
        return e.value;
      case Kind::name: {
        const Value* found = look_up(e.text);
        return found != nullptr ? *found : Value(Undefined{e.text});
      }
      case Kind::list: {
        List items;
        for (const ExpressionPtr& operand : e.operands) {
          CTK_TRY(Value item, evaluate(*operand));
          items.push_back(std::move(item));
        }
        return Value(std::move(items));
      }
      case Kind::map: {
        Map map;
        for (std::size_t i = 0; i < e.operands.size(); i += 2) {
          CTK_TRY(const Value key, evaluate(*e.operands[i]));
          CTK_TRY(Value value, evaluate(*e.operands[i + 1]));
          assign(map, to_text(key), std::move(value));
        }
        return Value(std::move(map));
      }
      case Kind::attribute: {
        CTK_TRY(const Value container, evaluate(*e.operands[0]));
        return item_of(container, Value(e.text));
      }
      case Kind::item: {
        CTK_TRY(const Value container, evaluate(*e.operands[0]));
        CTK_TRY(const Value index, evaluate(*e.operands[1]));
        return item_of(container, index);
      }
      case Kind::slice:
        return slice(e);
      case Kind::call:
        return call(e);
      case Kind::filter: {
        CTK_TRY(const Value value, evaluate(*e.operands[0]));
        CTK_TRY(const Given given, arguments(e));
        return apply_filter(e.text, value, given);
      }
      case Kind::test: {
        CTK_TRY(const Value value, evaluate(*e.operands[0]));
        CTK_TRY(const Given given, arguments(e));
        CTK_TRY(const bool holds, apply_test(e.text, value, given));
        return Value(holds);
      }
      case Kind::unary:
        return unary(e);
      case Kind::binary:
        return binary(e);
      case Kind::choice: {
        CTK_TRY(const Value condition, evaluate(*e.operands[0]));
        if (is_true(condition)) return evaluate(*e.operands[1]);
        return e.operands[2] != nullptr ? evaluate(*e.operands[2]) : Result<Value>(Value());
      }
    }
    return Value();
  }

  Result<Given> arguments(const Expression& e) {
    Given given;
    for (const Argument& argument : e.arguments) {
      CTK_TRY(Value value, evaluate(*argument.value));
      if (argument.name.empty()) {
        given.by_place.push_back(std::move(value));
      } else {
        given.by_name.emplace_back(argument.name, std::move(value));
      }
    }
    return given;
  }

  Result<Value> slice(const Expression& e) {
    CTK_TRY(const Value container, evaluate(*e.operands[0]));
    std::optional<Value> parts[3];
    for (std::size_t i = 0; i < 3; ++i) {
      if (e.operands[i + 1] == nullptr) continue;
      CTK_TRY(parts[i], evaluate(*e.operands[i + 1]));
    }
    const auto part = [&](std::size_t i) { return parts[i] ? &*parts[i] : nullptr; };
    return slice_of(container, part(0), part(1), part(2));
  }

  Result<Value> call(const Expression& e) {
    const Expression& callee = *e.operands[0];
    CTK_TRY(const Given given, arguments(e));
    if (callee.kind == Kind::attribute) {
      CTK_TRY(const Value self, evaluate(*callee.operands[0]));
      return call_method(callee.text, self, given);
    }
    if (callee.kind == Kind::name && look_up(callee.text) == nullptr) {
      if (callee.text == "raise_exception") {
        return input_error("the template refuses these messages: " +
                           (given.by_place.empty() ? "" : printable(to_text(given.by_place[0]))));
      }
      if (callee.text == "namespace" || callee.text == "dict") {
        Map map;
        for (const auto& [name, value] : given.by_name) assign(map, name, value);
        return Value(std::move(map));
      }
      if (callee.text == "range") return range_of(given);
    }
    return input_error("a call: expected raise_exception, namespace, dict, range or a method, found " +
                       (callee.kind == Kind::name ? "\"" + printable(callee.text) + "\"" : "something else") +
                       ". Change the template, or write the prompt out and use --prompt");
  }

  Result<Value> unary(const Expression& e) {
    CTK_TRY(const Value value, evaluate(*e.operands[0]));
    if (e.text == "not") return Value(!is_true(value));
    return arithmetic(e.text, Value(std::int64_t{0}), value);  // -x is 0 - x
  }

  Result<Value> binary(const Expression& e) {
    CTK_TRY(const Value a, evaluate(*e.operands[0]));
    if (e.text == "and") return is_true(a) ? evaluate(*e.operands[1]) : Result<Value>(a);
    if (e.text == "or") return is_true(a) ? Result<Value>(a) : evaluate(*e.operands[1]);
    CTK_TRY(const Value b, evaluate(*e.operands[1]));
    if (e.text == "==") return Value(are_equal(a, b));
    if (e.text == "!=") return Value(!are_equal(a, b));
    if (e.text == "in" || e.text == "not in") {
      CTK_TRY(const bool is_in, contains(b, a));
      return Value(is_in == (e.text == "in"));
    }
    if (e.text == "~") return Value(to_text(a) + to_text(b));
    return arithmetic(e.text, a, b);
  }

  std::vector<Map> scopes_;
  std::string out_;
  std::size_t steps_ = 0;
  mutable bool is_placed_ = false;
};

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  ChatTemplate made;
  auto block = parse_template(source);
  if (!block) return std::move(block).error().with_context("chat template");
  made.block_ = std::move(*block);
  return made;
}

Result<std::string> ChatTemplate::render(const std::vector<Message>& messages,
                                         const std::map<std::string, std::string>& tokens,
                                         bool add_generation_prompt) const {
  Map globals;
  List list;
  for (const Message& message : messages)
    list.emplace_back(Map{{"role", Value(message.role)}, {"content", Value(message.content)}});
  globals.emplace_back("messages", Value(std::move(list)));
  globals.emplace_back("tools", Value(None{}));
  globals.emplace_back("documents", Value(None{}));
  globals.emplace_back("add_generation_prompt", Value(add_generation_prompt));
  for (const auto& [name, token] : tokens) globals.emplace_back(name, Value(token));
  auto text = Interpreter(std::move(globals)).run(block_);
  if (!text) return std::move(text).error().with_context("chat template");
  return text;
}

}  // namespace ctk::data::chat

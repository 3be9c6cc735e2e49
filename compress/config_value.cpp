// One value of the pipeline file against its row of the table.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "compress/config_schema.h"
#include "compress/nearest_key.h"
#include "compress/patterns.h"

namespace ctk::pipeline {
namespace {

class ValueCheck {
 public:
  ValueCheck(const KeyRow& row, const Place& place, CheckedValues& into) : row_(row), place_(place), into_(into) {}

  std::optional<KeyValue> run(const YamlNode& node) {
    switch (row_.kind) {
      case ValueKind::text:
      case ValueKind::path:
        return text(node);
      case ValueKind::target:
        return target(node);
      case ValueKind::boolean:
        return boolean(node);
      case ValueKind::integer:
        return integer(node);
      case ValueKind::number:
        return wrapped(number(node));
      case ValueKind::size:
        return parsed(node, parse_size);
      case ValueKind::latency:
        return parsed(node, parse_latency);
      case ValueKind::drop:
        return parsed(node, parse_drop);
      case ValueKind::name:
        if (!scalar(node) || !check_name(node)) return {};
        return node.text;
      case ValueKind::scheme:
        if (!scalar(node) || !check_scheme(node)) return {};
        return node.text;
      case ValueKind::name_list:
        return texts(node, [this](const YamlNode& item) { return check_name(item); });
      case ValueKind::scheme_list:
        return texts(node, [this](const YamlNode& item) { return check_scheme(item); });
      case ValueKind::text_list:
        return texts(node, [this](const YamlNode& item) { return check_pattern_text(item); });
      case ValueKind::number_list:
        return numbers(node);
      case ValueKind::text_map:
        return text_map(node);
      case ValueKind::section:
      case ValueKind::stage_list:
        break;
    }
    return {};
  }

 private:
  template <class T>
  static std::optional<KeyValue> wrapped(std::optional<T> value) {
    if (!value) return {};
    return KeyValue(std::move(*value));
  }

  bool fail(const YamlNode& node, std::string message) {
    into_.problems.push_back({node.where.empty() ? place_.where : node.where, place_.path, std::move(message)});
    return false;
  }
  void unavailable(const YamlNode& node, const std::string& what, std::string_view needs) {
    into_.unavailable.push_back({node.where.empty() ? place_.where : node.where, place_.path,
                                 what + " needs " + std::string(needs) +
                                     ", which this version does not have yet. Leave it out or choose another."});
  }
  bool wrong_type(const YamlNode& node) {
    return fail(node, "expected " + std::string(title_of(row_.kind)) + ", found " + describe(node) + remedy(node));
  }
  static std::string remedy(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::null) return ". Give the key a value, or remove the key.";
    if (node.kind == YamlNode::Kind::scalar) return ". Mend the value.";
    return ". Write one value.";
  }
  bool scalar(const YamlNode& node) {
    return node.kind == YamlNode::Kind::scalar && !node.text.empty() ? true : wrong_type(node);
  }

  std::optional<KeyValue> text(const YamlNode& node) {
    if (!scalar(node)) return {};
    // Words of a key, by the end of its path.
    constexpr std::pair<std::string_view, std::array<std::string_view, 6>> kWords[] = {
        {"data.*.on_bad_sample", {"error", "skip"}},
        {".on_refusal", {"stop", "continue"}},
        {"stages.search.groups", {"auto", "none"}},
        {"budget.minimize", {"size", "latency", "peak_memory", "bits", "latency.decode", "latency.prefill"}},
        {".optimizer", {"sgd", "adam", "adamw"}},
        {".feature_loss", {"mse", "attention", "attention_probabilities"}},
        {".autocast", {"none", "bf16", "forced_bf16"}},
        {"qat.ranges", {"fixed", "learned", "clipped"}},
        {".student.depth", {"every_second"}},
        {".schedule", {"cosine", "step", "constant"}},
        {"stages.prune.ratios", {"auto", "uniform", "global", "sensitivity", "timed", "joint"}},
    };
    for (const auto& [path, words] : kWords) {
      if (!row_.path.ends_with(path) || std::ranges::count(words, std::string_view(node.text)) != 0) continue;
      std::string list;
      for (std::size_t i = 0; i < words.size() && !words[i].empty(); ++i) {
        const bool is_last = i + 1 == words.size() || words[i + 1].empty();
        list += (i == 0 ? "" : is_last ? " or " : ", ") + std::string(words[i]);
      }
      fail(node, "expected " + list + ", found \"" + node.text + "\". Choose one of them.");
      return {};
    }
    if (row_.path == "stages.prune.round_to" && node.text != "auto" &&
        (node.text.size() > 4 || node.text.find_first_not_of("0123456789") != std::string::npos ||
         node.text.find_first_not_of('0') == std::string::npos)) {
      fail(node, "expected auto or a count of channels from 1 to 9999, found \"" + node.text + "\". Give one of them.");
      return {};
    }
    return node.text;
  }

  std::optional<KeyValue> target(const YamlNode& node) {
    if (!scalar(node)) return {};
    if (node.text.ends_with(".yaml") || node.text.ends_with(".yml")) return node.text;
    if (!check_name(node)) return {};
    return node.text;
  }

  std::optional<KeyValue> boolean(const YamlNode& node) {
    const std::string& text = node.text;
    if (node.kind == YamlNode::Kind::scalar && !node.is_quoted) {
      if (text == "true" || text == "True") return true;
      if (text == "false" || text == "False") return false;
    }
    wrong_type(node);
    return {};
  }

  std::string range(std::string_view kind) const {
    const bool has_least = row_.least > -std::numeric_limits<double>::max();
    const bool has_most = row_.most < 1e11;
    const bool is_above_zero = row_.least == std::numeric_limits<double>::min();
    std::string text(kind);
    if (is_above_zero) {
      text += " above 0";
      if (has_most) text += " and at most " + to_text(row_.most);
    } else if (has_least && has_most) {
      text += " from " + to_text(row_.least) + " to " + to_text(row_.most);
    } else if (has_least) {
      text += " of at least " + to_text(row_.least);
    }
    return text;
  }

  std::optional<KeyValue> integer(const YamlNode& node) {
    std::int64_t value = 0;
    if (!unquoted(node, "an integer")) return {};
    const char* last = node.text.data() + node.text.size();
    const auto [end, error] = std::from_chars(node.text.data(), last, value);
    if (error == std::errc::invalid_argument || end != last) {
      wrong_type(node);
      return {};
    }
    const double as_double = static_cast<double>(value);
    if (error != std::errc() || as_double < row_.least || as_double > row_.most) {
      fail(node, "expected " + range("an integer") + ", found \"" + node.text + "\". Choose a value in that range.");
      return {};
    }
    return value;
  }

  bool unquoted(const YamlNode& node, const std::string& kind) {
    if (!scalar(node)) return false;
    if (node.is_quoted && parse_number(node.text)) {
      return fail(node, "expected " + kind + ", found the text \"" + node.text + "\". Remove the quotes.");
    }
    return true;
  }

  std::optional<double> number(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::scalar) {
      fail(node, "expected a number, found " + describe(node) + remedy(node));
      return {};
    }
    if (!unquoted(node, "a number")) return {};
    const Result<double> value = parse_number(node.text);
    if (!value) {
      fail(node, value.error().message);
      return {};
    }
    if (*value < row_.least || *value > row_.most) {
      fail(node, "expected " + range("a number") + ", found \"" + node.text + "\". Choose a value in that range.");
      return {};
    }
    return *value;
  }

  template <class T>
  std::optional<KeyValue> parsed(const YamlNode& node, Result<T> (*parse)(std::string_view)) {
    if (!scalar(node)) return {};
    const Result<T> value = parse(node.text);
    if (!value) {
      fail(node, value.error().message);
      return {};
    }
    return *value;
  }

  static std::string advice(std::string guess) { return guess.empty() ? ". Choose one of the known." : guess; }

  bool check_name(const YamlNode& node) {
    const NameRow* found = find_name(*row_.names, node.text);
    const std::string title(title_of(*row_.names));
    if (found != nullptr) {
      if (!found->needs.empty()) unavailable(node, title + " \"" + node.text + "\"", found->needs);
      return true;
    }
    const std::vector<std::string_view> known = list_names(*row_.names);
    std::string list;
    for (const std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
    return fail(node, "expected a known " + title + " (" + list + "), found \"" + node.text + "\"" +
                          advice(did_you_mean(node.text, known)));
  }

  bool check_scheme(const YamlNode& node) {
    const Result<QuantScheme> scheme = parse_scheme(node.text);
    if (!scheme) {
      return fail(node, scheme.error().message + advice(did_you_mean(node.text, list_names(NameKind::scheme))));
    }
    const std::string_view needs = scheme_needs(*scheme);
    if (!needs.empty()) unavailable(node, "scheme \"" + node.text + "\"", needs);
    return true;
  }

  bool check_pattern_text(const YamlNode& node) {
    const Status status = check_pattern(node.text);
    return status ? true : fail(node, status.error().message);
  }

  template <class Check>
  std::optional<KeyValue> texts(const YamlNode& node, Check&& check) {
    if (node.kind != YamlNode::Kind::list) {
      std::string remedy = node.kind == YamlNode::Kind::scalar ? ". Write [" + node.text + "]." : "";
      fail(node, "expected " + std::string(title_of(row_.kind)) + ", found " + describe(node) + remedy);
      return {};
    }
    const bool may_be_empty = row_.fallback != "!";
    if (node.items.empty() && !may_be_empty) {
      fail(node, "expected " + std::string(title_of(row_.kind)) + ", found an empty list. Add one, or remove the key.");
      return {};
    }
    std::vector<std::string> list;
    bool is_good = true;
    for (const YamlNode& item : node.items) {
      if (item.kind != YamlNode::Kind::scalar || item.text.empty()) {
        is_good = fail(item, "expected a word, found " + describe(item) + ". Write one word.");
      } else if (std::ranges::find(list, item.text) != list.end()) {
        is_good = fail(item, "expected each entry once, found \"" + item.text + "\" again. Remove one.");
      } else if (!check(item)) {
        is_good = false;
      } else {
        list.push_back(item.text);
      }
    }
    if (!is_good) return {};
    return list;
  }

  std::optional<KeyValue> numbers(const YamlNode& node) {
    std::vector<double> list;
    if (node.kind == YamlNode::Kind::scalar) {
      const auto value = number(node);
      if (!value) return {};
      list.push_back(*value);
      return list;
    }
    if (node.kind != YamlNode::Kind::list || node.items.empty()) {
      fail(node, "expected a number or a list of numbers, found " + describe(node) + ". Write one, or [1, 2, 3].");
      return {};
    }
    bool is_good = true;
    for (const YamlNode& item : node.items) {
      const auto value = number(item);
      is_good = is_good && value.has_value();
      if (value) list.push_back(*value);
    }
    if (!is_good) return {};
    return list;
  }

  std::optional<KeyValue> text_map(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::map || node.entries.empty()) {
      fail(node, "expected a map like {input: x}, found " + describe(node) + ". Write one.");
      return {};
    }
    PairList pairs;
    bool is_good = true;
    for (const auto& [key, child] : node.entries) {
      const bool is_repeated = std::ranges::any_of(pairs, [&](const auto& pair) { return pair.first == key.text; });
      if (is_repeated) is_good = fail(child, "expected each key once, found \"" + key.text + "\" again. Remove one.");
      if (!scalar(child)) is_good = false;
      pairs.emplace_back(key.text, child.text);
    }
    if (!is_good) return {};
    return pairs;
  }

  const KeyRow& row_;
  const Place& place_;
  CheckedValues& into_;
};

}  // namespace

std::optional<KeyValue> check_value(const YamlNode& node, const KeyRow& row, const Place& place, CheckedValues& into) {
  return ValueCheck(row, place, into).run(node);
}

}  // namespace ctk::pipeline

// Parses the lines of a graph. The grammar stands in graph/text.h.
#include <cmath>
#include <limits>
#include <unordered_map>

#include "graph/text_scan.h"

namespace ctk::graph {
namespace text {
namespace {

// Attributes::set() searches linearly, so a limit keeps a hostile line from costing quadratic time.
constexpr std::size_t kMaxAttributes = 1024;

class Parser {
 public:
  Parser(std::string_view text, ConstantSource* source) : cursor_(text), source_(source) {}

  Result<Graph> run() {
    cursor_.skip_empty_lines();
    CTK_CHECK(parse_header());
    for (cursor_.skip_empty_lines(); !cursor_.at_end(); cursor_.skip_empty_lines()) {
      CTK_CHECK(parse_line());
      CTK_CHECK(cursor_.end_line());
    }
    CTK_CHECK(resolve_absorptions());
    CTK_CHECK(verify(graph_));
    return std::move(graph_);
  }

 private:
  // "into TARGET" may look ahead, so it is resolved when all nodes are known.
  struct Absorption {
    NodeId node;
    std::string value;  // empty when `number` counts
    std::int64_t number = 0;
    Cursor place;
  };

  Status parse_header();
  Status parse_line();
  Status parse_input();
  Status parse_constant();
  Status parse_quantized(ValueId id);
  Status parse_node();
  Status parse_attributes(Attributes& attributes);
  Status parse_notes(Node& node, Absorption& absorption);
  Result<ValueId> parse_declaration();
  Result<DeclaredShape> parse_declared_shape();
  Result<ValueId> parse_reference();
  Status parse_references(std::vector<ValueId>& ids, bool may_omit);
  Status resolve_absorptions();

  Cursor cursor_;
  ConstantSource* source_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> by_name_;  // the graph's own index is ordered, hence slower
  std::string word_;                                  // scratch
  std::vector<bool> is_input_, is_output_;
  std::vector<Absorption> absorptions_;
};

constexpr int kMinInt = std::numeric_limits<int>::min(), kMaxInt = std::numeric_limits<int>::max();

Status Parser::parse_header() {
  CTK_CHECK(cursor_.expect_keyword("graph"));
  CTK_CHECK(cursor_.string(graph_.name));
  CTK_CHECK(cursor_.expect_keyword("ir"));
  CTK_CHECK(cursor_.integer(graph_.ir_version, kMinInt, kMaxInt));
  CTK_CHECK(cursor_.expect_keyword("opset"));
  CTK_CHECK(cursor_.integer(graph_.opset, kMinInt, kMaxInt));
  return cursor_.end_line();
}

Status Parser::parse_line() {
  const char first = cursor_.peek();
  if (first == '%' || first == '_' || first == '=') return parse_node();
  if (cursor_.take_keyword("const")) return parse_constant();
  if (cursor_.take_keyword("in")) return parse_input();
  if (cursor_.take_keyword("value")) {
    CTK_TRY([[maybe_unused]] const ValueId id, parse_declaration());
    return {};
  }
  if (cursor_.take_keyword("out")) {
    CTK_TRY(const ValueId id, parse_reference());
    is_output_.resize(graph_.value_capacity(), false);
    if (is_output_[id.index]) return cursor_.wrong("\"" + word_ + "\" is an output already");
    is_output_[id.index] = true;
    graph_.add_output(id);
    return {};
  }
  if (cursor_.take_keyword("opset")) {
    CTK_CHECK(cursor_.string(word_));
    int version = 0;
    CTK_CHECK(cursor_.integer(version, kMinInt, kMaxInt));
    if (!graph_.other_opsets.emplace(word_, version).second)
      return cursor_.wrong("a second opset for \"" + word_ + "\"");
    return {};
  }
  if (cursor_.take_keyword("meta")) {
    auto& [key, value] = graph_.metadata.emplace_back();
    CTK_CHECK(cursor_.string(key));
    return cursor_.string(value);
  }
  if (cursor_.take_keyword("note")) return cursor_.string(graph_.reader_notes.emplace_back());
  return cursor_.expected("opset, meta, note, in, const, value, out or a node");
}

Status Parser::parse_input() {
  // A name alone refers to a constant above; with a type it declares the value.
  Cursor ahead = cursor_;
  CTK_CHECK(ahead.expect('%'));
  CTK_CHECK(ahead.word(word_, true));
  ValueId id;
  if (ahead.peek() == ':') {
    CTK_TRY(id, parse_declaration());
  } else {
    CTK_TRY(id, parse_reference());
    if (graph_.value(id).producer.is_valid()) return cursor_.wrong("\"" + word_ + "\" is produced by a node");
  }
  is_input_.resize(graph_.value_capacity(), false);
  if (is_input_[id.index]) return cursor_.wrong("\"" + word_ + "\" is an input already");
  is_input_[id.index] = true;
  graph_.add_input(id);
  return {};
}

Status Parser::parse_constant() {
  CTK_TRY(const ValueId id, parse_declaration());
  CTK_CHECK(cursor_.expect('='));
  if (!cursor_.take_keyword("quant")) {
    const Value& value = graph_.value(id);
    CTK_TRY(Tensor tensor, parse_tensor(cursor_, source_, &value.dtype, value.shape ? &*value.shape : nullptr));
    graph_.value(id).constant = std::move(tensor);
    if (!cursor_.take_keyword("quant")) return {};
  }
  return parse_quantized(id);
}

// Number of per-channel scales of `shape`, 0 when axis or groups do not fit it.
std::int64_t channel_count(const Shape& shape, int axis, int groups) {
  if (static_cast<std::size_t>(axis) >= shape.size()) return 0;
  if (groups > 1 && (shape[0] % groups != 0 || axis == 0)) return 0;
  std::int64_t channels = 0;
  if (__builtin_mul_overflow(shape[static_cast<std::size_t>(axis)], static_cast<std::int64_t>(groups), &channels))
    return 0;
  return channels;
}

Status Parser::parse_quantized(ValueId id) {
  auto weight = std::make_shared<QuantTensor>();
  CTK_CHECK(cursor_.expect('('));
  const Cursor before = cursor_;
  auto scheme = parse_scheme(cursor_.bare_word());
  if (!scheme || scheme->weight_bits > 16) return before.expected("a scheme with stored weights, like w8a8_c or fp16");
  const bool is_half = !scheme->is_integer_weight();  // fp16: the codes are the numbers, scales are empty
  weight->scheme = *scheme;
  CTK_CHECK(cursor_.expect(','));
  CTK_CHECK(cursor_.expect_keyword("axis"));
  CTK_CHECK(cursor_.integer(weight->channel_axis, 0, kMaxInt));
  CTK_CHECK(cursor_.expect(','));
  CTK_CHECK(cursor_.expect_keyword("groups"));
  CTK_CHECK(cursor_.integer(weight->group_count, 1, kMaxInt));
  CTK_CHECK(cursor_.expect(','));
  CTK_CHECK(cursor_.string(weight->method));
  CTK_CHECK(cursor_.expect(')'));
  CTK_TRY(weight->codes, parse_tensor(cursor_, source_));
  const Tensor& codes = weight->codes;
  const DType width = is_half ? DType::f16 : code_dtype(scheme->weight_bits);
  if (!codes.is_defined() || codes.dtype() != width) {
    return cursor_.wrong("codes of " + to_string(*scheme) + " must be " + std::string(name_of(width)));
  }
  CTK_CHECK(cursor_.expect_keyword("scales"));
  CTK_TRY(Tensor scales, parse_tensor(cursor_, source_));
  const bool is_float = scales.is_defined() && (scales.dtype() == DType::f32 || scales.dtype() == DType::f16);
  if (!is_float || scales.shape().size() != 1) return cursor_.wrong("scales must be f32 or f16 with one dimension");
  CTK_TRY(scales, to_f32(scales));
  const std::int64_t channels = channel_count(codes.shape(), weight->channel_axis, weight->group_count);
  const auto count = static_cast<std::int64_t>(scales.size());
  const bool is_grouped = scheme->granularity == Granularity::per_group;
  const auto groups = static_cast<std::int64_t>(groups_of(codes.shape(), weight->channel_axis, *scheme));
  const bool has_groups = is_grouped && codes.shape().size() == 2 && weight->group_count == 1;
  const bool fits = is_half      ? count == 0
                    : is_grouped ? has_groups && channels > 0 && count == channels * groups
                                 : count == 1 || (channels > 0 && count == channels);
  // One scale serves any shape, but axis and groups must still mean something for those who read them.
  const bool has_axis = channels > 0 || (count == 1 && codes.shape().empty() && weight->channel_axis == 0);
  if (!fits || !(has_axis || codes.size() == 0)) {
    return cursor_.wrong(std::to_string(count) + " scales, axis " + std::to_string(weight->channel_axis) + " and " +
                         std::to_string(weight->group_count) + " groups do not fit codes of shape " +
                         ctk::to_string(codes.shape()));
  }
  // Scales printed by hash come back as zeros: there is nothing to check then.
  const bool is_known = source_ != nullptr || scales.size() <= kInlineElements;
  for (float scale : scales.values<float>()) {
    const bool has_sign = scheme->is_integer_activation() ? scale > 0 : scale != 0;
    if (is_known && !(std::isfinite(scale) && has_sign))
      return cursor_.wrong(scheme->is_integer_activation() ? "weight scales must be finite and above 0"
                                                           : "weight scales must be finite and not 0");
  }
  if (scheme->is_affine) {
    CTK_CHECK(cursor_.expect_keyword("zeros"));
    CTK_TRY(const Tensor zeros, parse_tensor(cursor_, source_));
    if (!zeros.is_defined() || zeros.dtype() != width || zeros.size() != scales.size())
      return cursor_.wrong("zeros must be " + std::string(name_of(width)) + ", one beside each scale");
    CTK_TRY(const std::vector<std::int64_t> values, to_i64(zeros));
    weight->zeros.assign(values.begin(), values.end());
  }
  weight->scales.assign(scales.values<float>().begin(), scales.values<float>().end());
  graph_.value(id).quantized = std::move(weight);
  return {};
}

Result<DeclaredShape> Parser::parse_declared_shape() {
  DeclaredShape shape;
  CTK_CHECK(cursor_.expect('['));
  if (cursor_.take(']')) return shape;
  do {
    Dim dim;
    const char first = cursor_.peek();
    const bool is_symbol = first != '?' && !(first >= '0' && first <= '9');
    if (is_symbol) CTK_CHECK(cursor_.word(dim.symbol));
    if (!is_symbol || cursor_.take('=')) {
      if (is_symbol || !cursor_.take('?')) {
        CTK_CHECK(cursor_.integer<std::int64_t>(dim.size, 0, std::numeric_limits<std::int64_t>::max()));
      }
    }
    shape.push_back(std::move(dim));
  } while (cursor_.take(','));
  CTK_CHECK(cursor_.expect(']'));
  return shape;
}

// "%name: dtype [dims]? q8(...)?"
Result<ValueId> Parser::parse_declaration() {
  CTK_CHECK(cursor_.expect('%'));
  std::string name;
  CTK_CHECK(cursor_.word(name, true));
  if (name.empty()) return cursor_.wrong("a value has an empty name");
  if (by_name_.contains(name)) return cursor_.wrong("a second value named \"" + name + "\"");
  CTK_CHECK(cursor_.expect(':'));
  const Cursor before = cursor_;
  const auto dtype = dtype_from_name(cursor_.bare_word());
  if (!dtype) return before.expected("a dtype");
  std::optional<DeclaredShape> shape;
  if (cursor_.peek() == '[') {
    CTK_TRY(shape, parse_declared_shape());
  }
  const ValueId id = graph_.add_value(name, *dtype, std::move(shape));
  by_name_.emplace(std::move(name), id);
  if (cursor_.take_keyword("q8")) {
    ActivationQuant note;
    int zero_point = 0;
    CTK_CHECK(cursor_.expect('('));
    CTK_CHECK(cursor_.real(note.scale));
    if (!(std::isfinite(note.scale) && note.scale > 0)) return cursor_.wrong("a scale must be finite and above 0");
    CTK_CHECK(cursor_.expect(','));
    CTK_CHECK(cursor_.integer(zero_point, 0, 255));
    CTK_CHECK(cursor_.expect(')'));
    note.zero_point = static_cast<std::uint8_t>(zero_point);
    graph_.value(id).activation_quant = note;
  }
  return id;
}

// "%name" of a value declared above; the name stays in word_.
Result<ValueId> Parser::parse_reference() {
  CTK_CHECK(cursor_.expect('%'));
  CTK_CHECK(cursor_.word(word_, true));
  const auto found = by_name_.find(word_);
  if (found == by_name_.end()) return cursor_.wrong("no value named \"" + word_ + "\" stands above this line");
  return found->second;
}

Status Parser::parse_references(std::vector<ValueId>& ids, bool may_omit) {
  CTK_CHECK(cursor_.expect('('));
  if (cursor_.take(')')) return {};
  do {
    if (may_omit && cursor_.take('_')) {
      ids.emplace_back();
      continue;
    }
    CTK_TRY(const ValueId id, parse_reference());
    ids.push_back(id);
  } while (cursor_.take(','));
  return cursor_.expect(')');
}

Status Parser::parse_attributes(Attributes& attributes) {
  std::string name;
  do {
    CTK_CHECK(cursor_.word(name));
    if (attributes.find(name) != nullptr) return cursor_.wrong("a second attribute \"" + name + "\"");
    if (attributes.items().size() >= kMaxAttributes) return cursor_.wrong("a node with too many attributes");
    CTK_CHECK(cursor_.expect('='));
    CTK_TRY(Attribute attribute, parse_attribute(cursor_, source_));
    attributes.set(name, std::move(attribute));
  } while (cursor_.take(','));
  return cursor_.expect('}');
}

// captures(...) into TARGET scheme S @name, each optional.
Status Parser::parse_notes(Node& node, Absorption& absorption) {
  if (cursor_.take_keyword("captures")) CTK_CHECK(parse_references(node.captured, false));
  if (cursor_.take_keyword("into")) {
    absorption.place = cursor_;
    absorption.number = -1;
    if (cursor_.take('#')) {
      CTK_CHECK(cursor_.integer<std::int64_t>(absorption.number, 0, 0xffffffff));
    } else {
      CTK_CHECK(cursor_.expect('%'));
      CTK_CHECK(cursor_.word(absorption.value, true));
    }
  }
  if (cursor_.take_keyword("scheme")) {
    const Cursor before = cursor_;
    auto scheme = parse_scheme(cursor_.bare_word());
    if (!scheme) return before.expected("a scheme like w8a8_c");
    node.scheme = *scheme;
  }
  if (cursor_.take('@')) CTK_CHECK(cursor_.word(node.name, true));
  return {};
}

Status Parser::parse_node() {
  Node node;
  if (cursor_.peek() != '=') {
    do {
      if (cursor_.take('_')) {
        node.outputs.emplace_back();
        continue;
      }
      CTK_TRY(const ValueId id, parse_declaration());
      node.outputs.push_back(id);
    } while (cursor_.take(','));
  }
  CTK_CHECK(cursor_.expect('='));
  CTK_CHECK(cursor_.word(node.op_type));
  if (cursor_.take(':')) {
    CTK_CHECK(cursor_.expect(':'));
    node.domain = std::move(node.op_type);
    CTK_CHECK(cursor_.word(node.op_type));
  }
  CTK_CHECK(parse_references(node.inputs, true));
  if (cursor_.take('{')) CTK_CHECK(parse_attributes(node.attributes));
  Absorption absorption{{}, {}, -2, cursor_};
  CTK_CHECK(parse_notes(node, absorption));
  const NodeId id = graph_.add_node(std::move(node));
  if (absorption.number != -2) {
    absorption.node = id;
    absorptions_.push_back(std::move(absorption));
  }
  return {};
}

Status Parser::resolve_absorptions() {
  for (const Absorption& absorption : absorptions_) {
    NodeId target;
    if (absorption.number >= 0) {
      if (static_cast<std::size_t>(absorption.number) >= graph_.node_capacity()) {
        return absorption.place.wrong("there is no node #" + std::to_string(absorption.number));
      }
      target.index = static_cast<std::uint32_t>(absorption.number);
    } else {
      const auto value = graph_.find_value(absorption.value);
      if (value) target = graph_.value(*value).producer;
      if (!target.is_valid()) return absorption.place.wrong("no node produces \"" + absorption.value + "\"");
    }
    graph_.node(absorption.node).absorbed_by = target;
  }
  // Whoever follows the notes must come to an end.
  std::vector<std::uint32_t> seen_from(graph_.node_capacity(), NodeId::kNone);
  for (const Absorption& absorption : absorptions_) {
    for (NodeId at = absorption.node; at.is_valid(); at = graph_.node(at).absorbed_by) {
      if (seen_from[at.index] == absorption.node.index)
        return absorption.place.wrong("nodes absorb each other in a circle");
      if (seen_from[at.index] != NodeId::kNone) break;
      seen_from[at.index] = absorption.node.index;
    }
  }
  return {};
}

}  // namespace
}  // namespace text

Result<Graph> parse_graph(std::string_view text, ConstantSource* source) {
  return text::Parser(text, source).run();
}

}  // namespace ctk::graph

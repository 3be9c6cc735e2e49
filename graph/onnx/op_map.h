// One row per known operator: since when ONNX has it, which attributes it takes in which opsets, and how its older
// forms are turned into the form of opset 24 (normalize) and back (lower). Internal to graph/onnx.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/op_forms.h"

namespace ctk::graph::onnx {

enum class AttributeKind { integer, real, text, integers, reals, texts, tensor, other };

struct AttributeRule {
  std::string_view name;
  AttributeKind kind;
  int since = 9;   // first opset with this attribute
  int until = 24;  // last one
  std::string_view neutral =
      {};  // the value that older opsets mean by silence: may be dropped for them. Lists: all so.
};

struct OpRow {
  std::string_view name;
  int since = 9;  // first opset with this operator
  std::vector<AttributeRule> attributes = {};
  Form normalize = nullptr;  // file's opset -> 24; null: nothing but the name changes
  Form lower = nullptr;      // 24 -> opset of the file to be written
};

std::span<const OpRow> op_rows();
// nullptr for operators we do not know.
const OpRow* find_row(std::string_view op_type);

// Checks the attributes of a known operator's node against its row at the file's opset, then normalizes it.
// Errors: input (node, attribute, expected, found).
Status normalize_node(FormContext& context, NodeId id);
// Turns a node of 24 form into that of context.opset. Errors: input (node, op, both opsets).
Status lower_node(FormContext& context, NodeId id);

}  // namespace ctk::graph::onnx

// Components that a tokenizer.json names by "type", alone or in a Sequence of its own kind: each place (normalizer,
// pre-tokenizer, decoder) has a table of them, and one rule reads all three.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/printable.h"
#include "data/text/json_node.h"

namespace ctk::data {

template <class Steps>
struct ComponentKind {
  std::string_view type;
  Status (*add)(const JsonNode& node, Steps& steps);
};

// Appends what the component at `node` does. `what` names the place in messages: "normalizer".
// Errors: input (nested too deep, a type that is not in the table: lists them; those of the row).
template <class Steps>
Status add_component(const JsonNode& node, std::span<const ComponentKind<Steps>> kinds, const std::string& what,
                     Steps& steps) {
  if (node.depth() > kMaxDepth)
    return node.expected("components nested at most " + std::to_string(kMaxDepth) + " deep");
  CTK_TRY(const std::string type, node.text("type", ""));
  std::string known;
  for (const ComponentKind<Steps>& kind : kinds) {
    if (kind.type == type) return kind.add(node, steps);
    known += (known.empty() ? "" : ", ") + std::string(kind.type);
  }
  return input_error(node.where() + ": expected a " + what + " of type " + known + "; found \"" + printable(type) +
                     "\". Take a tokenizer that is built of these.");
}

// The components of a Sequence, listed under `key`, one after another.
template <class Steps>
Status add_components(const JsonNode& node, std::string_view key, std::span<const ComponentKind<Steps>> kinds,
                      const std::string& what, Steps& steps) {
  const JsonNode list = node.child(key);
  if (!list.is_array()) return list.expected("an array of " + what + "s");
  for (std::size_t i = 0; i < list.size(); ++i) CTK_CHECK(add_component(list.at(i), kinds, what, steps));
  return {};
}

}  // namespace ctk::data

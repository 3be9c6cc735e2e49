#include "graph/ops/reinterpret.h"

namespace ctk::graph {
namespace {

// A 0 copies the input's dimension (with allowzero it is an empty one); at most one -1 takes what is left.
Result<Shape> reshaped(const Shape& from, const Integers& wish, bool is_zero_kept) {
  Shape shape(wish.count);
  std::size_t rest = wish.count;  // position of the -1
  bool has_zero = false;
  for (std::size_t i = 0; i < wish.count; ++i) {
    shape[i] = wish[i];
    if (shape[i] == 0 && is_zero_kept) has_zero = true;
    if (shape[i] == 0 && !is_zero_kept) {
      if (i >= from.size()) {
        return input_error("shape: position " + std::to_string(i) + " is 0 (copy), but the input " + to_string(from) +
                           " has no such dimension");
      }
      shape[i] = from[i];
    } else if (shape[i] == -1) {
      if (rest != wish.count) return input_error("shape: expected at most one -1, found two in " + to_string(shape));
      rest = i;
    } else if (shape[i] < 0) {
      return input_error("shape: expected sizes, 0 or -1, found " + std::to_string(shape[i]));
    }
  }
  if (rest == wish.count) return shape;
  if (has_zero) return input_error("shape: -1 cannot stand beside 0 with allowzero");
  shape[rest] = 1;
  CTK_TRY(const std::size_t known, element_count(shape));
  CTK_TRY(const std::size_t all, element_count(from));
  if (known == 0 || all % known != 0) {
    shape[rest] = -1;
    return input_error("shape: input " + to_string(from) + " does not divide into " + to_string(shape));
  }
  shape[rest] = static_cast<std::int64_t>(all / known);
  return shape;
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_TRY(const Integers wish, known_integers(inputs, 1, "shape"));
  CTK_CHECK(check_rank(wish.count));
  CTK_TRY(Shape shape, reshaped(inputs[0].info.shape, wish, node.attributes.get_int("allowzero", 0) != 0));
  return reinterpreted(inputs[0].info, std::move(shape));
}

}  // namespace

const OpRules& rules_Reshape() {
  static constexpr OpRules kRules{OpKind::data_movement, 2, 2, infer, evaluate_reinterpreted};
  return kRules;
}

}  // namespace ctk::graph

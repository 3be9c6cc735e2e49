#include <algorithm>
#include <cstring>
#include <optional>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

enum class Mode { constant, reflect, edge, wrap };

// Negative pads crop first: along each dimension, input elements [low, low + kept) stay, with `before` new ones in
// front and size - before - kept behind.
struct Frame {
  Mode mode = Mode::constant;
  Dims low{}, kept{}, before{}, size{};
};

std::optional<Mode> mode_from(std::string_view text) {
  if (text == "constant") return Mode::constant;
  if (text == "reflect") return Mode::reflect;
  if (text == "edge") return Mode::edge;
  if (text == "wrap") return Mode::wrap;
  return std::nullopt;
}

Status frame_dimension(const Shape& shape, std::size_t axis, std::int64_t begin, std::int64_t end, Frame& frame) {
  constexpr std::int64_t kFar = std::int64_t{1} << 48;
  const std::int64_t dim = shape[axis];
  const std::string where = "pads of dimension " + std::to_string(axis) + " of " + to_string(shape);
  if (std::max({begin, end, dim}) > kFar || std::min(begin, end) < -kFar) {
    return input_error(where + ": expected sizes below 2^48, found " + std::to_string(begin) + " and " +
                       std::to_string(end));
  }
  const std::int64_t low = std::max<std::int64_t>(-begin, 0), crop = std::max<std::int64_t>(-end, 0);
  if (low + crop > dim) {
    return input_error(where + ": expected to cut off at most " + std::to_string(dim) + ", found " +
                       std::to_string(begin) + " and " + std::to_string(end));
  }
  const std::int64_t kept = dim - low - crop;
  const std::int64_t before = std::max<std::int64_t>(begin, 0), after = std::max<std::int64_t>(end, 0);
  const std::int64_t limit = frame.mode == Mode::reflect ? std::max<std::int64_t>(kept - 1, 0) : kFar;
  if (std::max(before, after) > limit) {
    return input_error(where + ": expected at most " + std::to_string(limit) + " reflected elements, found " +
                       std::to_string(before) + " and " + std::to_string(after));
  }
  if (frame.mode != Mode::constant && kept == 0 && before + after > 0) {
    return input_error(where + ": expected elements to repeat, found none");
  }
  frame.low[axis] = low;
  frame.kept[axis] = kept;
  frame.before[axis] = before;
  frame.size[axis] = before + kept + after;
  return {};
}

Result<Frame> frame_of(const Node& node, const Shape& shape, const Integers& pads, const Integers& axes) {
  CTK_CHECK(check_rank(shape.size()));
  const std::string_view text = text_of(node, "mode", "constant");
  const auto mode = mode_from(text);
  if (!mode) {
    return input_error("mode: expected constant, reflect, edge or wrap, found \"" + std::string(text) + "\"");
  }
  const std::size_t count = axes.is_present() ? axes.count : shape.size();
  if (count > shape.size() || pads.count != 2 * count) {
    return input_error("pads: expected " + std::to_string(2 * std::min(count, shape.size())) +
                       " entries, begin and end of each padded dimension, found " + std::to_string(pads.count));
  }
  Frame frame;
  frame.mode = *mode;
  for (std::size_t d = 0; d < shape.size(); ++d) CTK_CHECK(frame_dimension(shape, d, 0, 0, frame));
  std::array<bool, kMaxRank> is_padded{};
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t wish = axes.is_present() ? axes[i] : static_cast<std::int64_t>(i);
    CTK_TRY(const std::size_t axis, resolve_axis(wish, shape.size()));
    if (is_padded[axis]) return input_error("axes: dimension " + std::to_string(axis) + " is named twice");
    is_padded[axis] = true;
    CTK_CHECK(frame_dimension(shape, axis, pads[i], pads[count + i], frame));
  }
  return frame;
}

// Input position along a dimension for output position `at`, or -1 where the constant goes.
std::int64_t source_of(const Frame& frame, std::size_t d, std::int64_t at) {
  const std::int64_t kept = frame.kept[d];
  std::int64_t p = at - frame.before[d];
  if (p < 0 || p >= kept) {
    switch (frame.mode) {
      case Mode::constant:
        return -1;
      case Mode::edge:
        p = p < 0 ? 0 : kept - 1;
        break;
      case Mode::reflect:
        p = p < 0 ? -p : 2 * (kept - 1) - p;
        break;
      case Mode::wrap:
        p = (p % kept + kept) % kept;
        break;
    }
  }
  return frame.low[d] + p;
}

void fill(std::byte* to, std::int64_t count, const std::byte* value, std::size_t size) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + static_cast<std::size_t>(i) * size, value, size);
}

// One run along the last dimension; `from` is the start of the input's row, null when the row is all constant.
void write_row(const Frame& frame, std::size_t last, const std::byte* from, const std::byte* value, std::size_t size,
               std::byte* to) {
  const std::int64_t total = frame.size[last];
  if (from == nullptr) return fill(to, total, value, size);
  const std::int64_t before = frame.before[last], kept = frame.kept[last];
  const auto edge = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t p = source_of(frame, last, i);
      std::memcpy(to + static_cast<std::size_t>(i) * size, p < 0 ? value : from + static_cast<std::size_t>(p) * size,
                  size);
    }
  };
  edge(0, before);
  if (kept > 0) {
    std::memcpy(to + static_cast<std::size_t>(before) * size, from + static_cast<std::size_t>(frame.low[last]) * size,
                static_cast<std::size_t>(kept) * size);
  }
  edge(before + kept, total);
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const TensorView& data = inputs[0];
  const std::size_t rank = data.shape.size(), size = element_bytes(data.dtype);
  if (rank == 0) return copy_all(data, outputs[0]);
  CTK_TRY(const Integers pads, integers_of(inputs, 1, "pads"));
  CTK_TRY(const Integers axes, integers_of(inputs, 3, "axes"));
  CTK_TRY(const Frame frame, frame_of(node, data.shape, pads, axes));
  const auto dims = std::span(frame.size).first(rank);
  if (!std::equal(dims.begin(), dims.end(), outputs[0].shape.begin(), outputs[0].shape.end())) {
    return internal_error("pads changed between plan and run");
  }
  if (outputs[0].size() == 0) return {};
  static constexpr std::byte kZero[8] = {};
  const std::byte* value = is_present(inputs, 2) ? inputs[2].as<std::byte>() : kZero;
  const Dims strides = strides_of(data.shape);
  const std::size_t row_bytes = static_cast<std::size_t>(dims[rank - 1]) * size;
  std::byte* to = outputs[0].as<std::byte>();
  Dims index{};
  do {
    std::int64_t offset = 0;
    bool is_inside = true;
    for (std::size_t d = 0; d + 1 < rank && is_inside; ++d) {
      const std::int64_t p = source_of(frame, d, index[d]);
      is_inside = p >= 0;
      offset += p * strides[d];
    }
    const std::byte* from = is_inside ? data.as<std::byte>() + static_cast<std::size_t>(offset) * size : nullptr;
    write_row(frame, rank - 1, from, value, size, to);
    to += row_bytes;
  } while (advance(index, dims.first(rank - 1)));
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  const ValueInfo& data = inputs[0].info;
  CTK_CHECK(check_movable(data.dtype));
  CTK_TRY(const Integers pads, known_integers(inputs, 1, "pads"));
  CTK_TRY(const Integers axes, known_integers(inputs, 3, "axes"));
  if (is_present(inputs, 2)) {
    CTK_CHECK(expect_dtype(inputs, 2, "constant_value", {data.dtype}));
    CTK_TRY(const std::size_t count, element_count(inputs[2].info.shape));
    if (count != 1) {
      return input_error("constant_value: expected one element, found shape " + to_string(inputs[2].info.shape));
    }
  }
  CTK_TRY(const Frame frame, frame_of(node, data.shape, pads, axes));
  const auto size = frame.size.begin();
  CTK_TRY(auto outputs, single_output(data.dtype, Shape(size, size + static_cast<std::ptrdiff_t>(data.shape.size()))));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Pad() {
  static constexpr OpRules kRules{OpKind::data_movement, 2, 4, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph

// Resize: each output position maps back to a real coordinate along every dimension, and reads 1 (nearest), 2 (linear)
// or 4 (cubic) input positions around it. Dimensions are separable: weights multiply.
// Coordinates are float32, as in the runtimes models are exported for: which neighbour is nearest depends on it.
// Cost: taps^d reads an output element, d resized dimensions. Sums in double. Refused: tf_crop_and_resize, antialias
// when shrinking, other aspect policies than stretch, cubic in more than two dimensions.
#include "graph/ops/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

enum class Mode { nearest, linear, cubic };
enum class Coordinate { half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric };
enum class Nearest { round_prefer_floor, round_prefer_ceil, floor, ceil };

struct Plan {
  Mode mode = Mode::nearest;
  Coordinate coordinate = Coordinate::half_pixel;
  Nearest nearest = Nearest::round_prefer_floor;
  float cubic_a = -0.75f;
  bool excludes_outside = false;
  std::size_t rank = 0;
  Dims from{}, to{};
  std::array<float, kMaxRank> scale{};  // to / from
};

// Input positions and weights for one output position along one dimension.
struct Taps {
  int count = 1;
  std::array<std::int64_t, 4> at{};
  std::array<double, 4> weight{1.0};
};

template <class Enum, std::size_t n>
Result<Enum> choose(const Node& node, std::string_view name, const std::string_view (&words)[n]) {
  const std::string_view found = text_of(node, name, words[0]);
  for (std::size_t i = 0; i < n; ++i) {
    if (words[i] == found) return static_cast<Enum>(i);
  }
  std::string list;
  for (std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return input_error(std::string(name) + ": expected one of " + list + ", found \"" + std::string(found) + "\"");
}

Status read_attributes(const Node& node, Plan& plan) {
  static constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
  static constexpr std::string_view kCoordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                                      "align_corners", "asymmetric"};
  static constexpr std::string_view kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  CTK_TRY(plan.mode, choose<Mode>(node, "mode", kModes));
  CTK_TRY(plan.coordinate, choose<Coordinate>(node, "coordinate_transformation_mode", kCoordinates));
  CTK_TRY(plan.nearest, choose<Nearest>(node, "nearest_mode", kNearest));
  plan.cubic_a = node.attributes.get_float("cubic_coeff_a", -0.75f);
  plan.excludes_outside = node.attributes.get_int("exclude_outside", 0) != 0;
  const std::string_view policy = text_of(node, "keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return {};
  return input_error("keep_aspect_ratio_policy: expected stretch, found \"" + std::string(policy) + "\"");
}

// Dimension that entry `i` of scales or sizes speaks of.
Result<std::size_t> axis_at(std::span<const std::int64_t> axes, std::size_t i, std::size_t rank) {
  return axes.empty() ? Result<std::size_t>(i) : resolve_axis(axes[i], rank);
}

Status set_dimension(Plan& plan, std::size_t d, float scale, std::optional<std::int64_t> size) {
  constexpr std::int64_t kFar = std::int64_t{1} << 48;
  const std::int64_t from = plan.from[d];
  if (size.has_value()) {
    if (*size < 0 || *size > kFar || (from == 0 && *size != 0)) {
      return input_error("sizes: cannot make dimension " + std::to_string(d) + " of " + std::to_string(from) +
                         " into " + std::to_string(*size));
    }
    plan.to[d] = *size;
    plan.scale[d] = from == 0 ? 1.0f : static_cast<float>(*size) / static_cast<float>(from);
    return {};
  }
  const float length = scale * static_cast<float>(from);
  if (!(scale > 0.0f) || !std::isfinite(scale) || !(length <= static_cast<float>(kFar))) {
    return input_error("scales: cannot scale dimension " + std::to_string(d) + " of " + std::to_string(from) + " by " +
                       std::to_string(scale) + ". Expected a finite factor above 0");
  }
  plan.to[d] = scale == 1.0f ? from : static_cast<std::int64_t>(length);
  plan.scale[d] = scale;
  return {};
}

Status check_plan(const Node& node, const Plan& plan) {
  int resized = 0;
  bool shrinks = false;
  for (std::size_t d = 0; d < plan.rank; ++d) {
    resized += plan.scale[d] != 1.0f ? 1 : 0;
    shrinks = shrinks || plan.scale[d] < 1.0f;
  }
  if (plan.mode == Mode::cubic && resized > 2) {
    return input_error("mode cubic: expected at most 2 resized dimensions, found " + std::to_string(resized));
  }
  if (node.attributes.get_int("antialias", 0) != 0 && shrinks && plan.mode != Mode::nearest) {
    return input_error("antialias: expected 0 when a dimension shrinks, found 1");
  }
  return {};
}

Result<Plan> plan_of(const Node& node, const Shape& shape, std::span<const float> scales, const Integers& sizes) {
  CTK_CHECK(check_rank(shape.size()));
  Plan plan;
  CTK_CHECK(read_attributes(node, plan));
  plan.rank = shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    plan.from[d] = plan.to[d] = shape[d];
    plan.scale[d] = 1.0f;
  }
  const bool has_sizes = sizes.count != 0;
  if (has_sizes == !scales.empty() && !shape.empty()) {
    return input_error(std::string("expected either scales or sizes, found ") + (has_sizes ? "both" : "neither"));
  }
  const auto axes = ints_of(node, "axes");
  const std::size_t expected = axes.empty() ? shape.size() : axes.size();
  const std::size_t found = has_sizes ? sizes.count : scales.size();
  if (found != expected) {
    return input_error(std::string(has_sizes ? "sizes" : "scales") + ": expected " + std::to_string(expected) +
                       " entries, found " + std::to_string(found));
  }
  std::array<bool, kMaxRank> is_set{};
  for (std::size_t i = 0; i < found; ++i) {
    CTK_TRY(const std::size_t d, axis_at(axes, i, shape.size()));
    if (is_set[d]) return input_error("axes: dimension " + std::to_string(d) + " is named twice");
    is_set[d] = true;
    CTK_CHECK(set_dimension(plan, d, has_sizes ? 1.0f : scales[i],
                            has_sizes ? std::optional(sizes[i]) : std::optional<std::int64_t>()));
  }
  CTK_CHECK(check_plan(node, plan));
  return plan;
}

float coordinate_of(const Plan& plan, std::size_t d, std::int64_t at) {
  const float x = static_cast<float>(at), scale = plan.scale[d];
  const float from = static_cast<float>(plan.from[d]), to = static_cast<float>(plan.to[d]);
  switch (plan.coordinate) {
    case Coordinate::half_pixel:
      return (x + 0.5f) / scale - 0.5f;
    case Coordinate::half_pixel_symmetric: {
      const float adjustment = to / (scale * from);
      const float offset = from / 2.0f * (1.0f - adjustment);
      return offset + (x + 0.5f) / scale - 0.5f;
    }
    case Coordinate::pytorch_half_pixel:
      return plan.to[d] > 1 ? (x + 0.5f) / scale - 0.5f : 0.0f;
    case Coordinate::align_corners:
      return plan.to[d] > 1 ? x * (from - 1.0f) / (to - 1.0f) : 0.0f;
    case Coordinate::asymmetric:
      return x / scale;
  }
  return 0.0f;
}

std::int64_t nearest_of(const Plan& plan, std::size_t d, float x) {
  float rounded = 0.0f;
  switch (plan.nearest) {
    case Nearest::round_prefer_floor:
      rounded = x - std::floor(x) == 0.5f ? std::floor(x) : std::round(x);
      break;
    case Nearest::round_prefer_ceil:
      rounded = std::round(x);
      break;
    case Nearest::floor:
      rounded = std::floor(x);
      break;
    case Nearest::ceil:
      rounded = std::ceil(x);
      break;
  }
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(rounded), 0, plan.from[d] - 1);
}

Taps linear_taps(std::int64_t from, float x) {
  x = std::clamp(x, 0.0f, static_cast<float>(from - 1));
  const std::int64_t low = std::min(static_cast<std::int64_t>(x), from - 1);
  const double share = static_cast<double>(x) - static_cast<double>(low);
  return {2, {low, std::min(low + 1, from - 1)}, {1.0 - share, share}};
}

// Keys' cubic convolution with parameter a; outside positions repeat the edge, or are left out and the rest reweighed.
Taps cubic_taps(const Plan& plan, std::int64_t from, float x) {
  const double a = plan.cubic_a, floor = std::floor(static_cast<double>(x)), s = x - floor;
  const auto near = [a](double t) { return ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0; };
  const auto far = [a](double t) { return ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a; };
  Taps taps{4, {}, {far(s + 1.0), near(s), near(1.0 - s), far(2.0 - s)}};
  double total = 0.0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t at = static_cast<std::int64_t>(floor) - 1 + static_cast<std::int64_t>(i);
    taps.at[i] = std::clamp<std::int64_t>(at, 0, from - 1);
    if (plan.excludes_outside && taps.at[i] != at) taps.weight[i] = 0.0;
    total += taps.weight[i];
  }
  if (plan.excludes_outside && total != 0.0) {
    for (double& weight : taps.weight) weight /= total;
  }
  return taps;
}

Taps taps_of(const Plan& plan, std::size_t d, std::int64_t at) {
  if (plan.scale[d] == 1.0f) return {1, {at}, {1.0}};
  const float x = coordinate_of(plan, d, at);
  switch (plan.mode) {
    case Mode::nearest:
      return {1, {nearest_of(plan, d, x)}, {1.0}};
    case Mode::linear:
      return linear_taps(plan.from[d], x);
    case Mode::cubic:
      return cubic_taps(plan, plan.from[d], x);
  }
  return {};
}

double interpolate(const float* data, std::span<const Taps> taps, std::span<const std::int64_t> strides) {
  if (taps.empty()) return *data;
  double sum = 0.0;
  for (int i = 0; i < taps[0].count; ++i) {
    const auto tap = static_cast<std::size_t>(i);
    if (taps[0].weight[tap] == 0.0) continue;  // an infinite neighbour that has no say must not make a NaN
    sum += taps[0].weight[tap] * interpolate(data + taps[0].at[tap] * strides[0], taps.subspan(1), strides.subspan(1));
  }
  return sum;
}

void write_outputs(const Plan& plan, const TensorView& data, const MutableTensorView& output) {
  const std::size_t size = element_bytes(data.dtype);
  const Dims strides = strides_of(data.shape);
  const auto dims = std::span(plan.to).first(plan.rank);
  std::array<Taps, kMaxRank> taps;
  for (std::size_t d = 0; d < plan.rank; ++d) taps[d] = taps_of(plan, d, 0);
  Dims index{};
  std::byte* to = output.as<std::byte>();
  for (bool has_more = true; has_more; to += size) {
    if (plan.mode == Mode::nearest) {
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < plan.rank; ++d) offset += taps[d].at[0] * strides[d];
      std::memcpy(to, data.as<std::byte>() + static_cast<std::size_t>(offset) * size, size);
    } else {
      const float value = static_cast<float>(interpolate(data.as<float>(), std::span(taps).first(plan.rank), strides));
      std::memcpy(to, &value, sizeof value);
    }
    const Dims before = index;
    has_more = advance(index, dims);
    for (std::size_t d = 0; d < plan.rank; ++d) {
      if (index[d] != before[d]) taps[d] = taps_of(plan, d, index[d]);
    }
  }
}

Result<Plan> plan_of(const Node& node, std::span<const TensorView> inputs) {
  std::span<const float> scales;
  if (is_present(inputs, 2)) scales = inputs[2].values<float>();
  CTK_TRY(const Integers sizes, integers_of(inputs, 3, "sizes"));
  return plan_of(node, inputs[0].shape, scales, sizes);
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  CTK_TRY(const Plan plan, plan_of(node, inputs));
  if (!std::equal(outputs[0].shape.begin(), outputs[0].shape.end(), plan.to.begin())) {
    return internal_error("sizes changed between plan and run");
  }
  if (outputs[0].size() != 0) write_outputs(plan, inputs[0], outputs[0]);
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  const ValueInfo& data = inputs[0].info;
  CTK_CHECK(check_movable(data.dtype));
  std::span<const float> scales;
  if (is_present(inputs, 2)) {
    CTK_CHECK(expect_dtype(inputs, 2, "scales", {DType::f32}));
    CTK_CHECK(expect_rank("scales", inputs[2].info.shape, 1, 1));
    if (!is_known(inputs, 2) && inputs[2].info.shape[0] != 0) {
      return input_error("shape depends on data: input 2 (scales) must be known before the run. Make it a constant");
    }
    if (is_known(inputs, 2)) scales = inputs[2].info.constant->values<float>();
  }
  CTK_TRY(const Integers sizes, known_integers(inputs, 3, "sizes"));
  CTK_TRY(const Plan plan, plan_of(node, data.shape, scales, sizes));
  if (plan.mode != Mode::nearest) CTK_CHECK(expect_dtype(inputs, 0, "X", {DType::f32}));
  CTK_TRY(auto outputs, single_output(data.dtype, Shape(plan.to.begin(), plan.to.begin() + plan.rank)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

Result<ResizeTables> resize_tables(const Node& node, std::span<const TensorView> inputs) {
  CTK_TRY(const Plan plan, plan_of(node, inputs));
  ResizeTables tables;
  tables.is_nearest = plan.mode == Mode::nearest;
  for (std::size_t d = 0; d < plan.rank; ++d) {
    ResizeTable& table = tables.dimensions.emplace_back();
    table.is_resized = plan.scale[d] != 1.0f;
    for (std::int64_t at = 0; at < plan.to[d]; ++at) {
      const Taps taps = taps_of(plan, d, at);
      table.taps = taps.count;
      table.at.insert(table.at.end(), taps.at.begin(), taps.at.begin() + taps.count);
      table.weight.insert(table.weight.end(), taps.weight.begin(), taps.weight.begin() + taps.count);
    }
  }
  return tables;
}

const OpRules& rules_Resize() {
  static constexpr OpRules kRules{OpKind::other, 1, 4, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph

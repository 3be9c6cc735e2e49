// A group lies on a grid of L + 1 levels when (w - min) / ((max - min) / L) is an integer for each of its weights, L
// being the least that serves. In:  weights [n, k]. Out: which grouping does, or codes. Cost: one pass where there is a
// grid, at most 2^bits divisions of some weights where there is none. A chance hit: within a tenth of a step of some
// level lies a random weight once in five times, so 14 of 16 do once in 10^9, and all groups of a matrix must.
#include "compress/quantize/stored_grid.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "compress/quantize/grid.h"
#include "compress/quantize/layer_inputs.h"
#include "core/dtype.h"

namespace ctk::quantization {
namespace {

constexpr std::size_t kLeastWeights = 256;
constexpr double kMostSlack = 0.1;  // of a step: beyond it rounding could pass for a grid
constexpr int kMostBits = 8;
constexpr int kMostAway = 8;  // fp16 numbers to either side of the fitted scale: bf16 leaves 1 in 256 open

// The type whose numbers these are: the one that rounds most.
DType type_of(std::span<const float> values) {
  bool is_brain = true, is_half = true;
  for (float v : values) {
    is_brain = is_brain && (std::bit_cast<std::uint32_t>(v) & 0xffff) == 0;
    is_half = is_half && half_to_float(float_to_half(v)) == v;
    if (!is_brain && !is_half) return DType::f32;
  }
  return is_brain ? DType::bf16 : DType::f16;
}

float as_held(float value, DType type) {
  if (type == DType::bf16) return bfloat_to_float(float_to_bfloat(value));
  return type == DType::f16 ? half_to_float(float_to_half(value)) : value;
}

// What rounding to the type can move a difference of two numbers of size 1 by.
double slack_of(DType type) {
  return type == DType::bf16 ? 0x1p-8 : type == DType::f16 ? 0x1p-11 : 0x1p-23;
}

struct Levels {
  double least = 0, step = 0;
  int count = 0;  // L: the group spans L steps; 0: all its weights are one number
};

// The fewest levels the group lies on, at most `most` steps of them; nothing where there are none.
std::optional<Levels> levels_of(std::span<const float> group, int most, DType type) {
  const auto [low, high] = std::ranges::minmax(group);
  Levels levels{static_cast<double>(low), 0, 0};
  if (low == high) return levels;
  const double range = static_cast<double>(high) - static_cast<double>(low);
  const double slack =
      slack_of(type) * std::max(std::abs(static_cast<double>(low)), std::abs(static_cast<double>(high)));
  for (int count = 1; count <= most; ++count) {
    const double step = range / count, tolerance = 2 * slack / step;
    if (!(tolerance <= kMostSlack)) return std::nullopt;
    const bool fits = std::ranges::all_of(group, [&](float v) {
      const double level = (static_cast<double>(v) - levels.least) / step;
      return std::abs(level - std::nearbyint(level)) <= tolerance;
    });
    if (!fits) continue;
    levels.step = step;
    levels.count = count;
    return levels;
  }
  return std::nullopt;
}

std::optional<StoredGrid> grid_in_groups(std::span<const float> rows, std::size_t n, std::size_t k, std::size_t length,
                                         DType type) {
  StoredGrid grid;
  grid.group_size = length == k ? 0 : length;
  grid.has_zero = true;
  int most = 1;
  std::size_t groups = 0, constant = 0;
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t begin = 0; begin < k; begin += length) {
      const auto group = rows.subspan(r * k + begin, std::min(length, k - begin));
      const auto levels = levels_of(group, (1 << kMostBits) - 1, type);
      if (!levels) return std::nullopt;
      ++groups;
      if (levels->count == 0) {
        ++constant;
        continue;
      }
      most = std::max(most, levels->count);
      const double zero = -levels->least / levels->step;
      const double slack = 4 * slack_of(type) * std::max(1.0, std::abs(zero));
      grid.has_zero = grid.has_zero && std::abs(zero - std::nearbyint(zero)) <= std::max(slack, 1e-4);
    }
  }
  if (2 * constant > groups) return std::nullopt;
  grid.bits = std::bit_width(static_cast<unsigned>(most));
  return grid;
}

struct Coded {
  Grid grid;
  std::vector<int> codes;  // signed, as QuantTensor has them
};

// Codes for one group that give back its numbers, by a scale that can be stored.
std::optional<Coded> code_group(std::span<const float> group, const QuantScheme& scheme, DType type) {
  const int span = (1 << scheme.weight_bits) - 1, middle = scheme.is_affine ? 1 << (scheme.weight_bits - 1) : 0;
  const int lowest = scheme.is_affine ? 0 : lowest_code(scheme.weight_bits);
  const int highest = scheme.is_affine ? span : highest_code(scheme.weight_bits);
  const auto levels = levels_of(group, span, type);
  if (!levels) return std::nullopt;
  Coded coded;
  coded.codes.resize(group.size());
  const auto try_scale = [&](float scale) {
    if (!std::isfinite(scale) || scale == 0.0f) return false;
    int low = 0, high = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const double code = std::nearbyint(static_cast<double>(group[i]) / static_cast<double>(scale));
      if (!(std::abs(code) <= span) || as_held(static_cast<float>(code) * scale, type) != group[i]) return false;
      coded.codes[i] = static_cast<int>(code);
      low = std::min(low, coded.codes[i]);
      high = std::max(high, coded.codes[i]);
    }
    const int zero = scheme.is_affine ? -low : 0;
    if (low + zero < lowest || high + zero > highest) return false;
    coded.grid = {scale, zero - middle};
    for (int& code : coded.codes) code += zero - middle;
    return true;
  };
  if (levels->count == 0) {
    if (group[0] == 0.0f) return try_scale(1.0f) ? std::optional(coded) : std::nullopt;
    for (int code = 1; code <= highest_code(scheme.weight_bits); ++code) {
      if (try_scale(half_to_float(float_to_half(group[0] / static_cast<float>(code))))) return coded;
    }
    return std::nullopt;
  }
  // The group may use every other level only, or every third: then the step is a part of what was found.
  for (int part = 1; part * levels->count <= span; ++part) {
    const double step = levels->step / part;
    double wq = 0, qq = 0;  // least squares over all weights: the step as well as rounded numbers tell it
    for (float v : group) {
      const double q = std::nearbyint(static_cast<double>(v) / step);
      wq += q * static_cast<double>(v);
      qq += q * q;
    }
    if (qq == 0) continue;
    const auto bits = static_cast<int>(float_to_half(static_cast<float>(wq / qq)));
    for (int turn = 0; turn <= 2 * kMostAway; ++turn) {
      const int away = turn % 2 == 0 ? turn / 2 : -(turn + 1) / 2;
      const float scale = half_to_float(static_cast<std::uint16_t>(bits + away));
      if (try_scale(scale) || try_scale(-scale)) return coded;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<StoredGrid> find_stored_grid(std::span<const float> rows, std::size_t n, std::size_t k) {
  if (n * k < kLeastWeights || k < 16) return std::nullopt;
  const DType type = type_of(rows);
  for (const std::size_t length : {k, std::size_t{128}, std::size_t{64}, std::size_t{32}, std::size_t{16}}) {
    if (length > k || (length == k && length < 16)) continue;
    if (const auto grid = grid_in_groups(rows, n, k, length, type)) return grid;
  }
  return std::nullopt;
}

std::optional<WeightOutcome> keep_stored_grid(const WeightRequest& request) {
  const QuantScheme& scheme = request.scheme;
  if (scheme.is_integer_activation() || scheme.granularity == Granularity::per_tensor || request.group_count != 1 ||
      request.weight.size() < kLeastWeights)
    return std::nullopt;
  graph::Layer layer;
  layer.channel_axis = request.channel_axis;
  layer.channels = request.weight.shape()[static_cast<std::size_t>(request.channel_axis)];
  layer.reduction = static_cast<std::int64_t>(request.weight.size()) / layer.channels;
  const std::vector<float> turned = layer.channel_axis == 0 ? std::vector<float>() : weight_rows(layer, request.weight);
  const std::span<const float> rows = turned.empty() ? request.weight.values<float>() : std::span<const float>(turned);
  const auto n = static_cast<std::size_t>(layer.channels), k = static_cast<std::size_t>(layer.reduction);
  const std::size_t length =
      scheme.granularity == Granularity::per_group ? std::min(k, static_cast<std::size_t>(scheme.group_size)) : k;
  const DType type = type_of(rows);
  WeightOutcome outcome;
  if (!code_group(rows.first(length), scheme, type)) return std::nullopt;  // as with nearly all weights
  std::vector<std::int8_t> codes(n * k);
  std::size_t groups = 0, constant = 0;
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t begin = 0; begin < k; begin += length) {
      const auto group = rows.subspan(r * k + begin, std::min(length, k - begin));
      const auto coded = code_group(group, scheme, type);
      if (!coded) return std::nullopt;
      ++groups;
      constant += std::ranges::all_of(group, [&](float v) { return v == group[0]; });
      outcome.tensor.scales.push_back(coded->grid.scale);
      if (scheme.is_affine) outcome.tensor.zeros.push_back(static_cast<std::int8_t>(coded->grid.zero));
      std::ranges::transform(coded->codes, codes.begin() + static_cast<std::ptrdiff_t>(r * k + begin),
                             [](int code) { return static_cast<std::int8_t>(code); });
    }
  }
  if (2 * constant > groups) return std::nullopt;  // too few numbers to tell
  outcome.tensor.scheme = scheme;
  outcome.tensor.channel_axis = request.channel_axis;
  outcome.tensor.group_count = request.group_count;
  outcome.tensor.method = "kept";
  outcome.tensor.codes = pack_codes(request.weight.shape(), from_rows<std::int8_t>(layer, codes), scheme.weight_bits);
  const Tensor back = dequantize(outcome.tensor);
  for (std::size_t i = 0; i < back.size(); ++i) {
    const double miss =
        static_cast<double>(back.values<float>()[i]) - static_cast<double>(request.weight.values<float>()[i]);
    outcome.squared_error += miss * miss;
  }
  outcome.squared_error_rtn = outcome.squared_error;
  return outcome;
}

Result<WeightOutcome> keep_or_code(const Quantizer& quantizer, const WeightRequest& request) {
  auto kept = keep_stored_grid(request);
  if (!kept) return quantizer.run(request);
  if (request.inputs != nullptr) {
    kept->receipt.emplace();
    kept->receipt->rows = static_cast<std::int64_t>(request.inputs->coded.rows() + request.inputs->held_out.rows());
  }
  return std::move(*kept);
}

}  // namespace ctk::quantization

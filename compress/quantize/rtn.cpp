// RTN: one symmetric scale per output channel or group, minimising sum (w - s * q)^2 with q = round(w / s).
// In:  weight, any layout, channels along channel_axis.
// Out: codes of the weight's shape, scales [channels] or [channels, groups].
// Cost: about 60 passes over the weights.
// Source: scale search as in OMSE (Choukroun et al., 2019); then s = <w,q> / <q,q>, the least-squares scale for the
// codes at hand, alternated with rounding while it helps. Differs: both are tried and the better kept; never worse than
// absmax, which is one of the candidates.
#include "compress/quantize/rtn.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compress/quantize/grid_fit.h"
#include "core/dtype.h"
#include "core/parallel.h"

namespace ctk::quantization {
namespace {

constexpr int kCandidates = 48;
constexpr double kLeastRatio = 0.4;  // of the absmax scale: clipping more than 60% of the range never paid
constexpr int kRefinements = 6;

float absmax_scale(std::span<const float> values, int bits) {
  float largest = 0.0f;
  for (float v : values) largest = std::max(largest, std::abs(v));
  const float scale = largest / static_cast<float>(highest_code(bits));
  if (largest == 0.0f) return 1.0f;  // any positive scale gives codes 0
  return std::max(scale, std::numeric_limits<float>::min());
}

// Values of one channel, gathered; with one scale per tensor everything is one channel.
std::vector<std::vector<float>> gather_channels(const WeightRequest& request, const std::vector<std::uint32_t>& channel,
                                                std::size_t count) {
  std::vector<std::vector<float>> rows(count);
  const auto values = request.weight.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) rows[channel[i]].push_back(values[i]);
  return rows;
}

// Weights whose activations are floats: fp16 scales of either sign, zero points if the scheme has them.
struct FreeGrids {
  GridForm form;
  std::vector<Grid> grids;

  FreeGrids(const QuantScheme& scheme, const std::vector<std::vector<float>>& rows) : grids(rows.size()) {
    form.bits = scheme.weight_bits;
    form.is_affine = scheme.is_affine;
    parallel_for(rows.size(), 16, [&](std::size_t begin, std::size_t end) {
      for (std::size_t c = begin; c < end; ++c) grids[c] = fit_grid(rows[c], {}, form);
    });
  }

  // Of the stored code, which is signed: affine ranges have their middle at 0.
  int middle() const { return form.is_affine ? 1 << (form.bits - 1) : 0; }
  int code(float value, const Grid& grid) const {
    const float level = std::nearbyint(value / grid.scale) + static_cast<float>(grid.zero);
    return static_cast<int>(
        std::clamp(level, static_cast<float>(form.lowest_code()), static_cast<float>(form.highest_code())));
  }
  double error(std::span<const float> values, const Grid& grid) const {
    double sum = 0;
    for (float v : values) {
      const double miss = static_cast<double>(v) - static_cast<double>(grid.scale) * (code(v, grid) - grid.zero);
      sum += miss * miss;
    }
    return sum;
  }
};

void code_freely(const WeightRequest& request, const std::vector<std::vector<float>>& rows,
                 const std::vector<std::uint32_t>& channel, WeightOutcome& outcome) {
  const FreeGrids free(request.scheme, rows);
  QuantTensor& tensor = outcome.tensor;
  for (std::size_t c = 0; c < rows.size(); ++c) {
    tensor.scales[c] = free.grids[c].scale;
    if (free.form.is_affine) tensor.zeros.push_back(static_cast<std::int8_t>(free.grids[c].zero - free.middle()));
    outcome.squared_error += free.error(rows[c], free.grids[c]);
    outcome.squared_error_rtn += free.error(rows[c], grid_of_extremes(rows[c], free.form));
  }
  const auto values = request.weight.values<float>();
  std::vector<std::int8_t> codes(values.size());
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::int8_t>(free.code(values[i], free.grids[channel[i]]) - free.middle());
  tensor.codes = pack_codes(request.weight.shape(), codes, request.scheme.weight_bits);
}

}  // namespace

std::int8_t round_to_code(float value, float scale, int bits) {
  const float code = std::nearbyint(value / scale);
  return static_cast<std::int8_t>(
      std::clamp(code, static_cast<float>(lowest_code(bits)), static_cast<float>(highest_code(bits))));
}

double rounding_error(std::span<const float> values, float scale, int bits) {
  double error = 0;
  for (float v : values) {
    const double miss = static_cast<double>(v) - static_cast<double>(scale) * round_to_code(v, scale, bits);
    error += miss * miss;
  }
  return error;
}

float fit_scale(std::span<const float> values, int bits) {
  const float start = absmax_scale(values, bits);
  float best = start;
  double best_error = rounding_error(values, start, bits);
  const auto consider = [&](float scale) {
    if (!(scale >= std::numeric_limits<float>::min()) || !std::isfinite(scale)) return false;
    const double error = rounding_error(values, scale, bits);
    if (error >= best_error) return false;
    best_error = error;
    best = scale;
    return true;
  };
  for (int i = 0; i < kCandidates; ++i) {
    // The -8 of 4 bits reaches further than the 7, so scales a little under absmax / 7 can be exact: ratio 7/8 is
    // inside.
    consider(static_cast<float>(start * (kLeastRatio + (1.0 - kLeastRatio) * i / kCandidates)));
  }
  for (int i = 0; i < kRefinements; ++i) {
    double wq = 0, qq = 0;
    for (float v : values) {
      const double q = round_to_code(v, best, bits);
      wq += v * q;
      qq += q * q;
    }
    if (qq == 0 || !consider(static_cast<float>(wq / qq))) break;
  }
  return best;
}

Result<WeightOutcome> quantize_rtn(const WeightRequest& request) {
  const int width = request.scheme.weight_bits;
  const int bits = width == 8 && request.reduce_range ? 7 : width;
  const Shape& shape = request.weight.shape();
  const std::vector<std::uint32_t> channel =
      scale_of_elements(shape, request.channel_axis, request.group_count, request.scheme);
  const std::size_t count = request.scheme.granularity == Granularity::per_tensor
                                ? 1
                                : static_cast<std::size_t>(shape[static_cast<std::size_t>(request.channel_axis)]) *
                                      static_cast<std::size_t>(request.group_count) *
                                      groups_of(shape, request.channel_axis, request.scheme);
  const auto rows = gather_channels(request, channel, count);
  WeightOutcome outcome;
  outcome.tensor.scheme = request.scheme;
  outcome.tensor.channel_axis = request.channel_axis;
  outcome.tensor.group_count = request.group_count;
  outcome.tensor.method = "rtn";
  outcome.tensor.scales.resize(count);
  if (!request.scheme.is_integer_activation()) {
    code_freely(request, rows, channel, outcome);
    return outcome;
  }
  std::vector<double> errors(count), plain(count);
  std::vector<int> raised(count, 0);
  parallel_for(count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) {
      float scale = fit_scale(rows[c], bits);
      float least = 0.0f;
      if (!request.least_scales.empty()) {
        least = count == 1 ? *std::max_element(request.least_scales.begin(), request.least_scales.end())
                           : request.least_scales[c];
      }
      const bool is_zero = std::ranges::all_of(rows[c], [](float v) { return v == 0.0f; });
      if (is_zero && least > 0.0f) {
        scale = least;  // any scale gives codes 0: the one at which the bias keeps most of its digits
      } else if (scale < least) {
        scale = least;
        raised[c] = 1;
      }
      outcome.tensor.scales[c] = scale;
      errors[c] = rounding_error(rows[c], scale, bits);
      plain[c] = rounding_error(rows[c], absmax_scale(rows[c], bits), bits);
    }
  });
  for (std::size_t c = 0; c < count; ++c) {
    outcome.squared_error += errors[c];
    outcome.squared_error_rtn += plain[c];
    outcome.raised_scales += raised[c];
  }
  const auto values = request.weight.values<float>();
  std::vector<std::int8_t> codes(values.size());
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = round_to_code(values[i], outcome.tensor.scales[channel[i]], bits);
  outcome.tensor.codes = pack_codes(shape, codes, width);
  return outcome;
}

}  // namespace ctk::quantization

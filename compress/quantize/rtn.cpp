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

#include "compress/quantize/rtn_free.h"
#include "core/dtype.h"
#include "core/parallel.h"

namespace ctk::quantization {
namespace {

constexpr int kCandidates = 48;
constexpr double kLeastRatio = 0.4;  // of the absmax scale: clipping more than 60% of the range never paid
constexpr int kRefinements = 6;
constexpr float kAnyScale = 0.01922607421875f;  // an fp16 number of many digits: bundles tell a single scale as text

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

}  // namespace

std::size_t scale_count(const Shape& shape, int channel_axis, int group_count, const QuantScheme& scheme) {
  if (scheme.granularity == Granularity::per_tensor) return 1;
  return static_cast<std::size_t>(shape[static_cast<std::size_t>(channel_axis)]) *
         static_cast<std::size_t>(group_count) * groups_of(shape, channel_axis, scheme);
}

Result<QuantTensor> blank_codes(const Shape& shape, int channel_axis, int group_count, const QuantScheme& scheme) {
  QuantTensor blank;
  blank.scheme = scheme;
  blank.channel_axis = channel_axis;
  blank.group_count = group_count;
  blank.method = scheme.is_integer_weight() ? "rtn" : "fp16";
  CTK_TRY(blank.codes, Tensor::zeros(scheme.is_integer_weight() ? code_dtype(scheme.weight_bits) : DType::f16, shape));
  if (scheme.is_integer_weight()) blank.scales.assign(scale_count(shape, channel_axis, group_count, scheme), kAnyScale);
  if (scheme.is_affine) blank.zeros.assign(blank.scales.size(), 0);
  return blank;
}

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

namespace {

// Where activations are codes too: float scales above 0, large enough for the bias.
WeightOutcome round_for_codes(const WeightRequest& request, bool is_fitted) {
  const int width = request.scheme.weight_bits;
  const int bits = width == 8 && request.reduce_range ? 7 : width;
  const Shape& shape = request.weight.shape();
  const std::vector<std::uint32_t> channel =
      scale_of_elements(shape, request.channel_axis, request.group_count, request.scheme);
  const std::size_t count = scale_count(shape, request.channel_axis, request.group_count, request.scheme);
  const auto rows = gather_channels(request, channel, count);
  WeightOutcome outcome;
  outcome.tensor.scheme = request.scheme;
  outcome.tensor.channel_axis = request.channel_axis;
  outcome.tensor.group_count = request.group_count;
  outcome.tensor.method = is_fitted ? "rtn" : "absmax";
  outcome.tensor.scales.resize(count);
  std::vector<double> errors(count), plain(count);
  std::vector<int> raised(count, 0);
  parallel_for(count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) {
      float scale = is_fitted ? fit_scale(rows[c], bits) : absmax_scale(rows[c], bits);
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

}  // namespace

Result<WeightOutcome> quantize_rtn(const WeightRequest& request) {
  if (!request.scheme.is_integer_activation()) return round_freely(request, GridFit::squared_error);
  return round_for_codes(request, true);
}

Result<WeightOutcome> quantize_absmax(const WeightRequest& request) {
  if (!request.scheme.is_integer_activation()) return round_freely(request, GridFit::extremes);
  return round_for_codes(request, false);
}

}  // namespace ctk::quantization

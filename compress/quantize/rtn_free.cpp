// RTN, free scales: minimises sum (w - s (q - z))^2 of a channel or group over s and z, q = round(w / s) + z; or takes
// s from the largest weight and minimises nothing.
// In:  weight, any layout, channels along channel_axis.
// Out: codes of the weight's shape, scales and zero points [groups].
// Cost: one pass over weights that lie group by group, the fit of grid_fit.h on top; others are gathered before.
// Source: grid_fit.h. Differs: not from it.
#include "compress/quantize/rtn_free.h"

#include <algorithm>

#include "compress/quantize/gptq_weight.h"
#include "compress/quantize/lanes.h"
#include "compress/quantize/rtn.h"
#include "core/parallel.h"

namespace ctk::quantization {
namespace {

// A weight's groups as neighbours in memory: as it lies there, or gathered.
struct Groups {
  std::span<const float> values;
  std::vector<float> gathered;
  std::vector<std::size_t> place;  // gathered value -> element; empty where nothing was gathered
  std::vector<std::size_t> begin;  // of each group, and where the last one ends
};

Groups groups_of_weight(const WeightRequest& request, std::size_t count) {
  const Shape& shape = request.weight.shape();
  const auto values = request.weight.values<float>();
  Groups groups;
  groups.begin.assign(count + 1, 0);
  if (request.scheme.granularity == Granularity::per_tensor ||
      (request.channel_axis == 0 && request.group_count == 1)) {
    const std::size_t rows =
        request.scheme.granularity == Granularity::per_tensor ? 1 : static_cast<std::size_t>(shape[0]);
    const std::size_t columns = values.size() / std::max<std::size_t>(rows, 1),
                      each = count / std::max<std::size_t>(rows, 1);
    const std::size_t length = grid_form_of(request.scheme).group_length(columns);
    for (std::size_t g = 0; g < count; ++g) groups.begin[g] = g / each * columns + g % each * length;
    groups.begin[count] = values.size();
    groups.values = values;
    return groups;
  }
  const auto of = scale_of_elements(shape, request.channel_axis, request.group_count, request.scheme);
  for (const std::uint32_t g : of) ++groups.begin[g + 1];
  for (std::size_t g = 0; g < count; ++g) groups.begin[g + 1] += groups.begin[g];
  std::vector<std::size_t> next(groups.begin.begin(), groups.begin.end() - 1);
  groups.gathered.resize(values.size());
  groups.place.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = next[of[i]]++;
    groups.gathered[at] = values[i];
    groups.place[at] = i;
  }
  groups.values = groups.gathered;
  return groups;
}

// Stored codes of one group, which are signed: affine ranges have their middle at 0. Returns the squared error; `codes`
// may be null.
CTK_LANES double round_group(std::span<const float> values, const Grid& grid, const GridForm& form,
                             std::int8_t* codes) {
  const auto zero = static_cast<float>(grid.zero);
  const float low = static_cast<float>(form.lowest_code()) - zero,
              high = static_cast<float>(form.highest_code()) - zero;
  const int shift = grid.zero - (form.is_affine ? 1 << (form.bits - 1) : 0);
  double sums[kLanes] = {};
  float level[kLanes];
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    const float* v = values.data() + i;
    for (std::size_t j = 0; j < kLanes; ++j) level[j] = round_level(v[j] / grid.scale, low, high);
    for (std::size_t j = 0; j < kLanes; ++j) {
      const double miss = static_cast<double>(v[j]) - static_cast<double>(grid.scale) * static_cast<double>(level[j]);
      sums[j] += miss * miss;
    }
    if (codes == nullptr) continue;
    for (std::size_t j = 0; j < kLanes; ++j)
      codes[i + j] = static_cast<std::int8_t>(static_cast<int>(level[j]) + shift);
  }
  for (std::size_t j = 0; i < values.size(); ++i, ++j) {
    const float last = round_level(values[i] / grid.scale, low, high);
    const double miss = static_cast<double>(values[i]) - static_cast<double>(grid.scale) * static_cast<double>(last);
    sums[j] += miss * miss;
    if (codes != nullptr) codes[i] = static_cast<std::int8_t>(static_cast<int>(last) + shift);
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

}  // namespace

WeightOutcome round_freely(const WeightRequest& request, GridFit fit) {
  const Shape& shape = request.weight.shape();
  const GridForm form = grid_form_of(request.scheme);
  const std::size_t count = scale_count(shape, request.channel_axis, request.group_count, request.scheme);
  const Groups groups = groups_of_weight(request, count);
  const bool is_fitted = fit != GridFit::extremes;
  WeightOutcome outcome;
  QuantTensor& tensor = outcome.tensor;
  tensor.scheme = request.scheme;
  tensor.channel_axis = request.channel_axis;
  tensor.group_count = request.group_count;
  tensor.method = is_fitted ? "rtn" : "absmax";
  tensor.scales.resize(count);
  if (form.is_affine) tensor.zeros.resize(count);
  std::vector<std::int8_t> codes(groups.values.size());
  std::vector<double> errors(count), plain(count);
  parallel_for(count, 16, [&](std::size_t first, std::size_t last) {
    for (std::size_t g = first; g < last; ++g) {
      const auto values = groups.values.subspan(groups.begin[g], groups.begin[g + 1] - groups.begin[g]);
      const Grid extremes = grid_of_extremes(values, form);
      const Grid grid = is_fitted ? fit_grid(values, {}, form) : extremes;
      tensor.scales[g] = grid.scale;
      if (form.is_affine) tensor.zeros[g] = static_cast<std::int8_t>(grid.zero - (1 << (form.bits - 1)));
      errors[g] = round_group(values, grid, form, codes.data() + groups.begin[g]);
      plain[g] = is_fitted ? round_group(values, extremes, form, nullptr) : errors[g];
    }
  });
  for (std::size_t g = 0; g < count; ++g) {
    outcome.squared_error += errors[g];
    outcome.squared_error_rtn += plain[g];
  }
  if (!groups.place.empty()) {
    std::vector<std::int8_t> placed(codes.size());
    for (std::size_t i = 0; i < codes.size(); ++i) placed[groups.place[i]] = codes[i];
    codes = std::move(placed);
  }
  tensor.codes = pack_codes(shape, codes, request.scheme.weight_bits);
  return outcome;
}

}  // namespace ctk::quantization

// Grid fit: minimises sum h (w - (code - zero) * scale)^2 over scale, zero and codes of one group.
// In:  w [n] float32, h [n] float32 >= 0 or none.
// Out: scale (an fp16 number if asked for), zero.
// Cost: some 30 passes over the group, none of which stores anything.
// Source: scan over clipping ratios as in OMSE (Choukroun et al., 2019) and llama.cpp's make_qx_quants. For the codes a
// candidate gives, the best scale is A / B with A = sum h w p, B = sum h p^2, p = code - zero, and the error it leaves
// is sum h w^2 - A^2 / B: so candidates are compared by A^2 / B, each at its own best scale. The winner is rounded
// again with its best scale while that helps. Differs: both signs of the scale; zero points beside the middle of the
// range.
#include "compress/quantize/grid_fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/parallel.h"

namespace ctk::quantization {
namespace {

using Lanes = float __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4, kTogether = 4;  // candidates evaluated in one pass
constexpr float kRounder = 12582912.0f;           // see grid.cpp
constexpr int kRefinements = 4;
constexpr std::size_t kLongGroup = 256;  // from here on the extremes say little about the rest

struct Candidate {
  float inverse;    // 1 / scale, of values brought to a magnitude of 1
  float low, high;  // of code - zero
};
struct Sums {
  float wp = 0, pp = 0;  // A, B
  float gain() const { return pp > 0 ? wp * wp / pp : -1.0f; }
};

struct Extent {
  float low = 0, high = 0;  // 0 is inside
};

Extent extent_of(std::span<const float> values) {
  Lanes low{}, high{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    Lanes v;
    std::memcpy(&v, values.data() + i, sizeof v);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  Extent extent{std::min(std::min(low[0], low[1]), std::min(low[2], low[3])),
                std::max(std::max(high[0], high[1]), std::max(high[2], high[3]))};
  for (; i < values.size(); ++i) {
    extent.low = std::min(extent.low, values[i]);
    extent.high = std::max(extent.high, values[i]);
  }
  return extent;
}

// A group brought to magnitude 1, with zeros behind it up to whole lanes. Reused from group to group.
struct Work {
  std::vector<Lanes> values, importance;
  bool has_importance = false;
  float largest = 0;  // what the values were divided by

  // False when there is nothing to fit.
  bool load(std::span<const float> from, std::span<const float> weights) {
    const Extent extent = extent_of(from);
    largest = std::max(extent.high, -extent.low);
    if (!(largest >= std::numeric_limits<float>::min())) return false;
    const std::size_t count = (from.size() + kLanes - 1) / kLanes;
    values.assign(count, Lanes{});
    const float inverse = 1.0f / largest;
    float* v = reinterpret_cast<float*>(values.data());
    for (std::size_t i = 0; i < from.size(); ++i) v[i] = from[i] * inverse;
    float most = 0;
    for (float h : weights) most = std::max(most, h);
    has_importance = most > 0;
    if (!has_importance) return true;
    importance.assign(count, Lanes{});
    float* h = reinterpret_cast<float*>(importance.data());
    for (std::size_t i = 0; i < weights.size(); ++i) h[i] = weights[i] / most;
    return true;
  }
};

float sum(Lanes v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

inline Lanes level(Lanes value, Lanes inverse, Lanes low, Lanes high) {
  Lanes p = value * inverse;
  p = p > low ? p : low;
  p = p < high ? p : high;
  return (p + kRounder) - kRounder;
}

template <bool kWeighted, std::size_t kCount>
void evaluate(const Work& work, const Candidate* candidates, Sums* sums) {
  Lanes wp[kCount] = {}, pp[kCount] = {}, inverse[kCount], low[kCount], high[kCount];
  for (std::size_t c = 0; c < kCount; ++c) {
    inverse[c] = Lanes{} + candidates[c].inverse;
    low[c] = Lanes{} + candidates[c].low;
    high[c] = Lanes{} + candidates[c].high;
  }
  const Lanes* values = work.values.data();
  const Lanes* importance = work.importance.data();
  const std::size_t count = work.values.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Lanes v = values[i];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kCount; ++c) {
      const Lanes p = level(v, inverse[c], low[c], high[c]);
      const Lanes hp = kWeighted ? importance[i] * p : p;
      wp[c] += hp * v;
      pp[c] += hp * p;
    }
  }
  for (std::size_t c = 0; c < kCount; ++c) sums[c] = {sum(wp[c]), sum(pp[c])};
}

// The candidates' sums, four at a time and then one by one.
struct Scan {
  Candidate list[64];
  Sums sums[64];
  std::size_t count = 0;

  void add(Candidate c) { list[count++] = c; }
  std::size_t best(const Work& work) {
    std::size_t c = 0;
    for (; c + kTogether <= count; c += kTogether) {
      work.has_importance ? evaluate<true, kTogether>(work, list + c, sums + c)
                          : evaluate<false, kTogether>(work, list + c, sums + c);
    }
    for (; c < count; ++c) {
      work.has_importance ? evaluate<true, 1>(work, list + c, sums + c) : evaluate<false, 1>(work, list + c, sums + c);
    }
    std::size_t at = 0;
    for (c = 1; c < count; ++c) {
      if (sums[c].gain() > sums[at].gain()) at = c;
    }
    return at;
  }
};

// Squared error of rounding to this scale (of values of magnitude 1), as it will be stored.
double error_of(const Work& work, float scale, float low, float high) {
  const Lanes inverse = Lanes{} + 1.0f / scale;
  Lanes error{};
  for (std::size_t i = 0; i < work.values.size(); ++i) {
    const Lanes miss = work.values[i] - level(work.values[i], inverse, Lanes{} + low, Lanes{} + high) * scale;
    error += work.has_importance ? work.importance[i] * miss * miss : miss * miss;
  }
  return sum(error);
}

// From one ratio of the unclipped scale to the next, so that the last of `steps` is least / most of the first.
float ratio_step(int steps, float least, float most) {
  return std::pow(least / most, 1.0f / static_cast<float>(steps - 1));
}

void list_candidates(const Work& work, const GridForm& form, Scan& scan) {
  const float low = static_cast<float>(form.lowest_code()), high = static_cast<float>(form.highest_code());
  const bool is_long = work.values.size() * kLanes > kLongGroup;
  const float least = is_long ? 0.25f : (form.bits <= 3 ? 0.4f : 0.5f);
  const int steps = is_long ? 20 : 12;
  const auto* values = reinterpret_cast<const float*>(work.values.data());
  const auto [smallest, largest] = extent_of({values, work.values.size() * kLanes});
  if (!form.is_affine) {
    const float step = 1.0f / ratio_step(steps, least, 1.0f);
    for (float sign : {1.0f, -1.0f}) {  // of the scale
      if (sign < 0 && form.is_positive) continue;
      // The least scale that clips nothing on either side.
      const float whole =
          std::max(sign > 0 ? largest / high : -smallest / high, sign > 0 ? smallest / low : largest / -low);
      float inverse = sign / whole;
      for (int i = 0; i < steps; ++i, inverse *= step) scan.add({inverse, low, high});
    }
    return;
  }
  const float whole = (largest - smallest) / high;
  constexpr float kWidest = 1.04f;
  const float step = ratio_step(steps, least, kWidest);
  float scale = whole * kWidest;
  for (int i = 0; i < steps; ++i, scale *= step) {
    // Clipped alike on both sides, the middle stays where it was.
    const float middle = std::floor(0.5f * high - 0.5f * (largest + smallest) / scale);
    const float zero = std::clamp(middle, 0.0f, high);
    const float next = std::clamp(middle + 1.0f, 0.0f, high);
    scan.add({1.0f / scale, -zero, high - zero});
    if (next != zero) scan.add({1.0f / scale, -next, high - next});
  }
}

// Rounds again with the best scale for the codes at hand, while that helps; affine zero points may move by one.
Candidate refine(const Work& work, const GridForm& form, Candidate start, Sums sums) {
  float gain = sums.gain();
  for (int i = 0; i < kRefinements; ++i) {
    const float inverse = sums.pp / sums.wp;
    if (!std::isfinite(inverse) || inverse == 0) break;
    Scan scan;
    scan.add({inverse, start.low, start.high});
    if (form.is_affine && start.low < 0) scan.add({inverse, start.low + 1, start.high + 1});
    if (form.is_affine && start.high > 0) scan.add({inverse, start.low - 1, start.high - 1});
    const std::size_t best = scan.best(work);
    const bool helps = scan.sums[best].gain() > gain * (1 + 1e-6f);
    start = scan.list[best];
    sums = scan.sums[best];
    gain = sums.gain();
    if (!helps) break;
  }
  start.inverse = sums.pp / sums.wp;
  return start;
}

Grid extremes_of(std::span<const float> values, const GridForm& form) {
  const auto [smallest, largest] = extent_of(values);
  const float high = static_cast<float>(form.highest_code());
  if (smallest == 0 && largest == 0) return {};
  if (!form.is_affine) return {nearest_scale(std::max(largest, -smallest) / high, form), 0};
  const float scale = nearest_scale(largest / high - smallest / high, form);
  return {scale, static_cast<int>(std::clamp(std::nearbyint(-smallest / scale), 0.0f, high))};
}

Grid fit_group(std::span<const float> values, std::span<const float> importance, const GridForm& form, Work& work) {
  const Grid plain = extremes_of(values, form);
  if (!work.load(values, importance)) return plain;
  Scan scan;
  list_candidates(work, form, scan);
  const std::size_t best = scan.best(work);
  const Candidate found = refine(work, form, scan.list[best], scan.sums[best]);
  const Grid fitted{nearest_scale(work.largest / found.inverse, form),
                    form.is_affine ? static_cast<int>(-found.low) : 0};
  const auto error = [&](const Grid& grid) {
    return error_of(work, grid.scale / work.largest, static_cast<float>(form.lowest_code() - grid.zero),
                    static_cast<float>(form.highest_code() - grid.zero));
  };
  return error(fitted) <= error(plain) ? fitted : plain;
}

}  // namespace

Grid grid_of_extremes(std::span<const float> values, const GridForm& form) {
  return extremes_of(values, form);
}

Grid fit_grid(std::span<const float> values, std::span<const float> importance, const GridForm& form) {
  Work work;
  return fit_group(values, importance, form, work);
}

Grids fit_grids(std::span<const float> weights, std::size_t rows, std::size_t columns, const GridForm& form,
                GridFit fit, std::span<const float> importance) {
  const std::size_t length = form.group_length(columns), groups = form.groups(columns);
  Grids grids;
  grids.scales.resize(rows * groups);
  if (form.is_affine) grids.zeros.resize(rows * groups);
  parallel_for(rows, 4, [&](std::size_t begin, std::size_t end) {
    Work work;
    for (std::size_t i = begin * groups; i < end * groups; ++i) {
      const std::size_t from = i % groups * length, count = std::min(length, columns - from);
      const auto values = weights.subspan(i / groups * columns + from, count);
      const Grid grid =
          fit == GridFit::extremes
              ? extremes_of(values, form)
              : fit_group(values, importance.empty() ? importance : importance.subspan(from, count), form, work);
      grids.scales[i] = grid.scale;
      if (form.is_affine) grids.zeros[i] = static_cast<std::uint8_t>(grid.zero);
    }
  });
  return grids;
}

}  // namespace ctk::quantization

// Group search: minimises (v - q) H (v - q)^T over the grid and codes q of one group, H its block of the moment matrix
// and v = q_now + g H^-1 the best real values given all other groups. In:  levels and scales now, g = (W - Q) H at the
// group's columns. Out: levels, scales, zero points. Cost: size / 2 multiply-adds a weight for each of the 9 grids (13
// affine), and twice size for v. Source: GPTQ's rounding (Frantar et al., 2022) inside the group, whose greedy error
// sum_k D_k (rounded - value)^2 tells the grids apart without another pass.
#include "compress/quantize/group_search.h"

#include <algorithm>
#include <numeric>

#include "compress/quantize/triangular.h"
#include "core/parallel.h"

namespace ctk::quantization {
namespace {

constexpr std::size_t kLongest = 256;
struct Trial {
  float ratio;  // of the scale
  int shift;    // of the zero point
};
constexpr Trial kTrials[] = {{0.8f, 0},  {0.88f, 0}, {0.94f, 0}, {0.97f, 0}, {1.0f, 0},  {1.03f, 0}, {1.06f, 0},
                             {1.12f, 0}, {1.2f, 0},  {1.0f, 1},  {1.0f, -1}, {0.95f, 1}, {0.95f, -1}};
constexpr std::size_t kSymmetricTrials = 9;

}  // namespace

GroupSearch::GroupSearch(std::span<const float> hessian, std::size_t columns, const GridForm& form) : form_(form) {
  const std::size_t length = form.group_length(columns);
  if (length > kLongest) return;
  groups_.resize(form.groups(columns));
  parallel_for(groups_.size(), 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t g = first; g < last; ++g) {
      const std::size_t begin = g * length, size = std::min(length, columns - begin);
      const float* h = hessian.data() + begin * columns + begin;
      std::vector<std::size_t> order(size);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return h[a * columns + a] > h[b * columns + b]; });
      std::vector<float> lower(size * size);  // in reverse order, so that its transpose is the upper factor wanted
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j <= i; ++j)
          lower[i * size + j] = h[order[size - 1 - i] * columns + order[size - 1 - j]];
      }
      if (!factor_cholesky(lower, size)) continue;  // stays empty: nothing is searched
      Group& group = groups_[g];
      group.ties.assign(size * size, 0.0f);
      group.pivots.resize(size);
      for (std::size_t k = 0; k < size; ++k) {
        const std::size_t at = size - 1 - k;
        const float pivot = lower[at * size + at];
        group.pivots[k] = pivot * pivot;
        for (std::size_t i = 0; i < k; ++i) group.ties[k * size + i] = lower[(size - 1 - i) * size + at] / pivot;
      }
      group.order = std::move(order);
    }
  });
}

CTK_LANES bool GroupSearch::search(std::size_t index, GroupLanes& rows) const {
  if (index >= groups_.size() || groups_[index].order.empty()) return false;
  const Group& group = groups_[index];
  const std::size_t size = group.order.size();
  std::vector<float> room(4 * size * kLanes);
  auto* wanted = reinterpret_cast<Lanes*>(room.data());  // v, in the group's order
  auto* error = wanted + size;
  auto* value = error + size;
  auto* best_level = value + size;
  Lanes best{}, best_scale, best_zero;
  // error = g H^-1: what is missing now. First with I + M, from the last column on, then D, then (I + M)^T.
  for (std::size_t k = 0; k < size; ++k) std::copy_n(rows.gradient[group.order[k]], kLanes, error[k]);
  for (std::size_t k = size; k-- > 0;) subtract_product(error, error[k], group.ties.data() + k * size, k);
  for (std::size_t k = 0; k < size; ++k) {
    for (std::size_t r = 0; r < kLanes; ++r) {
      best[r] += error[k][r] * error[k][r] / group.pivots[k];
      error[k][r] /= group.pivots[k];
    }
  }
  for (std::size_t k = 0; k < size; ++k) {
    for (std::size_t i = 0; i < k; ++i) {
      const float tie = group.ties[k * size + i];
      for (std::size_t r = 0; r < kLanes; ++r) error[k][r] -= tie * error[i][r];
    }
    const std::size_t column = group.order[k];
    for (std::size_t r = 0; r < kLanes; ++r) wanted[k][r] = rows.level[column][r] * rows.scale[r] + error[k][r];
    std::copy_n(rows.level[column], kLanes, best_level[k]);
  }
  std::copy_n(rows.scale, kLanes, best_scale);
  std::copy_n(rows.zero, kLanes, best_zero);

  const std::size_t trials = form_.is_affine ? std::size(kTrials) : kSymmetricTrials;
  const float highest = static_cast<float>(form_.highest_code());
  std::vector<float> levels(size * kLanes);
  auto* level = reinterpret_cast<Lanes*>(levels.data());
  for (std::size_t t = 0; t < trials; ++t) {
    Lanes scale, inverse, zero, low, high, total{};
    for (std::size_t r = 0; r < kLanes; ++r) {
      scale[r] = nearest_scale(rows.scale[r] * kTrials[t].ratio, form_);
      inverse[r] = 1.0f / scale[r];
      zero[r] = rows.zero[r];
      if (form_.is_affine) zero[r] = std::clamp(zero[r] + static_cast<float>(kTrials[t].shift), 0.0f, highest);
      low[r] = rows.low[r] + rows.zero[r] - zero[r];
      high[r] = rows.high[r] + rows.zero[r] - zero[r];
    }
    for (std::size_t k = 0; k < size; ++k) {
      std::copy_n(wanted[k], kLanes, value[k]);
      for (std::size_t i = 0; i < k; ++i) {
        const float tie = group.ties[k * size + i];
        for (std::size_t r = 0; r < kLanes; ++r) value[k][r] += tie * error[i][r];
      }
      for (std::size_t r = 0; r < kLanes; ++r) {
        level[k][r] = round_level(value[k][r] * inverse[r], low[r], high[r]);
        const float real = level[k][r] * scale[r], miss = value[k][r] - real;
        error[k][r] = wanted[k][r] - real;
        total[r] += group.pivots[k] * miss * miss;
      }
    }
    for (std::size_t r = 0; r < kLanes; ++r) {
      if (!(total[r] < best[r] * (1 - 1e-5f))) continue;  // sums in float: less than that is no gain
      best[r] = total[r];
      best_scale[r] = scale[r];
      best_zero[r] = zero[r];
      for (std::size_t k = 0; k < size; ++k) best_level[k][r] = level[k][r];
    }
  }
  for (std::size_t k = 0; k < size; ++k) std::copy_n(best_level[k], kLanes, rows.level[group.order[k]]);
  for (std::size_t r = 0; r < kLanes; ++r) {
    rows.scale[r] = best_scale[r];
    rows.low[r] += rows.zero[r] - best_zero[r];
    rows.high[r] += rows.zero[r] - best_zero[r];
    rows.zero[r] = best_zero[r];
  }
  return true;
}

}  // namespace ctk::quantization

// Coordinate descent: minimises tr((W - Q) H (W - Q)^T) over codes, one at a time, and over scales, one at a time.
// In:  W [rows, columns] float32, H [columns, columns] symmetric, codes and grids to start from.
// Out: the same codes and grids, better.
// Cost: rows * columns^2 multiply-adds a sweep, most of them in gemm_fp32: gradients of a block of columns at once,
//       kept up to date inside the block. Refits add a block's width a weight, group_search.h some 7 groups' lengths.
// Source: the exact minimiser of a quadratic along one coordinate, as in QuantEase (Behdin et al., 2023). Of one row,
// with error e = w - s p and g = e H: the best value of column k given the others is s p_k + g_k / H_kk, rounded to the
// grid; the best step of a group's scale is <g, p> / (p H p^T). Differs: scales too, rounded to what will be stored.
#include "compress/quantize/coordinate_descent.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/parallel.h"

namespace ctk::quantization {
namespace {

constexpr std::size_t kBlock = 128;  // columns of short groups taken together
constexpr std::size_t kLongest = 512;
constexpr std::size_t kStrip = 48;  // rows of a thread's turn

// The scale nearest to the best one that can be stored, of the same sign; the old one where there is none.
float moved_scale(float scale, double numerator, double denominator, const GridForm& form) {
  if (!(denominator > 0)) return scale;
  const auto best = static_cast<float>(static_cast<double>(scale) + numerator / denominator);
  if (!std::isfinite(best) || best * scale <= 0) return scale;
  return nearest_scale(best, form);
}

}  // namespace

// Some rows in work: levels p = code - zero, errors w - s p.
struct CoordinateDescent::Rows {
  std::size_t count;
  const float* target;        // [count, columns]
  std::int8_t* codes;         // [count, columns]
  float* scales;              // [count, groups]
  std::uint8_t* zeros;        // or null
  std::vector<float> errors;  // [count, columns]
};

CoordinateDescent::CoordinateDescent(std::span<const float> hessian, std::size_t columns, const GridForm& form)
    : hessian_(hessian), columns_(columns), form_(form), search_(hessian, columns, form) {
  const std::size_t length = form.group_length(columns);
  has_long_groups_ = length > kLongest;
  const std::size_t step =
      has_long_groups_ ? kBlock : std::max<std::size_t>(1, kBlock / std::max<std::size_t>(length, 1)) * length;
  for (std::size_t begin = 0; begin < columns;) {
    std::size_t end = std::min(columns, begin + step);
    if (has_long_groups_) end = std::min(end, (begin / length + 1) * length);
    blocks_.push_back({begin, end, calibrate::PackedMatrix(end - begin, columns)});
    begin = end;
  }
  parallel_for(blocks_.size(), 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) blocks_[b].packed.pack(hessian.data() + blocks_[b].begin * columns);
  });
}

std::size_t CoordinateDescent::sweep(std::span<const float> target, std::size_t rows, std::span<std::int8_t> codes,
                                     Grids& grids, SweepParts parts) const {
  const std::size_t groups = form_.groups(columns_), length = form_.group_length(columns_);
  std::atomic<std::size_t> moved{0};
  parallel_for((rows + kStrip - 1) / kStrip, 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t strip = first; strip < last; ++strip) {
      const std::size_t begin = strip * kStrip;
      Rows part;
      part.count = std::min(kStrip, rows - begin);
      part.target = target.data() + begin * columns_;
      part.codes = codes.data() + begin * columns_;
      part.scales = grids.scales.data() + begin * groups;
      part.zeros = form_.is_affine ? grids.zeros.data() + begin * groups : nullptr;
      part.errors.resize(part.count * columns_);
      for (std::size_t i = 0; i < part.errors.size(); ++i) {
        const std::size_t g = i / columns_ * groups + i % columns_ / length;
        const int level = form_.code_value(part.codes[i]) - (part.zeros != nullptr ? part.zeros[g] : 0);
        part.errors[i] = part.target[i] - static_cast<float>(level) * part.scales[g];
      }
      std::size_t count = 0;
      for (const Block& block : blocks_) count += move_codes(block, part, parts);
      if (parts.refits_scales && has_long_groups_) refit_long_groups(part);
      moved += count;
    }
  });
  return moved;
}

// One block of columns of kLanes rows; a group's columns are [begin, end) of it. What comes before the group is done
// with, so gradients are kept up to date from `begin` on.
struct CoordinateDescent::BlockLanes {
  Lanes* gradient;  // [width]
  Lanes* level;     // [width]
  Lanes* change;    // [width]: room
  const float* h;   // the block of H, rows `stride` apart
  std::size_t stride, width;
  std::size_t begin = 0, end = 0;

  [[gnu::always_inline]] void moved(std::size_t k, const Lanes& step) {
    subtract_product(gradient + begin, step, h + k * stride + begin, width - begin);
  }

  [[gnu::always_inline]] void search(const GroupSearch& search, std::size_t index, GroupLanes& group) {
    for (std::size_t k = begin; k < end; ++k) {
      for (std::size_t r = 0; r < kLanes; ++r) change[k][r] = -level[k][r] * group.scale[r];
    }
    if (!search.search(index, group)) return;
    for (std::size_t k = begin; k < end; ++k) {
      for (std::size_t r = 0; r < kLanes; ++r) change[k][r] += level[k][r] * group.scale[r];
      if (!is_zero(change[k])) moved(k, change[k]);
    }
  }

  [[gnu::always_inline]] void move_codes(const GroupLanes& group) {
    Lanes inverse, step;
    for (std::size_t r = 0; r < kLanes; ++r) inverse[r] = 1.0f / group.scale[r];
    for (std::size_t k = begin; k < end; ++k) {
      const float curvature = 1.0f / h[k * stride + k];
      for (std::size_t r = 0; r < kLanes; ++r) {
        const float best = (level[k][r] * group.scale[r] + gradient[k][r] * curvature) * inverse[r];
        const float rounded = round_level(best, group.low[r], group.high[r]);
        step[r] = (rounded - level[k][r]) * group.scale[r];
        level[k][r] = rounded;
      }
      if (!is_zero(step)) moved(k, step);
    }
  }

  [[gnu::always_inline]] void refit_scale(GroupLanes& group, const GridForm& form) {
    std::fill(&change[begin][0], &change[width][0], 0.0f);  // becomes H p, p the group's levels
    for (std::size_t k = begin; k < end; ++k) {
      Lanes minus;
      for (std::size_t r = 0; r < kLanes; ++r) minus[r] = -level[k][r];
      if (!is_zero(minus)) subtract_product(change + begin, minus, h + k * stride + begin, width - begin);
    }
    for (std::size_t r = 0; r < kLanes; ++r) {
      double numerator = 0, denominator = 0;
      for (std::size_t k = begin; k < end; ++k) {
        numerator += static_cast<double>(gradient[k][r]) * static_cast<double>(level[k][r]);
        denominator += static_cast<double>(change[k][r]) * static_cast<double>(level[k][r]);
      }
      const float best = moved_scale(group.scale[r], numerator, denominator, form);
      for (std::size_t k = end; k < width; ++k) gradient[k][r] -= (best - group.scale[r]) * change[k][r];
      group.scale[r] = best;
    }
  }
};

CTK_LANES std::size_t CoordinateDescent::move_codes(const Block& block, Rows& rows, SweepParts parts) const {
  const std::size_t width = block.end - block.begin, length = form_.group_length(columns_),
                    groups = form_.groups(columns_);
  std::vector<float> gradients(rows.count * width), room(3 * width * kLanes);
  block.packed.multiply(rows.errors.data(), columns_, rows.count, gradients.data(), width, false);
  auto* lanes_room = reinterpret_cast<Lanes*>(room.data());
  BlockLanes work{lanes_room,
                  lanes_room + width,
                  lanes_room + 2 * width,
                  hessian_.data() + block.begin * columns_ + block.begin,
                  columns_,
                  width};
  std::size_t moved = 0;
  for (std::size_t first = 0; first < rows.count; first += kLanes) {
    const std::size_t lanes = std::min(kLanes, rows.count - first);
    // Lanes without a row of their own repeat the last one.
    const auto row_of = [&](std::size_t r) { return first + std::min(r, lanes - 1); };
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t r = 0; r < kLanes; ++r) work.gradient[k][r] = gradients[row_of(r) * width + k];
    }
    for (std::size_t g = block.begin / length; g * length < block.end; ++g) {
      // A group longer than the block is seen in part.
      work.begin = std::max(g * length, block.begin) - block.begin;
      work.end = std::min((g + 1) * length, block.end) - block.begin;
      GroupLanes group{work.level + work.begin, work.gradient + work.begin, {}, {}, {}, {}};
      for (std::size_t r = 0; r < kLanes; ++r) {
        const std::size_t at = row_of(r) * groups + g;
        group.scale[r] = rows.scales[at];
        group.zero[r] = rows.zeros != nullptr ? static_cast<float>(rows.zeros[at]) : 0.0f;
        group.low[r] = static_cast<float>(form_.lowest_code()) - group.zero[r];
        group.high[r] = static_cast<float>(form_.highest_code()) - group.zero[r];
        for (std::size_t k = work.begin; k < work.end; ++k) {
          const int code = form_.code_value(rows.codes[row_of(r) * columns_ + block.begin + k]);
          work.level[k][r] = static_cast<float>(code) - group.zero[r];
        }
      }
      if (parts.searches_groups) work.search(search_, g, group);
      work.move_codes(group);
      if (parts.refits_scales && !has_long_groups_) work.refit_scale(group, form_);
      for (std::size_t r = 0; r < lanes; ++r) {
        rows.scales[(first + r) * groups + g] = group.scale[r];
        if (rows.zeros != nullptr) rows.zeros[(first + r) * groups + g] = static_cast<std::uint8_t>(group.zero[r]);
        for (std::size_t k = work.begin; k < work.end; ++k) {
          const std::size_t at = (first + r) * columns_ + block.begin + k;
          const auto code = static_cast<std::int8_t>(static_cast<int>(work.level[k][r] + group.zero[r]));
          moved += code != rows.codes[at];
          rows.codes[at] = code;
          rows.errors[at] = rows.target[at] - work.level[k][r] * group.scale[r];
        }
      }
    }
  }
  return moved;
}

void CoordinateDescent::refit_long_groups(Rows& rows) const {
  const std::size_t length = form_.group_length(columns_), groups = form_.groups(columns_);
  std::vector<float> levels(rows.count * columns_), gradients(rows.count * kBlock), products(rows.count * kBlock);
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t begin = g * length, end = std::min(columns_, begin + length);
    std::fill(levels.begin(), levels.end(), 0.0f);
    std::vector<double> numerator(rows.count, 0.0), denominator(rows.count, 0.0);
    for (std::size_t r = 0; r < rows.count; ++r) {
      const int zero = rows.zeros != nullptr ? rows.zeros[r * groups + g] : 0;
      for (std::size_t c = begin; c < end; ++c)
        levels[r * columns_ + c] = static_cast<float>(form_.code_value(rows.codes[r * columns_ + c]) - zero);
    }
    for (const Block& block : blocks_) {
      if (block.begin < begin || block.end > end) continue;
      const std::size_t width = block.end - block.begin;
      block.packed.multiply(rows.errors.data(), columns_, rows.count, gradients.data(), width, false);
      block.packed.multiply(levels.data(), columns_, rows.count, products.data(), width, false);
      for (std::size_t r = 0; r < rows.count; ++r) {
        for (std::size_t c = 0; c < width; ++c) {
          const double p = static_cast<double>(levels[r * columns_ + block.begin + c]);
          numerator[r] += p * static_cast<double>(gradients[r * width + c]);
          denominator[r] += p * static_cast<double>(products[r * width + c]);
        }
      }
    }
    for (std::size_t r = 0; r < rows.count; ++r) {
      float& scale = rows.scales[r * groups + g];
      scale = moved_scale(scale, numerator[r], denominator[r], form_);
      for (std::size_t c = begin; c < end; ++c)
        rows.errors[r * columns_ + c] = rows.target[r * columns_ + c] - scale * levels[r * columns_ + c];
    }
  }
}

double output_error(std::span<const float> errors, std::size_t rows, std::span<const float> hessian,
                    std::size_t columns) {
  std::vector<double> sums(rows, 0.0);
  for (std::size_t begin = 0; begin < columns; begin += kBlock) {
    const std::size_t width = std::min(kBlock, columns - begin);
    calibrate::PackedMatrix packed(width, columns);
    packed.pack(hessian.data() + begin * columns);
    parallel_for((rows + kStrip - 1) / kStrip, 1, [&](std::size_t first, std::size_t last) {
      std::vector<float> product(kStrip * width);
      for (std::size_t r = first * kStrip; r < std::min(rows, last * kStrip); r += kStrip) {
        const std::size_t count = std::min(kStrip, rows - r);
        packed.multiply(errors.data() + r * columns, columns, count, product.data(), width, false);
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t c = 0; c < width; ++c) {
            sums[r + i] += static_cast<double>(product[i * width + c]) *
                           static_cast<double>(errors[(r + i) * columns + begin + c]);
          }
        }
      }
    });
  }
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace ctk::quantization

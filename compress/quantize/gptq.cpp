// GPTQ: minimises tr((W - Q) H (W - Q)^T) greedily, column by column, each column making up for the errors before it.
// In:  W [rows, columns] float32, H [columns, columns] = sum x x^T from calibrate/hessian.
// Out: codes [rows, columns], scales (and zero points) [rows, groups].
// Cost: rows * columns^2 / 2 + columns^3 / 3 multiply-adds, in gemm_fp32; two and a half matrices the size of H, some
// five
//       that of W.
// Source: Frantar et al., GPTQ, 2022. Column k is rounded from w_k + sum_{i<k} (w_i - q_i) R_ik / R_kk with H = R R^T,
// R upper triangular: the same numbers as the paper's by way of H^-1 (Chee et al., QuIP, 2023, theorem 6), with no
// inverse. Differs: scales are fitted beforehand (static groups), so columns may go by falling H_kk while groups stay
// those of neighbours; then coordinate descent with scale refits.
// The target may lie between W and the least-squares weights for the inputs x the layer will see, where the float
// network sees y: W + share * W (sum y x^T - H) (H + damping)^-1.
#include "compress/quantize/gptq.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "calibrate/packed_matrix.h"
#include "compress/quantize/lanes.h"
#include "compress/quantize/triangular.h"
#include "core/parallel.h"

namespace ctk::quantization {
namespace {

constexpr std::size_t kBlock = 96;      // columns whose mutual corrections are made one by one
constexpr std::size_t kStrip = 48;      // rows of a thread's turn
constexpr int kMostRaises = 8;          // tenfold each: from 1e-6 of the mean diagonal to 100 times it
constexpr double kLeastDamping = 1e-6;  // where a raise from 0 starts

Status check_matrix(std::span<const float> matrix, std::size_t rows, std::size_t columns, const std::string& what) {
  if (matrix.size() != rows * columns) {
    return input_error(what + ": expected \"" + std::to_string(rows) + " x " + std::to_string(columns) +
                       "\" values, found \"" + std::to_string(matrix.size()) +
                       "\". Gather it for this layer's inputs.");
  }
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (!std::isfinite(matrix[i])) {
      return input_error(what + ": expected finite values, found \"" + std::to_string(matrix[i]) + "\" at row \"" +
                         std::to_string(i / columns) + "\", column \"" + std::to_string(i % columns) +
                         "\". Look at the layer that made it.");
    }
  }
  return {};
}

Status check(const GptqInput& input) {
  const std::size_t k = input.columns;
  CTK_CHECK(check_matrix(input.weights, input.rows, k, "weights"));
  if (!input.hessian.empty()) CTK_CHECK(check_matrix(input.hessian, k, k, "second moment of the inputs"));
  if (!input.cross.empty()) CTK_CHECK(check_matrix(input.cross, k, k, "cross moment of the inputs"));
  if (!input.held_out_hessian.empty())
    CTK_CHECK(check_matrix(input.held_out_hessian, k, k, "second moment of the held-out inputs"));
  if (!input.held_out_cross.empty())
    CTK_CHECK(check_matrix(input.held_out_cross, k, k, "cross moment of the held-out inputs"));
  return {};
}

// H + damping, and its factor with columns in the order they are rounded in.
struct Curvature {
  std::vector<float> damped;       // [columns, columns]
  std::vector<std::size_t> order;  // order[i]: the column rounded as the i-th
  // L of the damped matrix with rows and columns in reverse of that order: R_ij = L[last - i][last - j].
  std::vector<float> lower;
};

Curvature factor(const GptqInput& input, const GptqOptions& options, GptqReceipt& receipt) {
  const std::size_t k = input.columns;
  Curvature c;
  c.damped.assign(k * k, 0.0f);
  if (!input.hessian.empty()) std::copy(input.hessian.begin(), input.hessian.end(), c.damped.begin());
  double mean = 0;
  for (std::size_t i = 0; i < k; ++i) {
    const float d = c.damped[i * k + i];
    if (d <= 0) {
      ++receipt.dead_columns;
      for (std::size_t j = 0; j < k; ++j) c.damped[i * k + j] = c.damped[j * k + i] = 0.0f;
    } else {
      mean += static_cast<double>(d);
    }
  }
  const std::size_t live = k - receipt.dead_columns;
  mean = live == 0 ? 1.0 : mean / static_cast<double>(live);  // nothing known: all columns count alike
  std::vector<float> diagonal(k);
  for (std::size_t i = 0; i < k; ++i) diagonal[i] = c.damped[i * k + i];
  c.order.resize(k);
  std::iota(c.order.begin(), c.order.end(), std::size_t{0});
  if (options.activation_order) {
    std::stable_sort(c.order.begin(), c.order.end(),
                     [&](std::size_t a, std::size_t b) { return diagonal[a] > diagonal[b]; });
  }
  c.lower.resize(k * k);
  receipt.damping = options.damping;
  for (;;) {
    for (std::size_t i = 0; i < k; ++i) {
      // A dead column has a curvature of its own, so that nothing divides by 0; it is tied to no other.
      const double own = diagonal[i] > 0 ? static_cast<double>(diagonal[i]) + receipt.damping * mean : mean;
      c.damped[i * k + i] = static_cast<float>(own);
    }
    for (std::size_t i = 0; i < k; ++i) {
      const float* row = c.damped.data() + c.order[k - 1 - i] * k;
      for (std::size_t j = 0; j <= i; ++j) c.lower[i * k + j] = row[c.order[k - 1 - j]];
    }
    if (factor_cholesky(c.lower, k)) return c;
    if (receipt.damping_raises == kMostRaises) {  // not a moment matrix at all: its diagonal is what can be trusted
      for (std::size_t i = 0; i < k; ++i) {
        for (std::size_t j = 0; j < k; ++j) {
          if (i != j) c.damped[i * k + j] = c.lower[i * k + j] = 0.0f;
        }
      }
      for (std::size_t i = 0; i < k; ++i) {
        const std::size_t column = c.order[k - 1 - i];
        c.lower[i * k + i] = std::sqrt(c.damped[column * k + column]);
      }
      return c;
    }
    receipt.damping = std::max(receipt.damping * 10, kLeastDamping);
    ++receipt.damping_raises;
  }
}

// W (cross - H)^T, [rows, columns]: the outputs' part that x misses of y.
std::vector<float> through_gap(const GptqInput& input, std::span<const float> hessian, std::span<const float> cross) {
  const std::size_t k = input.columns;
  std::vector<float> product(input.rows * k);
  multiply_transposed(input.weights, input.rows, k, k, product, [&](std::size_t row, float* gap) {
    for (std::size_t i = 0; i < k; ++i) gap[i] = cross[row * k + i] - hessian[row * k + i];
  });
  return product;
}

std::vector<float> moved_target(const GptqInput& input, const Curvature& c, double share) {
  const std::size_t k = input.columns, n = input.rows;
  std::vector<float> target(input.weights.begin(), input.weights.end());
  if (input.cross.empty() || input.hessian.empty() || share == 0) return target;
  std::vector<float> step = through_gap(input, input.hessian, input.cross), turned(n * k);
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t i = 0; i < k; ++i) turned[r * k + i] = step[r * k + c.order[k - 1 - i]];
  }
  solve_cholesky(c.lower, k, turned, n);
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t i = 0; i < k; ++i)
      target[r * k + c.order[k - 1 - i]] += static_cast<float>(share) * turned[r * k + i];
  }
  return target;
}

// R_ik / R_kk for i < k, in blocks of columns k: `inside` the block [width, width], and packed for all earlier i.
struct Corrections {
  std::size_t begin, end;
  calibrate::PackedMatrix earlier;  // [width, begin]
  std::vector<float> inside;        // [width, width]: row k, column i
};

std::vector<Corrections> corrections_of(const Curvature& c, std::size_t k) {
  std::vector<Corrections> blocks;
  for (std::size_t begin = 0; begin < k; begin += kBlock) {
    const std::size_t end = std::min(k, begin + kBlock);
    blocks.push_back({begin, end, calibrate::PackedMatrix(end - begin, begin), {}});
  }
  parallel_for(blocks.size(), 1, [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) {
      Corrections& block = blocks[b];
      const std::size_t width = block.end - block.begin;
      std::vector<float> rows(width * block.begin);
      block.inside.assign(width * width, 0.0f);
      for (std::size_t i = 0; i < block.end; ++i) {
        const float* from = c.lower.data() + (k - 1 - i) * k;
        for (std::size_t j = std::max(block.begin, i + 1); j < block.end; ++j) {
          const std::size_t at = k - 1 - j;
          const float value = from[at] / c.lower[at * k + at];
          if (i < block.begin) {
            rows[(j - block.begin) * block.begin + i] = value;
          } else {
            block.inside[(j - block.begin) * width + i - block.begin] = value;
          }
        }
      }
      block.earlier.pack(rows.data());
    }
  });
  return blocks;
}

// One block of columns of up to kLanes rows. values [width, kLanes]: what is rounded; errors: target minus code.
struct Strip {
  const GptqInput& input;
  const GptqOptions& options;
  const Curvature& curvature;
  const Grids& grids;
  const std::vector<float>& target;
  std::vector<std::int8_t>& codes;
};

CTK_LANES void round_block(const Strip& strip, const Corrections& block, std::size_t row, std::size_t lanes,
                           const float* product, std::vector<float>& values, float* errors) {
  const GridForm& form = strip.options.form;
  const std::size_t k = strip.input.columns, width = block.end - block.begin, groups = form.groups(k);
  const std::size_t length = form.group_length(k);
  auto* value = reinterpret_cast<Lanes*>(values.data());
  const auto row_of = [&](std::size_t r) { return row + std::min(r, lanes - 1); };  // too many lanes repeat the last
  for (std::size_t j = 0; j < width; ++j) {
    const std::size_t column = strip.curvature.order[block.begin + j];
    for (std::size_t r = 0; r < kLanes; ++r) {
      value[j][r] = strip.target[row_of(r) * k + column];
      if (block.begin != 0) value[j][r] += product[std::min(r, lanes - 1) * width + j];
    }
  }
  for (std::size_t j = 0; j < width; ++j) {
    const std::size_t column = strip.curvature.order[block.begin + j];
    Lanes scale, zero, error;
    for (std::size_t r = 0; r < kLanes; ++r) {
      const Grid grid = strip.grids.at(row_of(r) * groups + column / length);
      scale[r] = grid.scale;
      zero[r] = static_cast<float>(grid.zero);
    }
    const float lowest = static_cast<float>(form.lowest_code()), highest = static_cast<float>(form.highest_code());
    Lanes level;
    for (std::size_t r = 0; r < kLanes; ++r) {
      const float low = lowest - zero[r], high = highest - zero[r];
      level[r] = round_level(value[j][r] / scale[r], low, high);
    }
    for (std::size_t r = 0; r < kLanes; ++r) error[r] = strip.target[row_of(r) * k + column] - level[r] * scale[r];
    for (std::size_t r = 0; r < lanes; ++r) {
      strip.codes[(row + r) * k + column] = static_cast<std::int8_t>(static_cast<int>(level[r] + zero[r]));
      errors[r * k + block.begin + j] = error[r];
    }
    for (std::size_t i = j + 1; i < width; ++i) {
      const float factor = block.inside[i * width + j];
      for (std::size_t r = 0; r < kLanes; ++r) value[i][r] += factor * error[r];
    }
  }
}

std::vector<std::int8_t> round_in_order(const GptqInput& input, const GptqOptions& options, const Curvature& curvature,
                                        const Grids& grids, const std::vector<float>& target) {
  const std::size_t k = input.columns;
  const std::vector<Corrections> blocks = corrections_of(curvature, k);
  std::vector<std::int8_t> codes(input.rows * k);
  const Strip strip{input, options, curvature, grids, target, codes};
  parallel_for((input.rows + kStrip - 1) / kStrip, 1, [&](std::size_t first, std::size_t last) {
    std::vector<float> errors(kStrip * k), product(kStrip * kBlock), values(kBlock * kLanes);
    for (std::size_t row = first * kStrip; row < std::min(input.rows, last * kStrip); row += kStrip) {
      const std::size_t count = std::min(kStrip, input.rows - row);
      for (const Corrections& block : blocks) {
        const std::size_t width = block.end - block.begin;
        if (block.begin != 0) block.earlier.multiply(errors.data(), k, count, product.data(), width, false);
        for (std::size_t r = 0; r < count; r += kLanes) {
          round_block(strip, block, row + r, std::min(kLanes, count - r), product.data() + r * width, values,
                      errors.data() + r * k);
        }
      }
    }
  });
  return codes;
}

// |W y - Q x|^2 over samples, less |W (y - x)|^2: tr(E H E^T) + 2 tr(E (cross - H) W^T), E = W - Q. `missed` is
// through_gap(), empty where x is y.
double error_on(const GptqInput& input, std::span<const float> hessian, const std::vector<float>& missed,
                const GridForm& form, std::span<const std::int8_t> codes, const Grids& grids) {
  std::vector<float> errors = dequantize(codes, input.rows, input.columns, form, grids);
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = input.weights[i] - errors[i];
  double error = output_error(errors, input.rows, hessian, input.columns);
  for (std::size_t i = 0; i < missed.size(); ++i)
    error += 2 * static_cast<double>(errors[i]) * static_cast<double>(missed[i]);
  return error;
}

}  // namespace

Result<GptqOutcome> quantize_gptq(const GptqInput& input, const GptqOptions& options) {
  CTK_CHECK(check(input));
  const std::size_t k = input.columns, n = input.rows;
  GptqOutcome outcome;
  GptqReceipt& receipt = outcome.receipt;
  receipt.samples = input.samples;
  Curvature curvature = factor(input, options, receipt);
  std::vector<float> importance;
  if (options.weights_fit) {
    for (std::size_t i = 0; i < k; ++i) importance.push_back(curvature.damped[i * k + i]);
  }
  Grids rounded_grids = fit_grids(input.weights, n, k, options.form, options.fit, importance);
  const bool is_reached = receipt.dead_columns < k, holds_out = !input.held_out_hessian.empty();
  const bool judges = is_reached && (options.judges_samples || (options.falls_back && !holds_out));
  std::vector<std::int8_t> rounded;
  if (judges || holds_out || !is_reached) rounded = round_to_grids(input.weights, n, k, options.form, rounded_grids);
  const std::vector<float> target = moved_target(input, curvature, options.target_share);
  outcome.grids = input.cross.empty() ? rounded_grids : fit_grids(target, n, k, options.form, options.fit, importance);
  outcome.codes = round_in_order(input, options, curvature, outcome.grids, target);
  curvature.lower = {};  // as large as H, and done with
  if (options.sweeps > 0) {
    const CoordinateDescent descent(curvature.damped, k, options.form);
    for (int i = 0; i < options.sweeps; ++i) {
      const std::size_t moved = descent.sweep(target, n, outcome.codes, outcome.grids, options.sweep_parts);
      receipt.moved_codes += moved;
      if (moved == 0 && !options.sweep_parts.refits_scales) break;
    }
  }
  const auto errors = [&](std::span<const float> hessian, std::span<const float> cross) {
    const std::vector<float> missed = cross.empty() ? std::vector<float>() : through_gap(input, hessian, cross);
    return std::pair{error_on(input, hessian, missed, options.form, rounded, rounded_grids),
                     error_on(input, hessian, missed, options.form, outcome.codes, outcome.grids)};
  };
  curvature.damped = {};
  if (judges) std::tie(receipt.error_rounding, receipt.error) = errors(input.hessian, input.cross);
  receipt.fell_back = !is_reached || (options.falls_back && receipt.error > receipt.error_rounding);
  if (holds_out) {
    std::tie(receipt.held_out_error_rounding, receipt.held_out_error) =
        errors(input.held_out_hessian, input.held_out_cross);
    receipt.fell_back =
        !is_reached || (options.falls_back && *receipt.held_out_error > *receipt.held_out_error_rounding);
  }
  if (receipt.fell_back) {
    outcome.codes = std::move(rounded);
    outcome.grids = std::move(rounded_grids);
  }
  return outcome;
}

}  // namespace ctk::quantization

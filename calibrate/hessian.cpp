#include "calibrate/hessian.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "calibrate/histogram.h"
#include "calibrate/packed_matrix.h"
#include "core/parallel.h"

namespace ctk::calibrate {
namespace {

constexpr std::size_t kChunk = 384;  // rows summed in one accumulator: what gemm_fp32 does without cutting its sums
constexpr std::size_t kTile = 192;   // of the matrix; a multiple of every row's n_step
constexpr std::size_t kStrip = 16;   // rows or columns transposed at a time: one cache line

// rows [count, columns] -> columns `from` and on of out [columns, kChunk].
void transpose_into(const float* rows, std::size_t count, std::size_t columns, std::size_t from, float* out) {
  const std::size_t strips = (columns + kStrip - 1) / kStrip;
  parallel_for(strips, 8, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = 0; r < count; r += kStrip) {
      const std::size_t r_end = std::min(count, r + kStrip);
      for (std::size_t strip = begin; strip < end; ++strip) {
        const std::size_t c_end = std::min(columns, (strip + 1) * kStrip);
        for (std::size_t c = strip * kStrip; c < c_end; ++c) {
          for (std::size_t i = r; i < r_end; ++i) out[c * kChunk + from + i] = rows[i * columns + c];
        }
      }
    }
  });
}

}  // namespace

Moment::Moment(std::size_t columns, bool is_cross) : columns_(columns), is_cross_(is_cross) {}

Status Moment::add(std::span<const float> rows) {
  return add_pair(rows, {});
}

Status Moment::add_pair(std::span<const float> left, std::span<const float> right) {
  for (const std::span<const float> side : {left, right}) {
    if (side.empty()) continue;
    if (columns_ == 0 || side.size() % columns_ != 0) {
      return input_error("second moments: expected rows of \"" + std::to_string(columns_) + "\" values, found \"" +
                         std::to_string(side.size()) + "\" values. Hand over whole rows.");
    }
    if (const std::size_t at = first_not_finite(side); at != side.size()) {
      return input_error("second moments: expected finite inputs, found \"" + std::to_string(side[at]) +
                         "\" in row \"" + std::to_string(rows_ + at / columns_) + "\", column \"" +
                         std::to_string(at % columns_) +
                         "\". Look at the layer that made it, or leave that sample out.");
    }
  }
  if (is_cross_ && left.size() != right.size()) {
    return input_error("second moments: expected as many rows on both sides, found \"" +
                       std::to_string(left.size() / columns_) + "\" and \"" + std::to_string(right.size() / columns_) +
                       "\". Run both networks on the same samples.");
  }
  if (left.empty()) return {};
  if (sum_.empty()) {
    sum_.resize(columns_ * columns_);
    left_.resize(columns_ * kChunk);
    if (is_cross_) right_.resize(columns_ * kChunk);
  }
  const std::size_t count = left.size() / columns_;
  for (std::size_t done = 0; done < count;) {
    const std::size_t take = std::min(count - done, kChunk - held_);
    transpose_into(left.data() + done * columns_, take, columns_, held_, left_.data());
    if (is_cross_) transpose_into(right.data() + done * columns_, take, columns_, held_, right_.data());
    held_ += take;
    done += take;
    if (held_ == kChunk) flush();
  }
  rows_ += count;
  return {};
}

void Moment::flush() {
  if (held_ == 0) return;
  for (std::vector<float>* side : {&left_, &right_}) {  // rows that are not there count as zeros
    if (side->empty() || held_ == kChunk) continue;
    for (std::size_t c = 0; c < columns_; ++c) {
      const auto row = side->begin() + static_cast<std::ptrdiff_t>(c * kChunk);
      std::fill(row + static_cast<std::ptrdiff_t>(held_), row + kChunk, 0.0f);
    }
  }
  held_ = 0;
  const float* rows_of = left_.data();
  const float* columns_of = is_cross_ ? right_.data() : left_.data();
  const std::size_t blocks = (columns_ + kTile - 1) / kTile;
  std::vector<PackedMatrix> packed;
  for (std::size_t b = 0; b < blocks; ++b) packed.emplace_back(std::min(kTile, columns_ - b * kTile), kChunk);
  const std::vector<Tile> all = tiles();
  parallel_for(blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b) packed[b].pack(columns_of + b * kTile * kChunk);
  });
  parallel_for(all.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (i % size_ != rank_) continue;
      const Tile& tile = all[i];
      packed[tile.column / kTile].multiply(rows_of + tile.row * kChunk, kChunk, tile.rows,
                                           sum_.data() + tile.row * columns_ + tile.column, columns_, true);
    }
  });
}

std::vector<Moment::Tile> Moment::tiles() const {
  std::vector<Tile> all;
  for (std::size_t column = 0; column < columns_; column += kTile) {
    for (std::size_t row = is_cross_ ? 0 : column; row < columns_; row += kTile) {
      all.push_back({row, column, std::min(kTile, columns_ - row), std::min(kTile, columns_ - column)});
    }
  }
  return all;
}

void Moment::share(const Ranks& ranks) {
  rank_ = static_cast<std::size_t>(ranks.rank());
  size_ = static_cast<std::size_t>(ranks.size());
}

Status Moment::gather(Ranks& ranks) {
  flush();
  if (ranks.is_alone() || rows_ == 0) return {};
  const std::vector<Tile> all = tiles();
  std::string mine;
  for (std::size_t i = rank_; i < all.size(); i += size_) {
    for (std::size_t r = 0; r < all[i].rows; ++r) {
      const float* from = sum_.data() + (all[i].row + r) * columns_ + all[i].column;
      mine.append(reinterpret_cast<const char*>(from), all[i].columns * sizeof(float));
    }
  }
  CTK_TRY(const std::vector<std::string> parts, ranks.gather("second moments", mine));
  for (std::size_t rank = 0; rank < size_; ++rank) {
    const char* from = parts[rank].data();
    for (std::size_t i = rank; i < all.size(); i += size_) {
      for (std::size_t r = 0; r < all[i].rows; ++r, from += all[i].columns * sizeof(float)) {
        std::memcpy(sum_.data() + (all[i].row + r) * columns_ + all[i].column, from, all[i].columns * sizeof(float));
      }
    }
  }
  rank_ = 0;
  size_ = 1;
  return {};
}

std::span<const float> Moment::finish() {
  if (sum_.empty()) sum_.resize(columns_ * columns_);
  flush();
  if (!is_cross_) {
    parallel_for((columns_ + kStrip - 1) / kStrip, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin * kStrip; i < std::min(columns_, end * kStrip); ++i) {
        for (std::size_t j = i + 1; j < columns_; ++j) sum_[i * columns_ + j] = sum_[j * columns_ + i];
      }
    });
  }
  return sum_;
}

void Moment::add_moment(Moment& other) {
  finish();
  const std::span<const float> sums = other.finish();
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += sums[i];
  rows_ += other.rows_;
}

}  // namespace ctk::calibrate

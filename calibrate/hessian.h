// Second moments of a layer's inputs: H = sum x x^T over rows x, and the cross moment sum x y^T of two inputs that
// belong together (what the float network feeds a layer, and what the half-quantized one does).
// In:  rows [count, columns] float32, as many chunks as there are. Finite.
// Out: [columns, columns] float32, row-major, whole (both triangles); NOT divided by the number of rows.
// Cost: rows * columns^2 multiply-adds for the cross moment, half of that for H: only tiles on and below the diagonal
//       are computed, each a call of gemm_fp32. Memory: the matrix and 768 * columns floats, twice that for
//       the cross moment.
// Sums run over 384 rows in one float accumulator, then the float matrix takes that sum: the relative error stays near
// 1e-6 for any number of rows. Chunks are cut at fixed row numbers, whatever pieces the rows come in, so the bits
// depend on the order of the rows only: not on the pieces, the threads or the processor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/ranks.h"
#include "core/result.h"

namespace ctk::calibrate {

class Moment {
 public:
  explicit Moment(std::size_t columns) : Moment(columns, false) {}

  std::size_t columns() const { return columns_; }
  std::size_t rows() const { return rows_; }

  // rows: [count, columns]. Errors: input, when the length is no multiple of columns or a value is not finite (says
  // which row and column); nothing of that piece is taken then.
  Status add(std::span<const float> rows);
  // Before any rows: of the matrix this rank sums every size-th tile, from rows that all ranks are given. gather() then
  // brings the tiles together: the same bits as on one. Errors: those of ranks.
  void share(const Ranks& ranks);
  Status gather(Ranks& ranks);
  // The matrix so far. May be called more than once, and rows added after it; the bits then depend on where.
  std::span<const float> finish();
  // Adds the sums of `other`, of as many columns; finishes both.
  void add_moment(Moment& other);

 protected:
  Moment(std::size_t columns, bool is_cross);
  Status add_pair(std::span<const float> left, std::span<const float> right);

 private:
  struct Tile {
    std::size_t row = 0, column = 0, rows = 0, columns = 0;
  };
  std::vector<Tile> tiles() const;  // on and below the diagonal, or all
  void flush();

  std::size_t columns_, rows_ = 0, held_ = 0;
  bool is_cross_;
  std::vector<float> left_, right_;  // [columns, 384]: the held rows, transposed; right_ only for the cross moment
  std::vector<float> sum_;           // [columns, columns]
  std::size_t rank_ = 0, size_ = 1;  // tile i is summed where i % size_ == rank_
};

// sum x y^T: element [i, j] is sum x_i y_j.
class CrossMoment : private Moment {
 public:
  explicit CrossMoment(std::size_t columns) : Moment(columns, true) {}
  using Moment::columns;
  void add_moment(CrossMoment& other) { Moment::add_moment(other); }
  using Moment::finish;
  using Moment::gather;
  using Moment::rows;
  using Moment::share;
  // x, y: [count, columns] each. Errors: as Moment::add, and input when the lengths differ.
  Status add(std::span<const float> x, std::span<const float> y) { return add_pair(x, y); }
};

}  // namespace ctk::calibrate

// Coordinate descent on codes and scales that are already good: lowers tr((W - Q) H (W - Q)^T), never raises it.
#pragma once

#include <span>
#include <vector>

#include "calibrate/packed_matrix.h"
#include "compress/quantize/grid.h"
#include "compress/quantize/group_search.h"

namespace ctk::quantization {

struct SweepParts {
  bool refits_scales = true;  // each group's scale to its best value, given all codes and other scales
  // Before a group's codes move: other grids for it, each with codes of its own. Doubles the time of a sweep and takes
  // 6 to 7% off a layer's error; what that is worth to a network single runs on stories260k could not tell.
  bool searches_groups = false;
};

class CoordinateDescent {
 public:
  // hessian: [columns, columns], symmetric, positive diagonal; it must outlive this object.
  CoordinateDescent(std::span<const float> hessian, std::size_t columns, const GridForm& form);

  // One pass over the columns: each code moves to its best value given all others; `parts` says what else may move.
  // target: [rows, columns]. Codes and grids change in place. Returns how many codes changed. Rows are independent;
  // threads share them. Same bits for any number of threads.
  std::size_t sweep(std::span<const float> target, std::size_t rows, std::span<std::int8_t> codes, Grids& grids,
                    SweepParts parts) const;

 private:
  struct Block {
    std::size_t begin, end;          // columns
    calibrate::PackedMatrix packed;  // rows [begin, end) of H
  };
  struct Rows;
  struct BlockLanes;
  std::size_t move_codes(const Block& block, Rows& rows, SweepParts parts) const;
  void refit_long_groups(Rows& rows) const;

  std::span<const float> hessian_;
  std::size_t columns_;
  GridForm form_;
  bool has_long_groups_;  // longer than a block: their scales are refitted after the sweep
  std::vector<Block> blocks_;
  GroupSearch search_;
};

// tr(E H E^T), summed in double: what the rounding errors E [rows, columns] do to outputs whose inputs have moment H.
double output_error(std::span<const float> errors, std::size_t rows, std::span<const float> hessian,
                    std::size_t columns);

}  // namespace ctk::quantization

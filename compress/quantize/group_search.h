// Grid and codes of one group together, given all other groups: other scales (and zero points) are tried, each with
// codes of its own, and the best kept.
#pragma once

#include <span>
#include <vector>

#include "compress/quantize/grid.h"
#include "compress/quantize/lanes.h"

namespace ctk::quantization {

// The group's part of some rows. real = level * scale; level = code - zero lies in [low, high].
struct GroupLanes {
  Lanes* level;           // [size]
  const Lanes* gradient;  // [size]: (W - Q) H at these columns
  Lanes scale, zero, low, high;
};

class GroupSearch {
 public:
  // hessian: [columns, columns], symmetric, positive definite. Groups of more than 256 columns are left alone.
  GroupSearch(std::span<const float> hessian, std::size_t columns, const GridForm& form);

  // Changes level, scale and zero of the rows for which that lowers the error. False when nothing was looked for.
  bool search(std::size_t group, GroupLanes& rows) const;

 private:
  struct Group {
    std::vector<std::size_t> order;  // within the group: the column rounded as the i-th
    std::vector<float> ties;         // [size, size]: H = (I + M) D (I + M)^T in that order; row k, i < k: M[i][k]
    std::vector<float> pivots;       // D
  };
  GridForm form_;
  std::vector<Group> groups_;
};

}  // namespace ctk::quantization

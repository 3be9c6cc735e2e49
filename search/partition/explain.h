// What a placement means: its segments, what crosses between units, and what fell back to another unit and why.
#pragma once

#include "search/partition/solvers.h"

namespace ctk::search::partition {

// Nodes that run one after the other on one unit.
struct Segment {
  std::size_t unit = 0, begin = 0, end = 0;  // nodes [begin, end)
  double compute_us = 0, launch_us = 0;
};
std::vector<Segment> segments_of(const Task& task, const std::vector<std::size_t>& unit_of);

struct Transfer {
  std::size_t value = 0, from = 0, to = 0;
  double us = 0;
};
std::vector<Transfer> transfers_of(const Task& task, const std::vector<std::size_t>& unit_of);

// A node that some accelerator (a unit that is not of kind "cpu") cannot run. `cost_us`: what the placement takes more
// than if that node took no time and ran wherever its neighbours do.
struct Fallback {
  std::size_t node = 0, from = 0, to = 0;  // from: the first accelerator that cannot run it
  std::string reason;
  double cost_us = 0;
};
std::vector<Fallback> fallbacks_of(const Task& task, const std::vector<std::size_t>& unit_of);

}  // namespace ctk::search::partition

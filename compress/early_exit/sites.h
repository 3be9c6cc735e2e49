// Where a network may get a head: values that everything it knows of a sample goes through.
#pragma once

#include <string>
#include <vector>

#include "compress/model.h"
#include "compress/stage_keys.h"

namespace ctk::exits {

struct Site {
  graph::ValueId feature;
  double share = 0;  // of the network's multiply-adds that have been done there
};

// As `keys` asks: `at` by name of a value or address of the node that makes it; every n-th end of a block; else those
// ends that lie nearest to a quarter, a half and three quarters of the multiply-adds. Blocks are prune's; a network
// without them has its cuts instead. In the order they are passed, at most kMostExits.
// Errors: config (a name that is not there, or that a sample can go around; nothing found).
inline constexpr std::size_t kMostExits = 16;
Result<std::vector<Site>> find_sites(const pipeline::LoadedModel& model, const pipeline::EarlyExitKeys& keys,
                                     const std::string& key);

}  // namespace ctk::exits

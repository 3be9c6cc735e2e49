// Ranks carried by a process group of torch.distributed.
#pragma once

#include <memory>
#include <string>

#include "core/ranks.h"

namespace ctk::train {

// See Trainer::join().
Result<std::unique_ptr<Ranks>> join_group(const std::string& name, int here);

}  // namespace ctk::train

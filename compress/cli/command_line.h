// The whole command line as a function: what the program and `python -m compress` run.
#pragma once

#include <span>
#include <string>

#include "core/ranks.h"

namespace ctk::cli {

// words[0] is the name of the program. Prints, and answers the exit code. `ranks`: those that run a pipeline together
// (may be null); other verbs than `run` are then rank 0's alone, and the others have nothing to do.
int command_line(std::span<const std::string> words, Ranks* ranks);

}  // namespace ctk::cli

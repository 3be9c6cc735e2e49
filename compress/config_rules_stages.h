// Rules of the pipeline file over keys of single stages.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compress/config_schema.h"

namespace ctk::pipeline {

// Scores that pairs of layers cannot be held against, oracles without a file they read. (path, message) each.
std::vector<std::pair<std::string, std::string>> stage_problems(const CheckedValues& values);

}  // namespace ctk::pipeline

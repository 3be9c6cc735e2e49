// Rules of the pipeline file about the stage transform and quantize's low_rank. Internal to config_rules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compress/config_schema.h"

namespace ctk::pipeline {

// Key path and message of each rule that is broken.
std::vector<std::pair<std::string, std::string>> transform_problems(const CheckedValues& values);

}  // namespace ctk::pipeline

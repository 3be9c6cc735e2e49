// Rules of the pipeline file over who is learned from.
#pragma once

#include <functional>
#include <string>

#include "compress/config_schema.h"

namespace ctk::pipeline {

// A distillation without anybody to learn from, a student that would be the model, inner values of a network that is
// not there. `problem` receives path and message.
void check_teachers(const CheckedValues& values,
                    const std::function<void(const std::string& path, std::string message)>& problem);

}  // namespace ctk::pipeline

// Other people's runtimes, each in a Python process of its own.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace ctk::pipeline {

// A Python that imports `modules` ("onnxruntime, numpy"): CTK_PYTHON, the one beside this program, python3. Empty when
// there is none: `reason` then says so and names `package`, which pip installs.
std::string find_python(const std::string& modules, const std::string& package, std::string* reason);

// Runs a program, its output to `log`. The exit status, or -1.
int run_program(const std::vector<std::string>& words, const std::string& log);
// Of a log: what a failed program said last.
std::string last_line(const std::string& path);

// A folder that goes when this does.
struct ScratchFolder {
  std::string path;
  explicit ScratchFolder(std::string path);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
};

}  // namespace ctk::pipeline

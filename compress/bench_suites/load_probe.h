// Loading measured in a process of its own: forked while this one is still small, it waits until there is something to
// load.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/result.h"
#include "core/shape.h"

namespace ctk::pipeline {

struct LoadFigure {
  double seconds = 0;               // from the path to the end of the first run
  double base_mb = 0, peak_mb = 0;  // most memory the process ever held: before loading, and after the run
};

class LoadProbe {
 public:
  // Errors: input (the system refuses a process or a pipe).
  static Result<LoadProbe> start();
  LoadProbe(LoadProbe&& other) noexcept;
  LoadProbe(const LoadProbe&) = delete;
  LoadProbe& operator=(const LoadProbe&) = delete;
  LoadProbe& operator=(LoadProbe&&) = delete;
  ~LoadProbe();

  // Once. Loads the bundle, plans it for `input` and runs it on zeros. Errors: input (the message of what failed).
  Result<LoadFigure> load(const std::string& bundle, const Shape& input, int threads);

 private:
  LoadProbe(pid_t child, int to, int from) : child_(child), to_(to), from_(from) {}
  pid_t child_;
  int to_, from_;
};

}  // namespace ctk::pipeline

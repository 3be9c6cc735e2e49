// How a run tells what it is doing. Library code reports to a sink; the command line and Python choose which.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ctk::pipeline {

class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // A stage starts; `total` is its work in its own units, 0 when unknown. Stages do not nest.
  virtual void stage_begin(const std::string& name, std::int64_t total) = 0;
  virtual void advance(std::int64_t done) = 0;  // so far, not since the last call
  virtual void stage_end(const std::string& name, double seconds, bool cached) = 0;
  // Instead of stage_end; `how` is "interrupted", "refused" or "failed".
  virtual void stage_stopped(const std::string& name, double seconds, const std::string& how) = 0;
  virtual void note(const std::string& text) = 0;  // one line worth reading now
};

// On stderr: a live bar with the time left when it is a terminal, else one line at the start, the end and every tenth
// of a stage. Not thread-safe: call it from the thread that runs the pipeline.
std::unique_ptr<ProgressSink> make_stderr_progress();
// The same with lines going to `write`; `is_live` asks for the bar. For tests.
std::unique_ptr<ProgressSink> make_progress(std::function<void(const std::string&)> write, bool is_live);

}  // namespace ctk::pipeline

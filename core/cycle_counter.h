// Cycles that the calling thread has spent, by the processor's own counter: what a computation costs whatever the clock
// rate was and whoever else ran. Virtual machines and strict kernels (perf_event_paranoid above 2) often have none.
#pragma once

#include <cstdint>
#include <optional>

namespace ctk {

class CycleCounter {
 public:
  // Of the calling thread, user mode only; nullopt where nothing counts them.
  static std::optional<CycleCounter> open();
  ~CycleCounter();
  CycleCounter(CycleCounter&& other) noexcept;
  CycleCounter& operator=(CycleCounter&&) = delete;

  // Since open(). A system call of about a microsecond.
  std::uint64_t read() const;

 private:
  explicit CycleCounter(int file) : file_(file) {}
  int file_;
};

}  // namespace ctk

#include "core/cycle_counter.h"

#include <utility>

#ifdef __linux__
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ctk {

#ifdef __linux__

std::optional<CycleCounter> CycleCounter::open() {
  perf_event_attr wanted{};
  wanted.type = PERF_TYPE_HARDWARE;
  wanted.size = sizeof wanted;
  wanted.config = PERF_COUNT_HW_CPU_CYCLES;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  const long file = syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (file < 0) return std::nullopt;
  return CycleCounter(static_cast<int>(file));
}

CycleCounter::~CycleCounter() {
  if (file_ >= 0) close(file_);
}

std::uint64_t CycleCounter::read() const {
  std::uint64_t count = 0;
  return ::read(file_, &count, sizeof count) == sizeof count ? count : 0;
}

#else

std::optional<CycleCounter> CycleCounter::open() {
  return std::nullopt;
}
CycleCounter::~CycleCounter() = default;
std::uint64_t CycleCounter::read() const {
  return 0;
}

#endif

CycleCounter::CycleCounter(CycleCounter&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

}  // namespace ctk

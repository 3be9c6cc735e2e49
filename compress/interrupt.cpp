#include "compress/interrupt.h"

#include <csignal>

#include <atomic>

namespace ctk {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "the flag is set in a signal handler");

extern "C" void on_signal(int signal) {
  g_interrupted.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);  // the next one kills
}

}  // namespace

bool interrupted() {
  return g_interrupted.load(std::memory_order_relaxed);
}

Status check_interrupt() {
  if (!interrupted()) return {};
  return Error{ErrorCode::interrupted, "interrupted. The same command goes on where this run stopped."};
}

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

void set_interrupted(bool value) {
  g_interrupted.store(value, std::memory_order_relaxed);
}

}  // namespace ctk

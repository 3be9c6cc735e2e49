// The one way to use threads. Work is split so that results never depend on the number of threads.
#pragma once

#include <cstddef>
#include <type_traits>

namespace ctk {

void set_threads(int threads);  // at least 1; affects this process
int threads();

namespace detail {
void parallel_for(std::size_t count, std::size_t grain, void (*body)(void*, std::size_t, std::size_t), void* state);
}

// Calls body(begin, end) over disjoint ranges that cover [0, count), each a multiple of `grain` long but the last.
// `body` must write only what belongs to its range. Runs inline with one thread, or inside another parallel_for.
// Allocates nothing.
template <class Body>
void parallel_for(std::size_t count, std::size_t grain, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::parallel_for(
      count, grain, [](void* state, std::size_t begin, std::size_t end) { (*static_cast<Plain*>(state))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// Index of the calling thread within the running parallel_for: 0 <= index < threads().
int thread_index();

}  // namespace ctk

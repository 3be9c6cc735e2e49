#include "core/parallel.h"

#include <pthread.h>
#include <sched.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace ctk {
namespace {

constexpr int kMostThreads = 255;
constexpr std::size_t kChunksPerThread = 2;  // one more evens out a thread that is late; each starts its kernel anew
constexpr int kSpins = 2000;                 // some 30 us: the gap between two steps of a network
constexpr auto kYieldTime = std::chrono::milliseconds(2);  // then workers sleep

std::atomic<int> g_threads{1};
thread_local int t_index = 0;
thread_local bool t_in_job = false;

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What threads agree on, in one word, so that a claim is one compare-and-swap and can never be of another job: job
// number, threads that may take part, chunks, next chunk.
struct Ticket {
  std::uint32_t job;
  std::uint32_t team, chunks, next;  // 8, 12 and 12 bits

  static Ticket of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word >> 24 & 0xff),
            static_cast<std::uint32_t>(word >> 12 & 0xfff), static_cast<std::uint32_t>(word & 0xfff)};
  }
  std::uint64_t word() const { return std::uint64_t{job} << 32 | std::uint64_t{team} << 24 | chunks << 12 | next; }
};
static_assert(kMostThreads * kChunksPerThread < 0xfff);

struct Job {
  void (*body)(void*, std::size_t, std::size_t) = nullptr;
  void* state = nullptr;
  std::size_t count = 0, grain = 1, blocks = 0, chunks = 0;
};

// Threads that wait for jobs: spinning, then yielding, then asleep. Chunks are claimed one by one, so a thread the
// system has taken off its core holds nobody up unless it has a chunk in hand. A fork/join team waits for every thread
// at every join: beside one busy process that is a scheduler's slice each time.
class Team {
 public:
  void run(const Job& job, int threads) {
    spawn(threads - 1);
    job_ = job;
    done_.store(0, std::memory_order_relaxed);
    Ticket ticket = Ticket::of(ticket_.load(std::memory_order_relaxed));
    ticket = {ticket.job + 1, static_cast<std::uint32_t>(threads), static_cast<std::uint32_t>(job.chunks), 0};
    ticket_.store(ticket.word());
    if (sleepers_.load() > 0) {
      wake_.fetch_add(1);
      wake_.notify_all();
    }
    work(0);
    for (int spins = 0; done_.load(std::memory_order_acquire) < job.chunks; ++spins) {
      if (spins < kSpins)
        pause_briefly();
      else
        ::sched_yield();
    }
  }

  // One job at a time: a second caller works alone rather than wait, or put more threads on the cores than there are.
  bool try_enter() { return !is_taken_.exchange(true, std::memory_order_acquire); }
  void leave() { is_taken_.store(false, std::memory_order_release); }

 private:
  // Takes chunks until none is left. False when there was none for this thread.
  bool work(int index) {
    bool any = false;
    t_in_job = true;
    for (std::uint64_t word = ticket_.load(std::memory_order_acquire);;) {
      const Ticket ticket = Ticket::of(word);
      if (ticket.next >= ticket.chunks || static_cast<std::uint32_t>(index) >= ticket.team) break;
      if (!ticket_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel)) continue;
      // The job stands until this chunk is counted as done.
      const std::size_t begin = job_.blocks * ticket.next / job_.chunks * job_.grain;
      const std::size_t end = std::min(job_.count, job_.blocks * (ticket.next + 1) / job_.chunks * job_.grain);
      job_.body(job_.state, begin, end);
      done_.fetch_add(1, std::memory_order_release);
      any = true;
      word = ticket_.load(std::memory_order_acquire);
    }
    t_in_job = false;
    return any;
  }

  bool has_work(int index) const {
    const Ticket ticket = Ticket::of(ticket_.load());
    return ticket.next < ticket.chunks && static_cast<std::uint32_t>(index) < ticket.team;
  }

  void serve(int index) {
    t_index = index;
    for (;;) {
      if (work(index)) continue;
      if (wait_briefly(index)) continue;
      const std::uint32_t seen = wake_.load();
      sleepers_.fetch_add(1);
      if (!has_work(index)) wake_.wait(seen);
      sleepers_.fetch_sub(1);
    }
  }

  bool wait_briefly(int index) const {
    for (int spins = 0; spins < kSpins; ++spins) {
      if (has_work(index)) return true;
      pause_briefly();
    }
    const auto end = std::chrono::steady_clock::now() + kYieldTime;
    do {
      for (int yields = 0; yields < 16; ++yields) {
        if (has_work(index)) return true;
        ::sched_yield();
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  // Where the system grants no more threads, those there are do the work.
  void spawn(int workers) {
    for (; spawned_ < workers; ++spawned_) {
      pthread_t thread;
      auto* start = new Start{this, spawned_ + 1};
      if (::pthread_create(&thread, nullptr, &Team::enter, start) != 0) {
        delete start;
        return;
      }
      ::pthread_detach(thread);
    }
  }

  struct Start {
    Team* team;
    int index;
  };
  static void* enter(void* given) {
    const Start start = *static_cast<Start*>(given);
    delete static_cast<Start*>(given);
    start.team->serve(start.index);
    return nullptr;
  }

  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::size_t> done_{0};
  alignas(64) std::atomic<std::uint32_t> wake_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> is_taken_{false};
  Job job_;
  int spawned_ = 0;
};

// Never destroyed: its threads outlive every other static. A forked child has none of them and makes its own.
std::atomic<Team*> g_team{nullptr};

Team& team() {
  if (Team* found = g_team.load(std::memory_order_acquire)) return *found;
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { g_team.store(nullptr); });
  (void)registered;
  Team* made = new Team;
  Team* expected = nullptr;
  if (g_team.compare_exchange_strong(expected, made)) return *made;
  delete made;
  return *expected;
}

}  // namespace

void set_threads(int threads) {
  g_threads = std::clamp(threads, 1, kMostThreads);
}

int threads() {
  return g_threads;
}

int thread_index() {
  return t_index;
}

namespace detail {

void parallel_for(std::size_t count, std::size_t grain, void (*body)(void*, std::size_t, std::size_t), void* state) {
  if (count == 0) return;
  grain = std::max<std::size_t>(grain, 1);
  const std::size_t blocks = (count + grain - 1) / grain;
  const int members = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads()), blocks));
  if (members <= 1 || t_in_job || !team().try_enter()) {
    body(state, 0, count);
    return;
  }
  const std::size_t chunks = std::min(blocks, static_cast<std::size_t>(members) * kChunksPerThread);
  team().run({body, state, count, grain, blocks, chunks}, members);
  team().leave();
}

}  // namespace detail
}  // namespace ctk

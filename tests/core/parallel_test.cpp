#include "core/parallel.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace ctk {
namespace {

class ParallelTest : public ::testing::Test {
 protected:
  ~ParallelTest() override { set_threads(1); }
};

TEST_F(ParallelTest, CoversEveryIndexOnceInWholeGrains) {
  for (int team : {1, 2, 3, 4, 7}) {
    set_threads(team);
    for (std::size_t count : {0, 1, 2, 5, 16, 17, 100}) {
      for (std::size_t grain : {0, 1, 3, 16, 200}) {
        std::vector<std::atomic<int>> visits(count);
        std::atomic<bool> is_whole = true;
        parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
          const std::size_t step = grain == 0 ? 1 : grain;
          if (begin % step != 0 || (end % step != 0 && end != count) || begin >= end) is_whole = false;
          for (std::size_t i = begin; i < end; ++i) ++visits[i];
        });
        EXPECT_TRUE(is_whole);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(visits[i], 1) << i << " of " << count;
      }
    }
  }
}

TEST_F(ParallelTest, ThreadIndexStaysBelowTheCount) {
  set_threads(4);
  std::atomic<bool> is_valid = true;
  parallel_for(1000, 1, [&](std::size_t, std::size_t) {
    if (thread_index() < 0 || thread_index() >= threads()) is_valid = false;
  });
  EXPECT_TRUE(is_valid);
  EXPECT_EQ(thread_index(), 0);
}

TEST_F(ParallelTest, RunsInlineInsideItself) {
  set_threads(2);
  std::vector<std::atomic<int>> visits(64);
  parallel_for(8, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      parallel_for(8, 1, [&](std::size_t from, std::size_t to) {
        for (std::size_t j = from; j < to; ++j) ++visits[i * 8 + j];
      });
    }
  });
  for (const auto& count : visits) EXPECT_EQ(count, 1);
}

// 1 + 2 + ... + count by a job of its own.
std::size_t sum_to(std::size_t count) {
  std::atomic<std::size_t> sum = 0;
  parallel_for(count, 1, [&](std::size_t begin, std::size_t end) {
    std::size_t part = 0;
    for (std::size_t i = begin; i < end; ++i) part += i + 1;
    sum += part;
  });
  return sum;
}

TEST_F(ParallelTest, ManyShortJobsAreEachDoneWhenTheCallReturns) {
  set_threads(4);
  for (std::size_t job = 1; job <= 20000; ++job) ASSERT_EQ(sum_to(job % 50 + 1), (job % 50 + 1) * (job % 50 + 2) / 2);
}

TEST_F(ParallelTest, WakesThreadsThatHaveGoneToSleep) {
  set_threads(3);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(sum_to(1000), 500500u);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than they wait awake
  }
}

TEST_F(ParallelTest, CallersInSeveralThreadsDoNotMixTheirJobs) {
  set_threads(3);
  std::atomic<bool> is_right = true;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (std::size_t job = 1; job <= 2000; ++job) {
        if (sum_to(job % 40 + 1) != (job % 40 + 1) * (job % 40 + 2) / 2) is_right = false;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(is_right);
}

TEST_F(ParallelTest, FewerThreadsThanBeforeKeepTheirIndexBelowTheCount) {
  for (int round = 0; round < 200; ++round) {
    const int team = round % 5 + 1;
    set_threads(team);
    std::atomic<int> highest = 0;
    parallel_for(64, 1, [&](std::size_t, std::size_t) {
      int seen = highest;
      while (thread_index() > seen && !highest.compare_exchange_weak(seen, thread_index())) {
      }
    });
    ASSERT_LT(highest, team);
  }
}

TEST_F(ParallelTest, AForkedChildWorksOn) {
  set_threads(3);
  ASSERT_EQ(sum_to(100), 5050u);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(sum_to(100) == 5050u ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ParallelTest, UsesAtLeastOneThread) {
  set_threads(-3);
  EXPECT_EQ(threads(), 1);
}

}  // namespace
}  // namespace ctk

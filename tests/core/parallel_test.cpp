#include "core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
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

TEST_F(ParallelTest, UsesAtLeastOneThread) {
  set_threads(-3);
  EXPECT_EQ(threads(), 1);
}

}  // namespace
}  // namespace ctk

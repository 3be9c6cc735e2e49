#include "core/ranks.h"

#include <gtest/gtest.h>

#include "tests/support/thread_ranks.h"

namespace ctk {
namespace {

using test::on_ranks;
using Parts = Result<std::vector<std::string>>;

TEST(Ranks, AloneEveryCallAnswersWithWhatItWasGiven) {
  std::vector<float> values{1.5f, -2.0f};
  ASSERT_TRUE(alone().sum("sum", values).has_value());
  EXPECT_EQ(values, (std::vector<float>{1.5f, -2.0f}));
  EXPECT_EQ(alone().gather("gather", "mine").value(), std::vector<std::string>{"mine"});
  EXPECT_EQ(alone().from_first("first", "bytes").value(), "bytes");
  EXPECT_EQ(alone().fail(input_error("a reason")).message, "a reason");
  EXPECT_TRUE(alone().gather("again", "").has_value());  // nobody else was told, nothing is over
}

TEST(Ranks, GatherKeepsTheOrderAndTheLengths) {
  const std::string texts[] = {"", "ab", std::string("c\0d", 3)};
  const auto answers = on_ranks<Parts>(3, [&](Ranks& ranks) { return ranks.gather("gather", texts[ranks.rank()]); });
  for (const Parts& parts : answers) EXPECT_EQ(parts.value(), std::vector<std::string>(texts, texts + 3));
}

TEST(Ranks, SumsAreOfAllRanks) {
  // 1 + 2 + 4 and 0.5 * 3
  const auto answers = on_ranks<std::vector<float>>(3, [](Ranks& ranks) {
    std::vector<float> values{static_cast<float>(1 << ranks.rank()), 0.5f};
    EXPECT_TRUE(ranks.sum("sum", values).has_value());
    return values;
  });
  for (const auto& values : answers) EXPECT_EQ(values, (std::vector<float>{7.0f, 1.5f}));
}

TEST(Ranks, TheFirstRankWorksAloneAndAllHaveItsBytes) {
  const auto answers = on_ranks<std::string>(2, [](Ranks& ranks) {
    return ranks.first_does("work", [&] { return Result<std::string>("by " + std::to_string(ranks.rank())); }).value();
  });
  EXPECT_EQ(answers, (std::vector<std::string>{"by 0", "by 0"}));
}

TEST(Ranks, AnErrorInSharedWorkIsEverybodysAndCallsMayFollow) {
  const auto answers = on_ranks<Parts>(3, [](Ranks& ranks) {
    const Result<std::string> mine =
        ranks.rank() == 0 ? Result<std::string>("fine") : input_error("sample " + std::to_string(ranks.rank()));
    const Parts found = ranks.gather_results("work", mine);
    EXPECT_TRUE(ranks.gather("after", "").has_value());
    return found;
  });
  for (const Parts& parts : answers) {
    ASSERT_FALSE(parts.has_value());
    EXPECT_EQ(parts.error().code, ErrorCode::input);
    EXPECT_EQ(parts.error().message, "sample 1");  // the lowest rank's
  }
}

TEST(Ranks, ARankThatFailsEndsTheCallsOfAllOthers) {
  const auto answers = on_ranks<Error>(3, [](Ranks& ranks) {
    if (ranks.rank() == 1) return ranks.fail(input_error("data.npz: expected a file, found none"));
    std::vector<float> values(5);
    const Status status = ranks.sum("gradients", values);
    EXPECT_FALSE(status.has_value());
    EXPECT_FALSE(ranks.gather("later", "").has_value());  // at once: nobody is there to answer
    return status ? Error{} : status.error();
  });
  for (const Error& error : answers) {
    EXPECT_EQ(error.code, ErrorCode::input);
    EXPECT_EQ(error.message, "rank 1 of 3: data.npz: expected a file, found none");
  }
}

TEST(Ranks, RanksInDifferentPlacesAreToldSo) {
  const auto answers = on_ranks<Parts>(
      2, [](Ranks& ranks) { return ranks.gather(ranks.rank() == 0 ? "calibrate" : "sensitivity", ""); });
  for (const Parts& parts : answers) {
    ASSERT_FALSE(parts.has_value());
    EXPECT_EQ(parts.error().code, ErrorCode::internal);
    EXPECT_NE(parts.error().message.find("elsewhere"), std::string::npos);
  }
}

TEST(Ranks, SumsOfUnequalLengthsAreRefused) {
  const auto answers = on_ranks<Status>(2, [](Ranks& ranks) {
    std::vector<float> values(ranks.rank() == 0 ? 3 : 4);
    return ranks.sum("gradients", values);
  });
  for (const Status& status : answers) {
    ASSERT_FALSE(status.has_value());
    EXPECT_NE(status.error().message.find("12 and 16 bytes"), std::string::npos) << status.error().message;
  }
}

TEST(Ranks, SharesCoverEverythingOnceAndDifferByOne) {
  // 7 over 3: 3, 2, 2
  EXPECT_EQ(share_of(7, 0, 3).end, 3u);
  EXPECT_EQ(share_of(7, 1, 3).begin, 3u);
  EXPECT_EQ(share_of(7, 1, 3).end, 5u);
  EXPECT_EQ(share_of(7, 2, 3).end, 7u);
  // fewer things than ranks
  EXPECT_EQ(share_of(1, 1, 4).begin, share_of(1, 1, 4).end);
}

class Broken final : public Ranks {
 public:
  Broken() : Ranks(1, 2, 1) {}

 private:
  static Status gone() { return input_error("Connection closed by peer"); }
  Status carry_gather(std::span<const std::byte>, std::span<std::byte>) override { return gone(); }
  Status carry_from_first(std::span<std::byte>) override { return gone(); }
  Status carry_sum(std::span<float>) override { return gone(); }
};

TEST(Ranks, ALostRankIsAnInterruptThatCanBeResumed) {
  Broken ranks;
  const Parts parts = ranks.gather("sensitivity", "");
  ASSERT_FALSE(parts.has_value());
  EXPECT_EQ(parts.error().code, ErrorCode::interrupted);
  for (const char* words : {"rank 1 of 2, sensitivity", "Connection closed by peer", "goes on where"}) {
    EXPECT_NE(parts.error().message.find(words), std::string::npos) << parts.error().message;
  }
  EXPECT_TRUE(ranks.is_lost());
}

}  // namespace
}  // namespace ctk

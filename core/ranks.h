// Processes that run one pipeline together. Stages ask this; what carries the bytes derives from it.
//
// Every rank makes the same calls in the same order, from one thread. A rank that ends with an error says so (fail) in
// place of its next call: every other one gets that error out of the call it is in, and from then on out of each. Ranks
// that are in different places, and ranks that are gone, are errors too; nobody waits for what cannot come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace ctk {

class Ranks {
 public:
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int here() const { return here_; }  // ranks on this machine, which share its cores
  bool is_alone() const { return size_ == 1; }
  bool is_first() const { return rank_ == 0; }
  bool is_lost() const { return is_lost_; }  // others are gone: nobody but this rank can tell of it

  // `what` names the call, the same on every rank, and says in messages where it was. Errors of all: interrupted (ranks
  // that are gone), internal (ranks in different places), and what another rank failed with.

  // The bytes of every rank, by rank.
  Result<std::vector<std::string>> gather(std::string_view what, const std::string& mine);
  // The same for what may have gone wrong on some ranks: the error of the lowest one, to all; calls may follow.
  Result<std::vector<std::string>> gather_results(std::string_view what, const Result<std::string>& mine);
  // The bytes of rank 0, to all; those of others are not looked at.
  Result<std::string> from_first(std::string_view what, const std::string& bytes);
  // Rank 0 alone does the work, the others wait; its result or error to all, and calls may follow.
  Result<std::string> first_does(std::string_view what, const std::function<Result<std::string>()>& work);
  // Sums over ranks take the place of the values: the same bits on every rank. As many values on each.
  Status sum(std::string_view what, std::span<float> values);

  // Tells the others that this rank ends with `error`; the error to end with. Once something has failed everybody knows
  // and nothing is sent.
  Error fail(Error error);

 protected:
  Ranks(int rank, int size, int here) : rank_(rank), size_(size), here_(here) {}
  // What carries: `all` is [size][mine.size()]; `mine` has one size on every rank. Errors: any; taken for a lost rank.
  virtual Status carry_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual Status carry_from_first(std::span<std::byte> bytes) = 0;
  virtual Status carry_sum(std::span<float> values) = 0;

 private:
  struct Word {  // what a rank is about to do
    std::uint64_t what = 0, bytes = 0;
    std::uint64_t is_failed = 0, code = 0;  // bytes: of the message then
  };
  Result<std::vector<Word>> meet(std::string_view what, std::uint64_t bytes);
  Error hear_failure(const std::vector<Word>& words, const std::string& mine);
  Status carried(std::string_view what, Status status);

  int rank_, size_, here_;
  bool is_lost_ = false;
  std::optional<Error> over_;
};

// One process: every call answers with what it was given.
Ranks& alone();

// Which of `count` things, in order, a rank takes: [begin, end), the first ones the lowest rank's; sizes differ by one.
struct Share {
  std::size_t begin = 0, end = 0;
};
Share share_of(std::size_t count, int rank, int size);

}  // namespace ctk

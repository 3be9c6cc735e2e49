// Ranks that are threads of one process, for tests: what they carry goes through one table.
#pragma once

#include <algorithm>
#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/ranks.h"

namespace ctk::test {

class ThreadRanks final : public Ranks {
 public:
  struct Table {
    explicit Table(int size) : meeting(size), bytes(static_cast<std::size_t>(size)) {}
    std::barrier<> meeting;
    std::vector<std::vector<std::byte>> bytes;  // by rank
  };
  ThreadRanks(int rank, int size, Table& table) : Ranks(rank, size, size), table_(table) {}

 private:
  void put(std::span<const std::byte> mine) {
    table_.bytes[static_cast<std::size_t>(rank())].assign(mine.begin(), mine.end());
    table_.meeting.arrive_and_wait();
  }
  Status carry_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    put(mine);
    auto* to = all.data();
    for (const auto& part : table_.bytes) to = std::copy(part.begin(), part.end(), to);
    table_.meeting.arrive_and_wait();
    return {};
  }
  Status carry_from_first(std::span<std::byte> bytes) override {
    put(bytes);
    std::copy(table_.bytes[0].begin(), table_.bytes[0].end(), bytes.begin());
    table_.meeting.arrive_and_wait();
    return {};
  }
  Status carry_sum(std::span<float> values) override {
    put(std::as_bytes(values));
    std::fill(values.begin(), values.end(), 0.0f);
    for (const auto& part : table_.bytes) {
      const auto* from = reinterpret_cast<const float*>(part.data());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += from[i];
    }
    table_.meeting.arrive_and_wait();
    return {};
  }

  Table& table_;
};

// `work` on every rank at once; what each answered, by rank.
template <class Answer>
std::vector<Answer> on_ranks(int size, const std::function<Answer(Ranks&)>& work) {
  ThreadRanks::Table table(size);
  std::vector<std::unique_ptr<Answer>> answers(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(rank, size, table);
      answers[static_cast<std::size_t>(rank)] = std::make_unique<Answer>(work(ranks));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Answer> all;
  for (auto& answer : answers) all.push_back(std::move(*answer));
  return all;
}

}  // namespace ctk::test

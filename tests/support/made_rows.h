// Samples made on the spot: rows of numbers that differ, for tests that need a split and no file.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/rows.h"
#include "data/splits.h"
#include "tests/support/graph_builder.h"

namespace ctk::test {

class MadeRows final : public data::Rows {
 public:
  MadeRows(Shape shape, std::size_t count) : shape_(std::move(shape)), count_(count) {}
  std::size_t count() const override { return count_; }
  Result<std::vector<Tensor>> read(std::size_t row) const override {
    return std::vector<Tensor>{varied(shape_, static_cast<unsigned>(row) + 1)};
  }
  Result<std::uint64_t> hash(std::size_t row) const override { return row; }
  std::string name(std::size_t row) const override { return "row " + std::to_string(row); }
  std::string origin(std::size_t) const override { return "made"; }
  bool is_array() const override { return false; }

 private:
  Shape shape_;
  std::size_t count_;
};

// A calibrate split of `count` such samples for the graph's first input.
inline data::Split made_split(const graph::Graph& graph, const Shape& sample, std::size_t count) {
  const std::vector<data::InputInfo> infos{{graph.value(graph.inputs()[0]).name, DType::f32, sample}};
  data::SourceSpec spec;
  spec.path = "made";
  auto source = data::open_source(spec, infos, std::make_shared<MadeRows>(sample, count));
  EXPECT_TRUE(source.has_value()) << (source ? "" : source.error().message);
  data::Split split{"calibrate", std::move(*source), {}, "", false};
  for (std::size_t i = 0; i < count; ++i) split.indices.push_back(i);
  return split;
}

}  // namespace ctk::test

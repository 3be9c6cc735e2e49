// A network run part by part gives the bits of the network run whole.
#include "compress/quantize/stream.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/cpu_executor.h"
#include "tests/support/tiny_decoder.h"

namespace ctk::quantization {
namespace {

Tensor ids(std::int64_t count, std::int64_t from) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back((from + 5 * i) % 37);
  return Tensor::of<std::int64_t>({1, count}, list);
}

std::vector<float> whole(const graph::Graph& graph, const Tensor& input) {
  auto executor = runtime::CpuExecutor::create(graph, {input.shape()});
  EXPECT_TRUE(executor.has_value());
  const auto outputs = (*executor)->run(std::span(&input, 1)).value();
  const auto values = outputs[0].values<float>();
  return {values.begin(), values.end()};
}

TEST(Stream, InPartsOfAnySizeGivesTheBitsOfTheWhole) {
  const graph::Graph graph = test::tiny_decoder(test::tiny_decoder_config(), DType::bf16);
  // 2 layers of 4 * 32 * (32 + 16 + 16 + 32 + 3 * 44) bytes of weights, the head 4 * 32 * 37.
  EXPECT_EQ(float_weight_bytes(graph), 2u * 4 * 32 * (32 + 16 + 16 + 32 + 3 * 44) + 4 * 32 * 37);
  const std::vector<Tensor> samples = {ids(5, 1), ids(9, 2), ids(5, 30)};
  for (const std::size_t part : {1, 5000, 20000, 1 << 20}) {
    for (const std::size_t most : {std::size_t{0}, std::size_t{2000}, SIZE_MAX}) {
      StreamOptions options;
      options.part_bytes = part;
      options.store = std::make_shared<ValueStore>(most, std::filesystem::temp_directory_path().string());
      Stream stream(graph, options);
      for (const Tensor& sample : samples) ASSERT_TRUE(stream.begin({sample}));
      ASSERT_TRUE(stream.advance(graph.order().size() / 3));
      std::size_t seen = 0;
      const Status done = stream.finish([&](std::size_t sample, std::vector<Tensor> outputs) -> Status {
        EXPECT_EQ(sample, seen++);
        const auto values = outputs[0].values<float>();
        EXPECT_EQ(std::vector<float>(values.begin(), values.end()), whole(graph, samples[sample])) << part;
        return {};
      });
      ASSERT_TRUE(done.has_value()) << done.error().message;
      EXPECT_EQ(seen, samples.size());
      EXPECT_EQ(options.store->in_memory() + options.store->in_file(), 0u);
    }
  }
}

TEST(Stream, KeepsOutputsWhenItStandsAtTheEnd) {
  const graph::Graph graph = test::tiny_decoder();
  Stream stream(graph);
  ASSERT_TRUE(stream.begin({ids(6, 3)}));
  ASSERT_TRUE(stream.advance(graph.order().size()));
  ASSERT_TRUE(stream.has(0, graph.outputs()[0]));
  const Tensor& values = stream.value(0, graph.outputs()[0]);
  EXPECT_EQ(std::vector<float>(values.values<float>().begin(), values.values<float>().end()), whole(graph, ids(6, 3)));
}

}  // namespace
}  // namespace ctk::quantization

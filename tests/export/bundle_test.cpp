// What a bundle's header and constants must be.
#include "export/bundle.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/hash.h"
#include "graph/floats.h"
#include "runtime/bundle.h"
#include "tests/support/graph_builder.h"

namespace ctk {
namespace {

using graph::Graph;

// y = x W with a constant W of f32 that is held as `held`.
Graph product(Tensor held) {
  test::GraphBuilder b;
  const auto x = b.input("x", {1, held.shape()[0]});
  const auto w = b.constant("w", std::move(held));
  b.graph.value(w).dtype = DType::f32;
  b.graph.add_output(b.node("MatMul", {x, w}, "y"));
  return std::move(b.graph);
}

Result<Graph> load(const std::string& bytes) {
  return runtime::load_bundle_bytes(std::as_bytes(std::span(bytes)), std::make_shared<std::string>(bytes));
}

std::string with_version(std::string bytes, std::uint32_t version) {
  std::memcpy(bytes.data() + 8, &version, sizeof version);
  const std::uint64_t hash = hash64(std::as_bytes(std::span(bytes)).first(runtime::kBundleHashedBytes));
  std::memcpy(bytes.data() + runtime::kBundleHashedBytes, &hash, sizeof hash);
  return bytes;
}

void expect_refused(const std::string& bytes, const std::string& words) {
  const auto graph = load(bytes);
  ASSERT_FALSE(graph.has_value()) << words;
  EXPECT_EQ(graph.error().code, ErrorCode::input);
  EXPECT_NE(graph.error().message.find(words), std::string::npos) << graph.error().message;
}

TEST(Bundle, OfTheFirstVersionIsRead) {
  const Graph graph = product(test::varied({4, 3}));
  const auto back = load(with_version(exporter::bundle_of(graph), 1));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  const Tensor w = *back->value(*back->find_value("w")).constant;
  EXPECT_EQ(test::values_of(w), test::values_of(test::varied({4, 3})));
}

TEST(Bundle, OfALaterVersionIsRefusedByItsNumber) {
  const std::string bytes = exporter::bundle_of(product(test::varied({4, 3})));
  expect_refused(with_version(bytes, 3), "bundle format version 3 is not known, expected 1 to 2. Export it again");
  expect_refused(with_version(bytes, 0), "bundle format version 0 is not known");
}

TEST(Bundle, HoldsMatricesIn16Bits) {
  for (DType narrow : {DType::f16, DType::bf16}) {
    const Tensor held = cast(test::varied({64, 48}), narrow).value();
    const std::string bytes = exporter::bundle_of(product(held));
    std::uint64_t data = 0;
    std::memcpy(&data, bytes.data() + 40, sizeof data);
    EXPECT_EQ(data, 64u * 48u * 2u);
    const auto back = load(bytes);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    const Tensor found = *back->value(*back->find_value("w")).constant;
    EXPECT_EQ(found.dtype(), narrow);
    EXPECT_EQ(std::memcmp(found.data(), held.data(), held.bytes()), 0);
  }
}

TEST(Bundle, WithAConstantOfAnotherTypeThanItSaysIsRefused) {
  const Tensor integers = Tensor::zeros(DType::i32, {4, 3}).value();
  expect_refused(exporter::bundle_of(product(integers)), "constant \"w\": expected f32");
  // What reads biases and scales takes floats of 32 bits only.
  const Tensor vector = cast(test::varied({4}), DType::bf16).value();
  expect_refused(exporter::bundle_of(product(vector)), "found bf16");
}

}  // namespace
}  // namespace ctk

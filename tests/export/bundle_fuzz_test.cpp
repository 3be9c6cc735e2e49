// Damaged bundles: every one is refused with an error or read as a graph that holds together; nothing crashes. Under
// the asan preset this is the fuzz target of the format; CTK_FUZZ_ROUNDS sets how long it runs.
#include <gtest/gtest.h>
#include <xxhash.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>

#include "core/random.h"
#include "export/bundle.h"
#include "runtime/bundle.h"

namespace ctk {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

int rounds(int usual) {
  const char* asked = std::getenv("CTK_FUZZ_ROUNDS");
  return asked == nullptr ? usual : std::atoi(asked);
}

// A product with groups of scales, and one per channel with a noted activation.
std::string small_bundle() {
  Graph graph;
  const ValueId x = graph.add_value("x", DType::f32, graph::DeclaredShape{graph::Dim{-1, "N"}, graph::Dim{48, ""}});
  graph.add_input(x);
  std::vector<std::int8_t> codes(48 * 3);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int8_t>(static_cast<int>(i % 16) - 8);
  QuantTensor weight;
  weight.scheme = parse_scheme("w4a16_g32").value();
  weight.channel_axis = 1;
  weight.codes = pack_codes({48, 3}, codes, 4);
  weight.scales = {1.0f, 0.5f, 0.25f, 2.0f, 1.5f, 3.0f};
  weight.method = "rtn";
  const ValueId w = graph.add_constant("w", Tensor::zeros(DType::f32, {48, 3}).value());
  graph.value(w).constant.reset();
  graph.value(w).quantized = std::make_shared<const QuantTensor>(weight);
  const ValueId y = graph.add_value("y", DType::f32);
  Node product;
  product.op_type = "MatMul";
  product.name = "product";
  product.inputs = {x, w};
  product.outputs = {y};
  product.scheme = weight.scheme;
  graph.add_node(std::move(product));
  graph.add_output(y);
  graph.value(x).activation_quant = ActivationQuant{0.5f, 3};
  return exporter::bundle_of(graph);
}

void put(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, 8);
}
std::uint64_t get(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, 8);
  return value;
}

void load(const std::string& bytes) {
  auto held = std::make_shared<std::string>(bytes);
  const auto graph = runtime::load_bundle_bytes(std::as_bytes(std::span(held->data(), held->size())), held);
  if (!graph) {
    EXPECT_FALSE(graph.error().message.empty());
    return;
  }
  EXPECT_TRUE(verify(*graph).has_value());
  for (std::size_t i = 0; i < graph->value_capacity(); ++i) {
    const auto& quantized = graph->value(ValueId{static_cast<std::uint32_t>(i)}).quantized;
    if (quantized != nullptr) dequantize(*quantized);  // reads every code and scale
  }
}

TEST(BundleFuzz, FlippedAndCutBytes) {
  const std::string whole = small_bundle();
  load(whole);
  Random random(1, "bundle bytes");
  for (int round = 0; round < rounds(2000); ++round) {
    std::string bytes = whole;
    for (std::uint64_t flips = 1 + random.next() % 4; flips > 0; --flips)
      bytes[random.next() % bytes.size()] = static_cast<char>(random.next());
    if (random.next() % 4 == 0) bytes.resize(random.next() % bytes.size());
    load(bytes);
  }
}

// The header's hashes are made to fit, so that the parser meets what the hashes would have kept away.
TEST(BundleFuzz, DamagedTextUnderFittingHashes) {
  const std::string whole = small_bundle();
  const std::size_t text_at = get(whole, 16), text_bytes = get(whole, 24), data_at = get(whole, 32);
  std::string text(get(whole, 64), '\0');
  uLongf length = text.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(text.data()), &length,
                       reinterpret_cast<const Bytef*>(whole.data() + text_at), text_bytes),
            Z_OK);
  const std::string data = whole.substr(data_at);
  Random random(2, "bundle text");
  const std::string letters = "0123456789-,:()[]{}%\"#=gwac_. \n";
  for (int round = 0; round < rounds(2000); ++round) {
    std::string changed = text;
    for (std::uint64_t edits = 1 + random.next() % 3; edits > 0; --edits) {
      const std::size_t at = random.next() % changed.size();
      const std::uint64_t kind = random.next() % 3;
      if (kind == 0) changed[at] = letters[random.next() % letters.size()];
      if (kind == 1) changed.erase(at, 1 + random.next() % 5);
      if (kind == 2) changed.insert(at, 1, letters[random.next() % letters.size()]);
      if (changed.empty()) changed = "x";
    }
    uLongf packed = compressBound(changed.size());
    std::string deflated(packed, '\0');
    ASSERT_EQ(compress(reinterpret_cast<Bytef*>(deflated.data()), &packed,
                       reinterpret_cast<const Bytef*>(changed.data()), changed.size()),
              Z_OK);
    deflated.resize(packed);
    std::string bytes = whole.substr(0, runtime::kBundleHeaderBytes) + deflated;
    bytes.resize((bytes.size() + 63) / 64 * 64, '\0');
    put(bytes, 24, deflated.size());
    put(bytes, 32, bytes.size());
    put(bytes, 48, XXH3_64bits(deflated.data(), deflated.size()));
    put(bytes, 64, changed.size());
    put(bytes, 72, XXH3_64bits(bytes.data(), runtime::kBundleHashedBytes));
    load(bytes + data);
  }
}

}  // namespace
}  // namespace ctk

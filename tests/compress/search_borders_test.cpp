#include "compress/search_borders.h"

#include <gtest/gtest.h>

#include "compress/quantize/apply.h"
#include "tests/support/graph_builder.h"

namespace ctk::pipeline::search_table {
namespace {

using graph::ValueId;
using test::GraphBuilder;
using test::varied;

QuantScheme scheme(const char* text) {
  return parse_scheme(text).value();
}

// Four products in a row, an Erf (which has no codes) behind the second.
struct Chain {
  Chain() {
    ValueId x = b.input("x", {2, 64});
    for (const std::string name : {"a", "b", "c", "d"}) {
      x = b.node("MatMul", {x, b.constant("w_" + name, varied({64, 64}))}, name);
      groups.push_back({{"MatMul_" + name}, {scheme("w8a8_c"), QuantScheme{}}, ""});
      if (name == "b") x = b.node("Erf", {x}, "e");
    }
    b.output(x);
  }
  // Borders with 1 us for every step.
  std::vector<Border> borders(const std::vector<bool>& on_codes) {
    quantization::SchemeMap schemes;
    std::map<std::string, calibrate::Range> ranges;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (on_codes[g]) schemes[groups[g].layers[0]] = groups[g].choices[0];
    }
    for (const char* name : {"x", "a", "b", "e", "c", "d"}) {
      ranges[name].low = -1.0f;
      ranges[name].high = 1.0f;
    }
    EXPECT_TRUE(quantization::apply_schemes(b.graph, schemes, ranges, {}));
    const auto executor = runtime::CpuExecutor::create(b.graph, {{2, 64}});
    EXPECT_TRUE(executor);
    const std::vector<double> us((*executor)->plan().steps.size(), 1.0);
    return borders_in(b.graph, (*executor)->plan(), us, groups, on_codes);
  }
  GraphBuilder b;
  std::vector<Group> groups;
};

void expect_border(const Border& border, const char* first, const char* second, double to_floats, double to_codes) {
  EXPECT_EQ(border.first, std::string("MatMul_") + first);
  EXPECT_EQ(border.second, std::string("MatMul_") + second);
  EXPECT_EQ(border.to_floats_us, to_floats);
  EXPECT_EQ(border.to_codes_us, to_codes);
}

TEST(SearchBorders, AConversionBelongsToTheLayersAroundIt) {
  // a's floats become codes in front of b.
  const auto found = Chain().borders({false, true, true, true});
  ASSERT_EQ(found.size(), 1u);
  expect_border(found[0], "a", "b", 0, 1);
}

TEST(SearchBorders, ALayerThatWritesFloatsItselfConvertsNothing) {
  // a's product leaves as floats, and x is quantized in front of the first layer: no borders.
  EXPECT_TRUE(Chain().borders({true, false, false, false}).empty());
}

TEST(SearchBorders, AreFollowedThroughStepsThatAreNoLayers) {
  // From b by way of the Erf to c.
  const auto found = Chain().borders({false, false, true, true});
  ASSERT_EQ(found.size(), 1u);
  expect_border(found[0], "b", "c", 0, 1);
}

TEST(SearchBorders, BetweenLayersOfOneFormAreNone) {
  // The Erf between b and c takes floats, whatever they choose.
  EXPECT_TRUE(Chain().borders({true, true, true, true}).empty());
  EXPECT_TRUE(Chain().borders({false, false, false, false}).empty());
}

}  // namespace
}  // namespace ctk::pipeline::search_table

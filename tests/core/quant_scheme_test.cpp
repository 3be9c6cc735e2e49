#include "core/quant_scheme.h"

#include <gtest/gtest.h>

namespace ctk {
namespace {

TEST(Scheme, EverySpellingComesBack) {
  for (const char* text : {"fp32", "fp16", "w8a8_c", "w8a8_t", "w4a8_c", "w4a8_g32", "w4a16_g128", "w2a16_g64",
                           "w3a8_c", "w4a16_g64_affine", "w6a16_c_affine"}) {
    const auto scheme = parse_scheme(text);
    ASSERT_TRUE(scheme.has_value()) << text;
    EXPECT_EQ(to_string(*scheme), text);
  }
}

TEST(Scheme, ReadsBitsAndGranularity) {
  const QuantScheme scheme = parse_scheme("w4a16_g32").value();
  EXPECT_EQ(scheme.weight_bits, 4);
  EXPECT_EQ(scheme.activation_bits, 16);
  EXPECT_EQ(scheme.granularity, Granularity::per_group);
  EXPECT_EQ(scheme.group_size, 32);
  EXPECT_TRUE(scheme.is_integer_weight());
  EXPECT_FALSE(scheme.is_integer_activation());
}

TEST(Scheme, RefusesEverythingElseAndSaysWhatItKnows) {
  for (const char* text : {"",
                           "fp8",
                           "int8",
                           "w8a8",
                           "w8a8_",
                           "w8a8_x",
                           "w8a8_cc",
                           "w8a8_c ",
                           " w8a8_c",
                           "W8a8_c",
                           "w1a8_c",
                           "w9a8_c",
                           "w-4a8_c",
                           "w8a4_c",
                           "w8a32_c",
                           "w4a8_g",
                           "w4a8_g0",
                           "w4a8_g-1",
                           "w4a8_g32x",
                           "w4a8_g99999999999",
                           "w08a8_c",
                           "w4a8_g032",
                           "wa8_c",
                           "w99999999999a8_c",
                           "w4a16_affine",
                           "w4a16_g64affine",
                           "w4a16_g64_affine_affine"}) {
    const auto scheme = parse_scheme(text);
    ASSERT_FALSE(scheme.has_value()) << text;
    EXPECT_EQ(scheme.error().code, ErrorCode::config);
    EXPECT_NE(scheme.error().message.find("w8a8_c"), std::string::npos);
    EXPECT_TRUE(scheme.error().message.ends_with(std::string("found \"").append(text).append("\"")));
  }
}

}  // namespace
}  // namespace ctk

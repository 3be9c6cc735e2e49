#include "core/cpu_isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ctk {
namespace {

// Sets CTK_ISA for one test and puts back what was there.
class ForcedIsa : public ::testing::Test {
 protected:
  ForcedIsa() {
    const char* text = std::getenv("CTK_ISA");
    had_ = text != nullptr;
    if (had_) before_ = text;
  }
  ~ForcedIsa() override { had_ ? setenv("CTK_ISA", before_.c_str(), 1) : unsetenv("CTK_ISA"); }
  bool had_ = false;
  std::string before_;
};

TEST(Isa, NamesComeBack) {
  for (Isa isa : {Isa::scalar, Isa::x86_avx2, Isa::x86_avxvnni, Isa::x86_avx512vnni, Isa::arm_neondot}) {
    EXPECT_EQ(isa_from_name(name_of(isa)), isa);
  }
  EXPECT_FALSE(isa_from_name("sse2").has_value());
}

TEST(Isa, ScalarAlwaysRunsAndComesFirst) {
  EXPECT_TRUE(host_supports(Isa::scalar));
  EXPECT_EQ(host_isas().front(), Isa::scalar);
}

TEST_F(ForcedIsa, EverythingTheHostHasWithoutIt) {
  unsetenv("CTK_ISA");
  EXPECT_EQ(allowed_isas().value(), host_isas());
  setenv("CTK_ISA", "", 1);
  EXPECT_EQ(allowed_isas().value(), host_isas());
}

TEST_F(ForcedIsa, AllowsOnlyTheForcedOneAndWhatItBuildsOnBesideScalar) {
  setenv("CTK_ISA", "scalar", 1);
  EXPECT_EQ(allowed_isas().value(), std::vector<Isa>{Isa::scalar});
  for (Isa isa : host_isas()) {
    if (isa == Isa::scalar) continue;
    setenv("CTK_ISA", std::string(name_of(isa)).c_str(), 1);
    std::vector<Isa> wanted{Isa::scalar, isa};
    // Most kinds have no row for the dot-product sets: those must run on AVX2, not fall to scalar.
    if (isa == Isa::x86_avxvnni || isa == Isa::x86_avx512vnni) wanted.insert(wanted.begin() + 1, Isa::x86_avx2);
    EXPECT_EQ(allowed_isas().value(), wanted);
  }
}

TEST_F(ForcedIsa, RefusesUnknownNamesAndForeignProcessorsNamingWhatItHas) {
  for (const char* name : {
         "avx2", "x86_avx2 ",
#if defined(__x86_64__)
             "arm_neondot"
#else
                           "x86_avx2"
#endif
       }) {
    setenv("CTK_ISA", name, 1);
    const auto isas = allowed_isas();
    ASSERT_FALSE(isas.has_value()) << name;
    EXPECT_EQ(isas.error().code, ErrorCode::config);
    EXPECT_NE(isas.error().message.find(name), std::string::npos);
    EXPECT_NE(isas.error().message.find("scalar"), std::string::npos);
  }
}

TEST(Machine, DescribesItself) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_GE(cpu_cores(), 1);
  EXPECT_GT(memory_bytes(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace ctk

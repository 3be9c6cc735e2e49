#include <gtest/gtest.h>

#include <array>
#include <set>

#include "kernels/gemm_fp32/gemm_fp32.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/select.h"

namespace ctk::kernels {
namespace {

TEST(KernelTable, NamesEachRowByKindAndInstructionSet) {
  std::set<std::string> names;
  for (const KernelInfo& info : all_kernels()) {
    EXPECT_TRUE(info.name.starts_with(info.kind)) << info.name;
    EXPECT_TRUE(info.name.ends_with(name_of(info.isa))) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name << " stands there twice";
  }
}

TEST(KernelTable, PutsTheScalarRowFirstOfEachKind) {
  std::set<std::string> kinds;
  for (const KernelInfo& info : all_kernels()) {
    if (kinds.insert(info.kind).second) {
      EXPECT_EQ(info.isa, Isa::scalar) << info.name;
    }
  }
  EXPECT_GE(kinds.size(), 9u);
}

#if defined(__aarch64__)
// tests/kernels/test_arm_under_qemu.py runs this on processors with and without the instruction set.
TEST(KernelTable, RunsArmRowsWhereTheProcessorHasThem) {
  if (!host_supports(Isa::arm_neondot)) GTEST_SKIP() << "this processor lacks arm_neondot";
  EXPECT_EQ(select(gemm_w8a8_rows(), host_isas()).isa, Isa::arm_neondot);
}
#endif

TEST(KernelTable, NamesTheRowsOfOtherProcessorsWithoutHavingThem) {
  std::set<std::string> own, kinds, foreign_kinds;
  for (const KernelInfo& info : all_kernels()) {
    own.insert(info.name);
    kinds.insert(info.kind);
  }
  for (const KernelInfo& info : foreign_kernels()) {
    EXPECT_FALSE(own.contains(info.name)) << info.name;
    EXPECT_FALSE(host_supports(info.isa)) << info.name;
    EXPECT_TRUE(info.name.starts_with(info.kind + "_")) << info.name;
    EXPECT_TRUE(info.name.ends_with(name_of(info.isa))) << info.name;
    foreign_kinds.insert(info.kind);
  }
  kinds.erase("attention");  // has no row for ARM, which runs the scalar one
  foreign_kinds.erase("attention");
  EXPECT_EQ(foreign_kinds, kinds);  // every other kind has a row for x86 and one for ARM
}

struct FakeRow {
  Isa isa;
  int id;
};

TEST(KernelSelect, TakesTheLastRowThatIsAllowed) {
  const std::array rows = {FakeRow{Isa::scalar, 0}, FakeRow{Isa::x86_avx2, 1}, FakeRow{Isa::x86_avx512vnni, 2}};
  const auto id = [&](std::vector<Isa> allowed) { return select<FakeRow>(rows, allowed).id; };
  EXPECT_EQ(id({Isa::scalar}), 0);
  EXPECT_EQ(id({Isa::scalar, Isa::x86_avx2}), 1);
  EXPECT_EQ(id({Isa::scalar, Isa::x86_avx2, Isa::x86_avx512vnni}), 2);
  EXPECT_EQ(id({Isa::scalar, Isa::x86_avx512vnni}), 2);
  EXPECT_EQ(id({Isa::scalar, Isa::arm_neondot}), 0);  // no row of that kind: the one that always runs
}

}  // namespace
}  // namespace ctk::kernels

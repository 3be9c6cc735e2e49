// Integer layers on the simulated NPU: the bits of the direct loops, for arrays and scratchpads of any size.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/conv_w8a8/conv_w8a8.h"
#include "kernels/npu/compile.h"
#include "tests/kernels/integer_convolution.h"
#include "tests/support/seed.h"
#include "tests/support/small_npu.h"

namespace ctk::kernels::npu {
namespace {

using test::ConvCase;
using test::fill_geometry;
using test::Random;
using test::text;
using test::uniform;

Card random_card(Random& random) {
  Card card;
  card.name = "random";
  card.array_rows = static_cast<std::size_t>(uniform(random, 1, 40));
  card.array_columns = static_cast<std::size_t>(uniform(random, 1, 40));
  card.scratchpad_bytes = std::size_t{1024} << uniform(random, 0, 6);
  card.clock_mhz = 100;
  card.bandwidth_mb_s = uniform(random, 50, 800);
  card.dma_start_cycles = static_cast<std::size_t>(uniform(random, 0, 50));
  card.mac_start_cycles = static_cast<std::size_t>(uniform(random, 0, 20));
  card.requantize_per_cycle = static_cast<std::size_t>(uniform(random, 1, 9));
  return card;
}

// Empty when the card is too small, which `told` then says.
std::vector<float> computed(const Row& row, const Card& card, const ConvCase& c, std::string* told = nullptr,
                            Program* made = nullptr) {
  const ConvShape& s = c.shape;
  std::vector<float> y;
  const std::size_t count = static_cast<std::size_t>(s.pixels() * s.out_channels);
  const auto body = [&](const EpilogueInt& e, void* out) {
    auto program = row.compile(card, s, e, c.zero_point);
    if (!program) {
      if (told != nullptr) *told = program.error().message;
      return;
    }
    test::Buffer constants(constant_bytes(s)), scratchpad(card.scratchpad_bytes);
    make_constants(s, row.is_per_channel, c.w.data(), e.bias, e.multiplier, constants.data());
    std::memset(scratchpad.data(), 0x5a, card.scratchpad_bytes);
    Memory memory;
    memory.regions = {static_cast<std::byte*>(constants.data()),
                      const_cast<std::byte*>(reinterpret_cast<const std::byte*>(c.x.data())),
                      const_cast<std::byte*>(reinterpret_cast<const std::byte*>(e.residual.data)),
                      static_cast<std::byte*>(out)};
    memory.scratchpad = static_cast<std::byte*>(scratchpad.data());
    execute(program->stream, memory);
    EXPECT_TRUE(constants.guard_is_whole() && scratchpad.guard_is_whole());
    // Nothing is computed twice, and every output leaves once.
    EXPECT_EQ(program->counts.macs, static_cast<std::uint64_t>(s.pixels() * s.out_channels * s.reduction()));
    EXPECT_EQ(program->counts.bytes_out, count * (e.to_float ? 4 : 1));
    EXPECT_GE(program->counts.cycles,
              std::max(program->counts.dma_cycles, program->counts.mac_cycles + program->counts.requantize_cycles));
    EXPECT_LE(program->counts.cycles,
              program->counts.dma_cycles + program->counts.mac_cycles + program->counts.requantize_cycles);
    if (made != nullptr) *made = std::move(*program);
  };
  return test::run_into_output(c.epilogue, count, body);
}

ConvCase random_case(Random& random, const Row& row) {
  for (;;) {
    ConvCase c;
    ConvShape& s = c.shape;
    if (row.kind == "gemm_w8a8") {
      s.in_width = uniform(random, 1, 14);
      s.in_channels = uniform(random, 1, 70);
      s.out_channels = uniform(random, 1, 45);
    } else {
      s.batch = uniform(random, 1, 2);
      fill_geometry(s, random);
      if (row.is_per_channel) s.groups = s.out_channels = s.in_channels;
    }
    c.zero_point = static_cast<std::uint8_t>(uniform(random, 0, 2) == 0 ? 255 * uniform(random, 0, 1) : random() % 256);
    const bool is_product = row.kind == "gemm_w8a8";
    if (complete(c, random, is_product ? 0 : uniform(random, 0, 2), is_product ? 0 : uniform(random, 0, 2), -128, 127))
      return c;
  }
}

class NpuRows : public testing::TestWithParam<const Row*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, NpuRows, testing::ValuesIn([] {
                           std::vector<const Row*> all;
                           for (const Row& row : rows()) all.push_back(&row);
                           return all;
                         }()),
                         [](const auto& info) { return std::string(info.param->kind); });

TEST_P(NpuRows, EqualTheDirectLoopsOnRandomShapesAndCards) {
  Random random(4711);
  std::size_t too_small = 0, in_channel_blocks = 0, with_one_buffer = 0;
  const int cases = ctk::test::cases(10000);
  for (int i = 0; i < cases; ++i) {
    const ConvCase c = random_case(random, *GetParam());
    Card card = random_card(random);
    if (i % 8 == 0) card.scratchpad_bytes = static_cast<std::size_t>(uniform(random, 200, 1000));
    std::string told;
    Program made;
    const std::vector<float> got = computed(*GetParam(), card, c, &told, &made);
    if (!told.empty()) {
      ASSERT_NE(told.find("expected at least"), std::string::npos) << told;
      ++too_small;
      continue;
    }
    in_channel_blocks += made.tile.channels < made.sizes.channels();
    with_one_buffer += made.tile.buffers == 1;
    ASSERT_EQ(got, expected(c)) << "seed 4711, case " << i << ": " << text(c.shape);
  }
  if (cases < 1000) return;  // too few to expect one of each
  EXPECT_LT(too_small, static_cast<std::size_t>(cases / 10));
  EXPECT_GT(with_one_buffer, 0u);
  if (!GetParam()->is_per_channel) {
    EXPECT_GT(in_channel_blocks, 0u);
  }
}

Card even_card() {
  Card card = ctk::test::small_npu();
  card.name = "even";
  card.array_rows = card.array_columns = 8;
  card.bandwidth_mb_s = 400;
  card.dma_start_cycles = 20;
  card.mac_start_cycles = 0;
  card.requantize_per_cycle = 4;
  return card;
}

// One row, one output, one past the array and the halves that tiles are made of.
TEST_P(NpuRows, MeetEveryTailOfATile) {
  Random random(5);
  for (std::int64_t channels : {1, 7, 8, 9, 15, 16, 17, 33}) {
    for (std::int64_t outputs : {1, 8, 9, 17}) {
      for (std::int64_t width : {1, 2, 3, 5, 17}) {
        ConvCase c;
        c.shape.in_width = width;
        c.shape.in_channels = channels;
        c.shape.out_channels = outputs;
        if (GetParam()->is_per_channel) c.shape.out_channels = c.shape.groups = channels;
        ASSERT_TRUE(complete(c, random, 0, 0, -128, 127));
        ASSERT_EQ(computed(*GetParam(), even_card(), c), expected(c)) << text(c.shape);
      }
    }
  }
}

// All codes 255 and all weights 127: 255 * 127 = 32385 a product; zero points at both ends meet the padding.
TEST_P(NpuRows, KeepExtremeSumsExact) {
  for (std::uint8_t zero_point : {0, 255}) {
    ConvCase c;
    ConvShape& s = c.shape;
    s.in_channels = s.out_channels = 20;
    if (GetParam()->kind == "gemm_w8a8") {
      s.in_width = s.out_width = 9;
    } else {
      s.in_height = s.in_width = s.out_height = s.out_width = 3;
      s.kernel_height = s.kernel_width = 3;
      s.pad_top = s.pad_left = 1;
    }
    if (GetParam()->is_per_channel) s.groups = 20;
    c.zero_point = zero_point;
    c.x.assign(9 * 20, 255);
    c.w.assign(static_cast<std::size_t>(20 * s.reduction()), 127);
    c.epilogue.bias.assign(20, 0);
    c.epilogue.multiplier.assign(20, 1.0f);
    c.epilogue.value.to_float = true;
    c.epilogue.value.low_f = -1e9f;
    c.epilogue.value.high_f = 1e9f;
    const std::vector<float> got = computed(*GetParam(), even_card(), c);
    // Terms of the window around pixel (0, 0) that lie inside; the others read the zero point.
    const bool is_product = GetParam()->kind == "gemm_w8a8";
    const std::int64_t depth = s.channels_per_group(), inside = (is_product ? 1 : 4) * depth;
    const std::int64_t sum = 127 * (255 * inside + zero_point * (s.reduction() - inside));
    ASSERT_FALSE(got.empty());
    EXPECT_EQ(got[0], static_cast<float>(sum));
    EXPECT_EQ(got[4 * 20], static_cast<float>(127 * 255 * s.reduction()));
  }
}

TEST_P(NpuRows, ACardThatHoldsNoTileSaysWhatItNeeds) {
  Random random(9);
  ConvCase c;
  c.shape.in_channels = c.shape.out_channels = 4;
  if (GetParam()->is_per_channel) c.shape.groups = 4;
  ASSERT_TRUE(complete(c, random, 0, 0, -128, 127));
  c.epilogue.residual.clear();
  c.epilogue.value.residual.stride = 0;
  c.epilogue.value.to_float = false;
  Card card = even_card();
  card.scratchpad_bytes = 300;
  std::string told;
  computed(*GetParam(), card, c, &told);
  // One buffer each of weights, columns, strip, output and sums, at multiples of 64 bytes: 5 * 64 = 320.
  EXPECT_EQ(
      told,
      "\"even\": scratchpad: expected at least 320 B for the smallest tile (one output of one pixel, one channel of "
      "1x1 taps), found 300 B. Give the card a larger scratchpad");
  card.scratchpad_bytes = 320;
  told.clear();
  EXPECT_EQ(computed(*GetParam(), card, c, &told), expected(c)) << told;
}

TEST(NpuRowsTable, HasARowForEachIntegerKind) {
  for (const char* kind : {"gemm_w8a8", "conv_w8a8", "depthwise_w8a8"}) {
    const Row* row = find_row(kind);
    ASSERT_NE(row, nullptr) << kind;
    EXPECT_EQ(row->name, std::string(kind) + "_npu_sim");
  }
  EXPECT_EQ(find_row("gemm_w4g"), nullptr);
}

// The scalar row of the CPU, on a layer of ResNet-20 with a residual added in place.
TEST(NpuRowsTable, EqualTheScalarRowOnALayerOfARealNetwork) {
  Random random(12);
  ConvCase c;
  ConvShape& s = c.shape;
  s.in_height = s.in_width = 32;
  s.in_channels = s.out_channels = 16;
  s.kernel_height = s.kernel_width = 3;
  s.pad_top = s.pad_left = 1;
  ASSERT_TRUE(complete(c, random, 1, 1, -128, 127));
  EpilogueInt& v = c.epilogue.value;
  v.to_float = false;
  v.residual = {nullptr, 16, 100, 0.75f, 4, 0.5f};
  c.epilogue.in_place = true;
  c.epilogue.residual = test::random_codes(random, 32 * 32 * 16);
  const GemmIntRow& scalar = gemm_w8a8_rows()[0];
  ASSERT_EQ(scalar.isa, Isa::scalar);
  test::Buffer packed(conv_int_packed_bytes(scalar, s)), scratch(conv_int_scratch_bytes(scalar, s, 1));
  conv_int_pack(scalar, s, c.w.data(), packed.data());
  const auto want = test::run_into_output(c.epilogue, 32 * 32 * 16, [&](const EpilogueInt& e, void* y) {
    conv_int(scalar, s, packed.data(), c.x.data(), c.zero_point, e, y, scratch.data());
  });
  for (std::size_t bytes : {1024, 8192, 1 << 20}) {
    Card card = even_card();
    card.scratchpad_bytes = bytes;
    EXPECT_EQ(computed(*find_row("conv_w8a8"), card, c), want) << bytes;
  }
}

}  // namespace
}  // namespace ctk::kernels::npu

#include "kernels/npu/machine.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/npu/compile.h"
#include "tests/kernels/integer_cases.h"
#include "tests/support/small_npu.h"

namespace ctk::kernels::npu {
namespace {

Card small_card() {
  return ctk::test::small_npu(2048);
}

Dma move(Region region, std::size_t outside, std::size_t scratchpad, std::size_t bytes) {
  Dma dma;
  dma.is_out = region == Region::output;
  dma.region = region;
  dma.outside.address = outside;
  dma.scratchpad.address = scratchpad;
  dma.run = bytes;
  return dma;
}

// Rows of 5 terms, 2 of them, by 3 outputs.
constexpr std::uint8_t kInput[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
constexpr std::int8_t kWeights[] = {1, 1, 1, 1, 1, 1, 0, -1, 0, 1, 0, 0, 0, 0, 2};
constexpr std::int32_t kBias[] = {0, 10, -20};
constexpr float kMultiplier[] = {1, 1, 1};
// 15, 1 - 3 + 5 + 10 = 13, 10 - 20 = -10; 40, 6 - 8 + 10 + 10 = 18, 20 - 20 = 0; plus zero point 5, at least 0.
const std::vector<int> kExpected = {20, 18, 0, 45, 23, 5};

ConvShape product_shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  ConvShape shape;
  shape.in_width = shape.out_width = m;
  shape.in_channels = k;
  shape.out_channels = n;
  return shape;
}

EpilogueInt rule_of(std::uint8_t zero_point) {
  EpilogueInt rule;
  rule.zero_point = zero_point;
  return rule;
}

// Runs a stream for the product above; `constants` as make_constants() lays them out: 15 weights, padding, 3 columns.
std::vector<int> run_product(const Stream& stream) {
  std::vector<std::byte> constants(constant_bytes(product_shape(2, 3, 5)));
  make_constants(product_shape(2, 3, 5), false, kWeights, kBias, kMultiplier, constants.data());
  alignas(64) std::byte scratchpad[2048] = {};
  std::uint8_t input[sizeof(kInput)], output[6] = {};
  std::memcpy(input, kInput, sizeof(kInput));
  Memory memory;
  memory.regions = {constants.data(), reinterpret_cast<std::byte*>(input), nullptr,
                    reinterpret_cast<std::byte*>(output)};
  memory.scratchpad = scratchpad;
  execute(stream, memory);
  return {output, output + 6};
}

constexpr RegionBytes kProductBytes = {16 + 24, 10, 0, 6};

Mac product_mac() {
  Mac mac;
  mac.activations = 64;
  mac.weights = 0;
  mac.columns = 32;
  mac.sums = 128;
  mac.rows = 1;
  mac.width = 2;
  mac.pixel_step = 5;
  mac.channels = 5;
  mac.outputs = 3;
  return mac;
}

Stream product_stream() {
  Requantize requantize;
  requantize.sums = 128;
  requantize.columns = 32;
  requantize.output = 256;
  requantize.pixels = 2;
  requantize.outputs = 3;
  requantize.rule = rule_of(5);
  return {{move(Region::constants, 0, 0, 15)},
          {move(Region::constants, 16, 32, 24)},
          {move(Region::input, 0, 64, 10)},
          {product_mac(), 2},
          {requantize},
          {move(Region::output, 0, 256, 6), 4}};
}

TEST(NpuMachine, ComputesAndCountsAProductAsByHand) {
  const auto counts = check_stream(small_card(), product_stream(), kProductBytes);
  ASSERT_TRUE(counts) << counts.error().message;
  // Moves: 10 + 15 / 2 up = 18, 10 + 12 = 22, 10 + 5 = 15, and out 10 + 3 = 13.
  EXPECT_EQ(counts->dma_cycles, 18u + 22 + 15 + 13);
  // Two passes of 4 terms for each of two pairs of outputs, each 3 cycles to start and 1 a row.
  EXPECT_EQ(counts->mac_cycles, 4u * (3 + 2));
  EXPECT_EQ(counts->requantize_cycles, 3u);  // 6 values, 2 a cycle
  EXPECT_EQ(counts->cycles, 55u + 20 + 3 + 13);
  EXPECT_EQ(counts->bytes_constants, 39u);
  EXPECT_EQ(counts->bytes_in, 10u);
  EXPECT_EQ(counts->bytes_out, 6u);
  EXPECT_EQ(counts->macs, 30u);
  EXPECT_DOUBLE_EQ(microseconds(small_card(), counts->cycles), 0.91);  // at 100 MHz
  EXPECT_EQ(run_product(product_stream()), kExpected);
}

TEST(NpuMachine, ACompiledProductTakesWhatTheHandWrittenOneTakes) {
  // In two pieces by outputs its loads alone take 90 cycles, by rows the whole 101: one piece is the quickest.
  const auto program = compile(small_card(), product_shape(2, 3, 5), false, rule_of(5), 0);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(program->bytes, kProductBytes);
  EXPECT_EQ(program->counts.cycles, 91u);
  EXPECT_EQ(program->counts.bytes_constants, 39u);
  EXPECT_EQ(run_product(program->stream), kExpected);
}

// 20 cycles of loading and 20 of computing, twice.
Stream two_pieces(std::size_t second_buffer, std::size_t second_after) {
  Mac mac;
  mac.rows = 1;
  mac.width = 17;  // 3 + 17 cycles; every pixel reads the same four codes
  mac.channels = 4;
  mac.outputs = 2;
  mac.weights = 1000;
  mac.columns = 1008;
  mac.sums = 1024;
  mac.activations = 0;
  Mac second = mac;
  second.activations = second_buffer;
  return {{move(Region::input, 0, 0, 20)},
          {mac, 0},
          {move(Region::input, 20, second_buffer, 20), second_after},
          {second, 2}};
}

TEST(NpuMachine, LoadsOverlapComputingWhereTheStreamSaysSo) {
  const RegionBytes bytes = {0, 40, 0, 0};
  // Load 0-20, load 20-40 beside compute 20-40, compute 40-60.
  const auto beside = check_stream(small_card(), two_pieces(64, kNothing), bytes);
  ASSERT_TRUE(beside) << beside.error().message;
  EXPECT_EQ(beside->cycles, 60u);
  const auto waiting = check_stream(small_card(), two_pieces(64, 1), bytes);
  ASSERT_TRUE(waiting) << waiting.error().message;
  EXPECT_EQ(waiting->cycles, 80u);
  EXPECT_EQ(waiting->dma_cycles + waiting->mac_cycles, 80u);
}

std::string fault_of(const Stream& stream, const RegionBytes& bytes = kProductBytes, Card card = small_card()) {
  const auto counts = check_stream(card, stream, bytes);
  return counts ? "nothing" : counts.error().message;
}

TEST(NpuMachine, TwoEnginesOnTheSameBytesAreAnError) {
  EXPECT_EQ(
      fault_of(two_pieces(0, kNothing), {0, 40, 0, 0}),
      "npu stream: command 2: expected to wait for command 1, which touches the same bytes of the scratchpad, found "
      "nothing that does. Compile it for this card");
  EXPECT_EQ(fault_of(two_pieces(0, 1), {0, 40, 0, 0}), "nothing");
}

TEST(NpuMachine, MalformedStreamsAreErrorsThatNameTheCommand) {
  const auto changed = [](auto change) {
    Stream stream = product_stream();
    change(stream);
    return fault_of(stream);
  };
  const auto dma = [](Stream& s, std::size_t i) -> Dma& { return std::get<Dma>(s[i].what); };
  const auto mac = [](Stream& s) -> Mac& { return std::get<Mac>(s[3].what); };
  const auto requantize = [](Stream& s) -> Requantize& { return std::get<Requantize>(s[4].what); };
  EXPECT_EQ(
      changed([&](Stream& s) { dma(s, 2).outside.address = 1; }),
      "npu stream: command 2: expected its bytes inside the 10 bytes of the input, found bytes 1 to 11. Compile it "
      "for this card");
  const auto tells = [&](auto change, const std::string& words) {
    const std::string told = changed(change);
    EXPECT_NE(told.find(words), std::string::npos) << told;
  };
  tells([&](Stream& s) { dma(s, 0).scratchpad.address = 2040; },
        "inside the 2048 bytes of the scratchpad, found bytes 2040 to 2055");
  tells([&](Stream& s) { dma(s, 0).outside.address = ~std::size_t{0} - 3; },
        "found bytes 18446744073709551612 to more than fits");
  tells([&](Stream& s) { dma(s, 0).run = 0; }, "runs of at least a byte");
  tells([&](Stream& s) { dma(s, 0).counts[0] = 7; }, "one after the other");
  tells([&](Stream& s) { dma(s, 0).region = static_cast<Region>(9); }, "expected a region below 4, found 9");
  tells([&](Stream& s) { dma(s, 5).region = Region::input; }, "expected to write to the output, found the input");
  tells([&](Stream& s) { dma(s, 1).region = Region::output; }, "expected to read anything but the output");
  tells([&](Stream& s) { mac(s).sums = 130; }, "command 3: expected sums at a multiple of 4, found 130");
  tells([&](Stream& s) { mac(s).outputs = 0; }, "at least one pixel, one output and one product");
  tells([&](Stream& s) { mac(s).channels = ~std::size_t{0}; }, "command 3: expected activations inside");
  tells([&](Stream& s) { mac(s).pixel_step = 2000; }, "command 3: expected activations inside");
  tells([&](Stream& s) { mac(s).tap_rows = std::size_t{1} << 62; }, "command 3: expected");
  tells([&](Stream& s) { requantize(s).pixels = 0; }, "command 4: expected at least one value");
  tells([&](Stream& s) { requantize(s).output = 2046; }, "command 4: expected outputs inside");
  tells([&](Stream& s) { s[3].after = 3; }, "command 3: expected to wait for an earlier command, found 3");
  Requantize both;
  both.pixels = both.outputs = 1;
  both.rule.to_float = both.adds_residual = true;
  EXPECT_NE(fault_of({{both}}).find("expected codes where a residual is added, found floats"), std::string::npos);
  Card card = small_card();
  card.clock_mhz = 0;
  EXPECT_NE(fault_of({}, kProductBytes, card).find("\"small\": expected an array, a clock"), std::string::npos);
  EXPECT_EQ(fault_of({}), "nothing");
}

// Whatever passes the check stays in its memories: guards stand around all of them.
TEST(NpuMachine, RandomStreamsAreRefusedOrStayInTheirMemories) {
  test::Random random(8);
  std::size_t ran = 0;
  for (int i = 0; i < 20000; ++i) {
    Stream stream = product_stream();
    for (int changes = test::uniform(random, 1, 3); changes > 0; --changes) {
      Command& c = stream[static_cast<std::size_t>(test::uniform(random, 0, 5))];
      const auto any = [&] {
        const std::size_t amount = static_cast<std::size_t>(test::uniform(random, 0, 40));
        return test::uniform(random, 0, 5) == 0 ? amount << test::uniform(random, 0, 62) : amount;
      };
      if (auto* d = std::get_if<Dma>(&c.what)) {
        std::size_t* fields[] = {&d->outside.address,  &d->scratchpad.address, &d->run, &d->counts[0], &d->counts[1],
                                 &d->outside.pitch[0], &d->scratchpad.pitch[0]};
        *fields[test::uniform(random, 0, 6)] = any();
      } else if (auto* m = std::get_if<Mac>(&c.what)) {
        std::size_t* fields[] = {&m->activations,  &m->weights,  &m->columns,    &m->sums,     &m->rows,
                                 &m->width,        &m->row_step, &m->pixel_step, &m->tap_rows, &m->tap_columns,
                                 &m->tap_row_step, &m->channels, &m->outputs};
        *fields[test::uniform(random, 0, 12)] = any() * (test::uniform(random, 0, 1) == 0 ? 4 : 1);
        m->is_per_channel = test::uniform(random, 0, 1) == 0;
      } else if (auto* r = std::get_if<Requantize>(&c.what)) {
        std::size_t* fields[] = {&r->sums, &r->columns, &r->output, &r->pixels, &r->outputs, &r->residual};
        *fields[test::uniform(random, 0, 5)] = any() * 4;
        r->adds_residual = test::uniform(random, 0, 3) == 0;
      }
    }
    if (!check_stream(small_card(), stream, kProductBytes)) continue;
    ++ran;
    test::Buffer constants(40), input(10), output(6), scratchpad(2048);
    std::memset(constants.data(), 1, 40);
    std::memset(input.data(), 1, 10);
    std::memset(scratchpad.data(), 0, 2048);
    Memory memory;
    memory.regions = {static_cast<std::byte*>(constants.data()), static_cast<std::byte*>(input.data()), nullptr,
                      static_cast<std::byte*>(output.data())};
    memory.scratchpad = static_cast<std::byte*>(scratchpad.data());
    execute(stream, memory);
    ASSERT_TRUE(constants.guard_is_whole() && input.guard_is_whole() && output.guard_is_whole() &&
                scratchpad.guard_is_whole())
        << "seed 8, case " << i;
  }
  EXPECT_GT(ran, 100u);
}

}  // namespace
}  // namespace ctk::kernels::npu

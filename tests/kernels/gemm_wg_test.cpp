// Every row of gemm_wg gives the bits of the reference.
#include "core/quant_tensor.h"
#include "tests/kernels/gemm_wg_cases.h"
#include "tests/support/seed.h"

namespace ctk::kernels {
namespace {

using namespace test;

TEST(GemmWg, RowsEqualTheReferenceOnRandomShapes) {
  Random random(ctk::test::test_seed(), "gemm_wg");
  const int cases = ctk::test::cases(10000);
  for (int i = 0; i < cases && !HasFatalFailure(); ++i) {
    Options o;
    o.m = 1 + random.below(9);
    o.digits = 1 + static_cast<int>(random.below(3));
    const std::size_t n = 1 + random.below(40), k = 1 + random.below(random.below(8) == 0 ? 300 : 70);
    check_random(random, o, random_shape(random, n, k), i % 200 == 0 ? std::vector{2, 4} : std::vector{1});
  }
}

TEST(GemmWg, RowsEqualTheReferenceAtEveryTailOfATile) {
  Random random(ctk::test::test_seed(), "gemm_wg tails");
  for (std::size_t n : {1, 7, 8, 9, 15, 16, 17, 33}) {
    for (std::size_t k : {1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129, 131}) {
      for (std::size_t m : {1, 2, 3, 4, 5, 6, 7, 13}) {
        Options o;
        o.m = m;
        o.digits = 1 + static_cast<int>(random.below(3));
        for (int bits : kWidths) {
          WgShape shape = random_shape(random, n, k);
          shape.bits = bits;
          check_random(random, o, shape, k == 131 && bits == 4 ? std::vector{2} : std::vector{1});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(GemmWg, RowsEqualTheReferenceOnLongAndManyRows) {
  Random random(ctk::test::test_seed(), "gemm_wg long");
  const std::size_t shapes[][4] = {{1, 40, 4096, 128}, {3, 17, 5000, 0},  {130, 24, 200, 32}, {70, 50, 1040, 64},
                                   {9, 33, 2050, 128}, {200, 16, 16, 16}, {25, 20, 3000, 0},  {64, 18, 700, 512}};
  for (const auto& s : shapes) {
    for (int digits = 1; digits <= 3; ++digits) {
      Options o;
      o.m = s[0];
      o.digits = digits;
      for (int bits : kWidths) {
        check_random(random, o, {s[1], s[2], s[3], random.below(2) == 0, bits},
                     bits == 4 ? std::vector{1, 2, 4} : std::vector{1});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Blocks as tall as they get, and more groups than a chunk of codes holds: scratch has no room to spare.
TEST(GemmWg, RowsStayWithinTheirScratchOnFullBlocks) {
  Random random(ctk::test::test_seed(), "gemm_wg full blocks");
  for (std::size_t group : {16, 32, 128}) {
    for (int digits = 1; digits <= 3; ++digits) {
      for (int bits : kWidths) {
        const WgShape shape{20, 1536, group, random.below(2) == 0, bits};
        const Weights w = random_weights(random, shape);
        for_each_row([&](const GemmWgRow& row) {
          Options o;
          o.digits = digits;
          o.m = row.block_rows(shape, digits);
          FloatOutput c(random, o.m, shape.n, shape.n, false, Residual::none, false);
          const std::vector<float> a = random_activations(random, o.m, shape.k, 0);
          expect_same_bits(computed(row, w, a, o, c), computed(gemm_wg_rows().front(), w, a, o, c));
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Codes as files hold them, every width and tail, end where the memory does.
TEST(GemmWg, RowsPackHeldCodesToTheSameBytes) {
  Random random(ctk::test::test_seed(), "gemm_wg held");
  for (std::size_t n : {1, 15, 16, 17, 33}) {
    for (std::size_t k : {1, 2, 3, 7, 8, 15, 16, 17, 30, 31, 33, 255, 256, 258, 289, 530}) {
      for (int bits : kWidths) {
        WgShape shape = random_shape(random, n, k);
        shape.bits = bits;
        Weights w = random_weights(random, shape);
        w.row_codes = k;
        Inputs in(w, {});
        const Tensor stored = pack_codes({static_cast<std::int64_t>(n), static_cast<std::int64_t>(k)},
                                         std::span<const std::int8_t>(in.codes.data(), n * k), bits);
        const auto* bytes = static_cast<const char*>(stored.data());
        FencedArray<char> held(std::vector<char>(bytes, bytes + stored.bytes()));
        for_each_row([&](const GemmWgRow& row) {
          FencedArray<char> from_codes(packed_size(row, shape)), from_held(packed_size(row, shape));
          pack_by(row, w, in, from_codes.data());
          WgMatrix matrix;
          matrix.shape = shape;
          matrix.held = held.data();
          matrix.scales = in.scales.data();
          matrix.zero_points = shape.is_affine ? in.zero_points.data() : nullptr;
          pack_wg(row, matrix, from_held.data());
          ASSERT_EQ(from_held.values(), from_codes.values()) << row.name << ": " << n << ", " << k << ", " << bits;
        });
      }
    }
  }
}

TEST(GemmWg, RowsUnpackToTheNumbersCodesStandForOnRandomShapes) {
  Random random(ctk::test::test_seed(), "gemm_wg unpack");
  const int cases = ctk::test::cases(1000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const WgShape shape = random_shape(random, 1 + random.below(40), 1 + random.below(150));
    const Weights w = random_weights(random, shape);
    Inputs in(w, {});
    for_each_row([&](const GemmWgRow& row) {
      FencedArray<char> packed(packed_size(row, shape));
      pack_by(row, w, in, packed.data());
      FencedArray<float> out(shape.k);
      for (std::size_t n = 0; n < shape.n; ++n) {
        row.unpack_row(shape, packed.data(), n, out.data());
        // A code has at most eight bits, a scale eleven: their product is a float.
        for (std::size_t k = 0; k < shape.k; ++k) ASSERT_EQ(out.data()[k], w.value(n, k)) << n << ", " << k;
      }
    });
  }
}

}  // namespace
}  // namespace ctk::kernels

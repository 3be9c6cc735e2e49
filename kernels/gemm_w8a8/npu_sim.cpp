// gemm_w8a8 on the simulated NPU (kernels/npu). A product is a 1x1 convolution of a row of pixels.
#include "kernels/npu/compile.h"

namespace ctk::kernels::npu {
namespace {

Result<Program> compile_gemm(const Card& card, const ConvShape& shape, const EpilogueInt& rule,
                             std::uint8_t input_zero_point) {
  return compile(card, shape, false, rule, input_zero_point);
}

}  // namespace

extern const Row gemm_w8a8_npu_sim;
constinit const Row gemm_w8a8_npu_sim{
    .kind = "gemm_w8a8",
    .name = "gemm_w8a8_npu_sim",
    .compile = compile_gemm,
    .is_per_channel = false,
};

}  // namespace ctk::kernels::npu

// conv_w8a8 on the simulated NPU (kernels/npu). Any kernel, stride, dilation and groups, transposed ones too.
#include "kernels/npu/compile.h"

namespace ctk::kernels::npu {
namespace {

Result<Program> compile_conv(const Card& card, const ConvShape& shape, const EpilogueInt& rule,
                             std::uint8_t input_zero_point) {
  return compile(card, shape, false, rule, input_zero_point);
}

}  // namespace

extern const Row conv_w8a8_npu_sim;
constinit const Row conv_w8a8_npu_sim{
    .kind = "conv_w8a8",
    .name = "conv_w8a8_npu_sim",
    .compile = compile_conv,
    .is_per_channel = false,
};

}  // namespace ctk::kernels::npu

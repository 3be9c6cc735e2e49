// depthwise_w8a8 on the simulated NPU (kernels/npu). Each channel takes a column of the array, its taps the rows.
#include "kernels/npu/compile.h"

namespace ctk::kernels::npu {
namespace {

Result<Program> compile_depthwise(const Card& card, const ConvShape& shape, const EpilogueInt& rule,
                                  std::uint8_t input_zero_point) {
  return compile(card, shape, true, rule, input_zero_point);
}

}  // namespace

extern const Row depthwise_w8a8_npu_sim;
constinit const Row depthwise_w8a8_npu_sim{
    .kind = "depthwise_w8a8",
    .name = "depthwise_w8a8_npu_sim",
    .compile = compile_depthwise,
    .is_per_channel = true,
};

}  // namespace ctk::kernels::npu

// Every row of every kind. The convolution kinds drive the rows of a product and have none of their own.
#include <algorithm>
#include <optional>
#include <string_view>

#include "kernels/attention/attention.h"
#include "kernels/convert/convert.h"
#include "kernels/depthwise_fp32/depthwise_fp32.h"
#include "kernels/depthwise_w8a8/depthwise_w8a8.h"
#include "kernels/eltwise/eltwise.h"
#include "kernels/gemm_fp32/gemm_fp32.h"
#include "kernels/gemm_half/gemm_half.h"
#include "kernels/gemm_w4a8/gemm_w4a8.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/gemm_wg/gemm_wg.h"
#include "kernels/lookup/lookup.h"
#include "kernels/norm/norm.h"
#include "kernels/pool/pool.h"
#include "kernels/resize/resize.h"
#include "kernels/rope/rope.h"
#include "kernels/select.h"
#include "kernels/softmax/softmax.h"

namespace ctk::kernels {
namespace {

template <class Row>
void append(std::vector<KernelInfo>& out, const char* kind, std::span<const Row> rows) {
  for (const Row& row : rows) out.push_back({kind, row.isa, row.name});
}

// Every line of every table, whatever the processor.
// clang-format off
constexpr const char* kEveryRow[] = {
#define CTK_EVERY_PROCESSOR
#define CTK_KERNEL(symbol) #symbol,
#define CTK_WIDER_KERNEL(symbol, name) name,
#include "kernels/gemm_fp32/kernels.def"
#include "kernels/gemm_half/fp16.def"
#include "kernels/gemm_half/bf16.def"
#include "kernels/gemm_w8a8/kernels.def"
#include "kernels/gemm_w4a8/kernels.def"
#include "kernels/gemm_wg/kernels.def"
#include "kernels/depthwise_fp32/kernels.def"
#include "kernels/depthwise_w8a8/kernels.def"
#include "kernels/eltwise/kernels.def"
#include "kernels/pool/kernels.def"
#include "kernels/resize/kernels.def"
#include "kernels/convert/kernels.def"
#include "kernels/lookup/kernels.def"
#include "kernels/attention/kernels.def"
#include "kernels/norm/kernels.def"
#include "kernels/softmax/kernels.def"
#include "kernels/rope/kernels.def"
#undef CTK_WIDER_KERNEL
#undef CTK_KERNEL
#undef CTK_EVERY_PROCESSOR
};
// clang-format on

// The instruction set a row's name ends with.
std::optional<Isa> isa_of(std::string_view name) {
  for (std::size_t at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1)) {
    if (const auto isa = isa_from_name(name.substr(at + 1))) return isa;
  }
  return std::nullopt;
}

}  // namespace

std::vector<KernelInfo> all_kernels() {
  std::vector<KernelInfo> out;
  append(out, "gemm_fp32", gemm_fp32_rows());
  append(out, "gemm_fp16", gemm_fp16_rows());
  append(out, "gemm_bf16", gemm_bf16_rows());
  append(out, "gemm_w8a8", gemm_w8a8_rows());
  append(out, "gemm_w4a8", gemm_w4a8_rows());
  append(out, "gemm_wg", gemm_wg_rows());
  append(out, "depthwise_fp32", depthwise_fp32_rows());
  append(out, "depthwise_w8a8", depthwise_w8a8_rows());
  append(out, "eltwise", eltwise_rows());
  append(out, "pool", pool_rows());
  append(out, "resize", resize_rows());
  append(out, "convert", convert_rows());
  append(out, "lookup", lookup_rows());
  append(out, "attention", attention_rows());
  append(out, "norm", norm_rows());
  append(out, "softmax", softmax_rows());
  append(out, "rope", rope_rows());
  return out;
}

std::vector<KernelInfo> foreign_kernels() {
  const std::vector<KernelInfo> own = all_kernels();
  std::vector<KernelInfo> out;
  for (const std::string_view name : kEveryRow) {
    const auto is_of_kind = [name](const KernelInfo& row) { return name.starts_with(row.kind + "_"); };
    const std::optional<Isa> isa = isa_of(name);
    const auto kind = std::find_if(own.begin(), own.end(), is_of_kind);
    if (!isa || kind == own.end()) continue;
    // A set that no row of this build has is one that this build cannot have.
    if (std::any_of(own.begin(), own.end(), [isa](const KernelInfo& row) { return row.isa == *isa; })) continue;
    out.push_back({kind->kind, *isa, std::string(name)});
  }
  return out;
}

}  // namespace ctk::kernels

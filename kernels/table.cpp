// Every row of every kind. The convolution kinds drive the rows of a product and have none of their own.
#include "kernels/attention/attention.h"
#include "kernels/convert/convert.h"
#include "kernels/depthwise_fp32/depthwise_fp32.h"
#include "kernels/depthwise_w8a8/depthwise_w8a8.h"
#include "kernels/eltwise/eltwise.h"
#include "kernels/gemm_fp32/gemm_fp32.h"
#include "kernels/gemm_w4a8/gemm_w4a8.h"
#include "kernels/gemm_w4g/gemm_w4g.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/lookup/lookup.h"
#include "kernels/pool/pool.h"
#include "kernels/select.h"

namespace ctk::kernels {
namespace {

template <class Row>
void append(std::vector<KernelInfo>& out, const char* kind, std::span<const Row> rows) {
  for (const Row& row : rows) out.push_back({kind, row.isa, row.name});
}

}  // namespace

std::vector<KernelInfo> all_kernels() {
  std::vector<KernelInfo> out;
  append(out, "gemm_fp32", gemm_fp32_rows());
  append(out, "gemm_w8a8", gemm_w8a8_rows());
  append(out, "gemm_w4a8", gemm_w4a8_rows());
  append(out, "gemm_w4g", gemm_w4g_rows());
  append(out, "depthwise_fp32", depthwise_fp32_rows());
  append(out, "depthwise_w8a8", depthwise_w8a8_rows());
  append(out, "eltwise", eltwise_rows());
  append(out, "pool", pool_rows());
  append(out, "convert", convert_rows());
  append(out, "lookup", lookup_rows());
  append(out, "attention", attention_rows());
  return out;
}

}  // namespace ctk::kernels

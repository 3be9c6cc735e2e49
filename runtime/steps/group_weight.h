// Coded matrices as kernels/gemm_wg takes them: packed once for all steps and plans that read them.
#pragma once

#include "core/quant_tensor.h"
#include "kernels/gemm_wg/gemm_wg.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {

// Whether width, groups and scales are among those the kernel has.
bool is_group_weight(const QuantTensor& weight);
// is_group_weight() must hold.
kernels::WgShape group_shape(const QuantTensor& weight);

struct GroupWeight {
  const kernels::GemmWgRow* gemm = nullptr;
  kernels::WgShape shape;
  std::shared_ptr<const void> packed;
};

// Packs `weight` under the name of `node` and `geometry`, or takes what is packed under them already; names the row in
// `step`. Errors: input (out of memory).
Result<GroupWeight> pack_group_weight(const PlanBuilder& builder, const QuantTensor& weight, graph::NodeId node,
                                      const kernels::ConvShape& geometry, Step& step);

}  // namespace ctk::runtime

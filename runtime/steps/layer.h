// What the makers of layer steps share: geometry, fusion with what follows, weights in kernel order.
#pragma once

#include "graph/layer.h"
#include "kernels/conv_shape.h"
#include "kernels/epilogue.h"
#include "runtime/plan_builder.h"

namespace ctk::runtime {

// A layer together with the nodes its step also computes.
struct FusedLayer {
  graph::Layer layer;
  graph::ValueId output;    // what the step writes: the layer's own output or that of the last absorbed node
  ClampRange clamp;         // of the last absorbed activation
  graph::ValueId residual;  // other operand of the absorbed Add; invalid: none
  graph::ValueId mid;       // the layer's own output, when a residual follows
  std::vector<graph::NodeId> absorbed;
};

// Follows the fusion notes as far as they are legal under this plan's forms (see kernels/epilogue.h).
FusedLayer fuse_layer(const PlanBuilder& builder, const graph::Layer& layer, bool is_integer);

// Geometry as the kernels see it. Gemm and MatMul become 1x1 convolutions over rows.
// Errors: input; nullopt for shapes the image kernels do not serve (3-D convolutions, uneven dilation of
// transposes...).
Result<std::optional<kernels::ConvShape>> layer_geometry(const PlanBuilder& builder, const graph::Layer& layer);
// True when the layer is a matrix product (Gemm, MatMul): plain layout, rows x K.
bool is_product(const PlanBuilder& builder, const graph::Layer& layer);

// What packed weights depend on: a product's number of rows is left out, so that texts of all lengths share them.
kernels::ConvShape packed_geometry(const PlanBuilder& builder, const graph::Layer& layer, kernels::ConvShape shape);

// A weight as [out_channels, channels_per_group, kernel_height, kernel_width].
template <class T>
struct KernelOrder {
  std::vector<T> turned;  // empty where the graph's layout is the same
  std::span<const T> values;
};
// `weight` must outlive what is returned.
template <class T>
KernelOrder<T> to_kernel_order(const PlanBuilder& builder, const graph::Layer& layer, const kernels::ConvShape& shape,
                               std::span<const T> weight);

// Bias as float [channels] (Gemm's C broadcast out); empty when absent. alpha and beta must have been folded.
Result<std::vector<float>> layer_bias(const PlanBuilder& builder, const graph::Layer& layer);

Status make_integer_layer(PlanBuilder& builder, const FusedLayer& fused, const kernels::ConvShape& shape);
// Whether the layer's codes and scales are what kernels/gemm_wg takes; others become floats while packing.
bool is_group_layer(const PlanBuilder& builder, const graph::Layer& layer);
Status make_group_layer(PlanBuilder& builder, const FusedLayer& fused, const kernels::ConvShape& shape);
Status make_float_layer(PlanBuilder& builder, const FusedLayer& fused, const kernels::ConvShape& shape);

}  // namespace ctk::runtime

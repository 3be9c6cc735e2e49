// Small networks that exercise what the runtime fuses and moves, built on tests/support/graph_builder.h.
#pragma once

#include "tests/support/graph_builder.h"

namespace ctk::test {

// Residual network on x [2,3,9,7]: 3x3, depthwise with Clip, 1x1 stride 2 shortcut (Slice + Pad as ResNet option A),
// Concat, MaxPool, AveragePool, global average, Gemm. Odd sizes on purpose.
inline graph::Graph residual_network() {
  GraphBuilder b;
  const auto x = b.input("x", {2, 3, 9, 7});
  const auto conv = [&](const std::string& name, graph::ValueId in, Shape weight, Attrs attrs, unsigned seed) {
    const auto w = b.constant(name + ".w", varied(weight, seed));
    const auto bias = b.constant(name + ".b", varied({weight[0]}, seed + 100));
    return b.node("Conv", {in, w, bias}, name, std::move(attrs));
  };
  const Attrs same{{"pads", Ints{1, 1, 1, 1}}};
  const auto c1 = b.node("Relu", {conv("c1", x, {8, 3, 3, 3}, same, 1)}, "r1");
  const auto lo = b.constant("lo", Tensor::scalar(0.0f)), hi = b.constant("hi", Tensor::scalar(6.0f));
  const auto dw = b.node(
      "Clip", {conv("dw", c1, {8, 1, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"group", std::int64_t{8}}}, 2), lo, hi},
      "clip");
  const auto c2 = conv("c2", dw, {8, 8, 1, 1}, {}, 3);
  const auto sum = b.node("Relu", {b.node("Add", {c2, c1}, "sum")}, "r2");
  const auto c3 = conv("c3", sum, {12, 8, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}}, 4);
  const auto starts = b.constant("starts", ints({0, 0})), ends = b.constant("ends", ints({9, 7}));
  const auto axes = b.constant("axes", ints({2, 3})), steps = b.constant("steps", ints({2, 2}));
  const auto half = b.node("Slice", {sum, starts, ends, axes, steps}, "half");
  const auto pads = b.constant("pads", ints({0, 2, 0, 0, 0, 2, 0, 0}));
  const auto shortcut = b.node("Pad", {half, pads}, "shortcut");
  const auto r3 = b.node("Relu", {b.node("Add", {c3, shortcut}, "sum2")}, "r3");
  const auto c4 = b.node("Relu", {conv("c4", r3, {4, 12, 1, 1}, {}, 5)}, "r4");
  const auto joined = b.node("Concat", {r3, c4}, "joined", {{"axis", std::int64_t{1}}});
  const auto pooled = b.node("MaxPool", {joined}, "pooled", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{1, 1}}});
  const auto smooth = b.node("AveragePool", {pooled}, "smooth",
                             {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 0}}, {"strides", Ints{1, 1}}});
  const auto c5 = b.node("Sigmoid", {conv("c5", smooth, {16, 8, 1, 1}, {{"group", std::int64_t{2}}}, 6)}, "gate");
  const auto mean = b.node("GlobalAveragePool", {c5}, "mean");
  const auto flat = b.node("Flatten", {mean}, "flat");
  const auto w = b.constant("head.w", varied({5, 16}, 7)), bias = b.constant("head.b", varied({5}, 8));
  const auto y = b.node("Gemm", {flat, w, bias}, "y", {{"transB", std::int64_t{1}}});
  b.graph.add_output(y);
  return std::move(b.graph);
}

}  // namespace ctk::test

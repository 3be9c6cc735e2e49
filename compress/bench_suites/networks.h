// The networks of suite int8: built here with random weights, quantized, as no file has to be at hand for a benchmark.
#pragma once

#include <span>
#include <string_view>

#include "core/result.h"
#include "graph/graph.h"

namespace ctk::pipeline {

// A chain of equal layers, convolution + bias + Relu: with eight of them, rounding the input hardly counts.
struct ConvChain {
  std::string_view name;
  std::int64_t channels, size, kernel, groups;
};
std::span<const ConvChain> conv_chains();
constexpr int kChainLayers = 8;

struct BenchNetwork {
  std::string_view name;
  graph::Graph (*build)();  // float, input [1, 3, 224, 224], batch norm folded already
};
std::span<const BenchNetwork> bench_networks();  // resnet18, mobilenetv2

graph::Graph build_chain(const ConvChain& chain);

// Runs the passes and gives every layer w8a8_c and every activation its range on noise. Float input and output.
Status quantize_network(graph::Graph& graph);

// Normal noise, the same on every run.
Tensor noise(Shape shape, double deviation, std::string_view purpose);

}  // namespace ctk::pipeline

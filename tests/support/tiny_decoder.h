// A decoder of Llama's family with seeded random weights, small enough for every test.
#pragma once

#include <functional>

#include "core/random.h"
#include "graph/hf/decoder.h"

namespace ctk::test {

inline graph::hf::DecoderConfig tiny_decoder_config() {
  graph::hf::DecoderConfig c;
  c.architecture = "LlamaForCausalLM";
  c.hidden_size = 32, c.intermediate_size = 44, c.vocab_size = 37, c.layers = 2;
  c.heads = 4, c.kv_heads = 2, c.head_dim = 8, c.max_positions = 64;
  return c;
}

// `stored`: the type a file would hold the weights in.
inline graph::Graph tiny_decoder(const graph::hf::DecoderConfig& config = tiny_decoder_config(),
                                 DType stored = DType::f32) {
  Random random(11, "tiny decoder");
  const graph::hf::TensorLookup lookup = [&](const std::string&, const Shape& shape) -> Result<Tensor> {
    Tensor weight = Tensor::zeros(DType::f32, shape).value();
    for (float& w : weight.mutable_values<float>()) w = static_cast<float>(0.3 * random.normal());
    return cast(weight, stored);
  };
  return graph::hf::build_decoder(config, lookup).value();
}

}  // namespace ctk::test

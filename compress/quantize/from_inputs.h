// Codes of methods that look at each layer's inputs, for a whole network.
#pragma once

#include <functional>

#include "compress/quantize/apply.h"
#include "data/splits.h"

namespace ctk::quantization {

struct FromInputsOptions {
  double damping = 0.01;
  bool reduce_range = false;
  std::size_t hold_out_every = 8;
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Layers of `schemes` with integer weights, each fitted to the inputs that the layers before it leave it once they are
// coded. Layers whose inputs cannot be gathered (grouped convolutions, transposes) have no entry.
// Errors: those of walk_layers() and of the method; config (a method that needs no inputs).
Result<GivenCodes> code_from_inputs(const graph::Graph& graph, const SchemeMap& schemes, const std::string& method,
                                    const data::Split& split, const FromInputsOptions& options);

}  // namespace ctk::quantization

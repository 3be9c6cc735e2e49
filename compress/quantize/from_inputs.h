// Codes of methods that look at each layer's inputs, for a whole network.
#pragma once

#include <functional>
#include <map>

#include "compress/quantize/apply.h"
#include "core/ranks.h"
#include "data/splits.h"

namespace ctk::quantization {

struct FromInputsOptions {
  double damping = 0.01;
  bool reduce_range = false;
  std::size_t hold_out_every = 8;
  // Further schemes of a layer, by address: coded from the same inputs, those that the network of `schemes` leaves it.
  std::map<std::string, std::vector<QuantScheme>> also;
  // Where codes are kept as they are found, and looked for; made where it is not there. Empty: nowhere. Whoever names
  // it answers for its holding codes of these very inputs only.
  std::string store;
  std::size_t values_in_memory = std::size_t{512} << 20;  // bytes; what crosses a layer beyond it lies in `folder`
  std::string folder;
  std::function<void(std::size_t done, std::size_t total)> progress;
  // As WalkOptions::ranks; layers that read one value, and their schemes, are fitted by turns. The same codes.
  Ranks* ranks = &alone();
};

struct InputCodes {
  GivenCodes given;                                                   // of `schemes`
  std::map<std::pair<std::string, std::string>, WeightOutcome> also;  // by (address, scheme)
};

// Layers of `schemes` with integer weights, each fitted to the inputs that the layers before it leave it once they are
// coded. Layers whose inputs cannot be gathered (grouped convolutions, transposes) have no entry.
// Errors: those of walk_layers() and of the method; config (a method that needs no inputs).
Result<InputCodes> code_from_inputs(const graph::Graph& graph, const SchemeMap& schemes, const std::string& method,
                                    const data::Split& split, const FromInputsOptions& options);

}  // namespace ctk::quantization

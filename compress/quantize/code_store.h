// Codes that a walk over the layers has found so far, on disk: a run that was killed goes on behind the last of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compress/quantize/quantizers.h"

namespace ctk::quantization {

// Outcomes of layers that read one value, by (address, scheme).
using StoredCodes = std::map<std::pair<std::string, std::string>, WeightOutcome>;

class CodeStore {
 public:
  // One file a group of layers, each written whole or not at all. An empty folder name keeps nothing.
  explicit CodeStore(std::string folder) : folder_(std::move(folder)) {}

  // `layers`: the addresses of a group, in order. Nothing where there is no file, or a damaged one.
  std::optional<StoredCodes> find(const std::vector<std::string>& layers) const;
  // Keeps the outcomes and gives them back as a later run will find them: weights mapped, so that what is done with
  // takes no memory. Errors: input (the file cannot be written or read).
  Result<StoredCodes> put(const std::vector<std::string>& layers, StoredCodes codes) const;

 private:
  std::string path_of(const std::vector<std::string>& layers) const;

  std::string folder_;
};

}  // namespace ctk::quantization

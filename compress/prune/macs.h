// Multiply-adds of a cut network, without cutting it.
#pragma once

#include <cstdint>

#include "graph/coupling/coupling.h"
#include "graph/layer.h"

namespace ctk::pruning {

class MacsCount {
 public:
  explicit MacsCount(const graph::Coupling& coupling)
      : coupling_(coupling), layers_(graph::layers_of(coupling.graph())) {}
  // Of all layers with a constant weight, for one sample, exact.
  std::int64_t of(const graph::Coupling::Units& removed) const;
  std::int64_t whole() const { return of({}); }

 private:
  const graph::Coupling& coupling_;
  std::vector<graph::Layer> layers_;
};

}  // namespace ctk::pruning

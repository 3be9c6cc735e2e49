// Which units of a coupled group go first: one number a unit, over all weights the group runs along.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "data/splits.h"
#include "graph/coupling/coupling.h"

namespace ctk::pruning {

// [groups][units]: >= 0, mean 1 in each group so that groups compare; empty for groups that cannot be cut.
using Scores = std::vector<std::vector<double>>;

struct ImportanceTask {
  const graph::Coupling& coupling;
  const data::Split* split = nullptr;  // what methods with needs_data look at
  std::uint64_t seed = 0;
};

struct ImportanceMethod {
  std::string_view name;  // stages.prune.method
  std::string_view what;
  bool needs_data;
  // Deterministic. Errors: those of running the network on the split.
  Result<Scores> (*score)(const ImportanceTask& task);
};
std::span<const ImportanceMethod> importance_methods();
// Errors: config (unknown name; lists those known).
Result<const ImportanceMethod*> find_importance(std::string_view name);

// False for an unknown name.
bool needs_data(std::string_view method);

// The numbers of the units of each group, least important first; ties by their place.
std::vector<std::vector<std::size_t>> ranking_of(const Scores& scores);

Result<Scores> score_activation(const ImportanceTask& task);
Result<Scores> score_taylor(const ImportanceTask& task);
Result<Scores> score_hessian(const ImportanceTask& task);
// Scales every group to mean 1; a group of zeros becomes ones.
void normalize(Scores& scores);

}  // namespace ctk::pruning

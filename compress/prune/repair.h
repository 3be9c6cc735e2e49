// Repair without labels or training: the layers that read a cut group are fitted to what the float network makes there.
//
// Minimises, layer after layer in graph order, the squared error of the layer's output, plus what the operand beside
// it in an Add (a shortcut) lost, to that of the float network; inputs are what the cut network, repaired up to there,
// really feeds it. In: weights [n, k] with the channels that are left. Out: weights and bias.
// Differs from plain least squares: the pull (ridge) is towards the weights as cut, not to zero; a layer whose fit does
// worse on held-out samples keeps its weights. Layers of grouped convolutions stay as they are.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compress/prune/least_squares.h"
#include "data/splits.h"
#include "graph/coupling/coupling.h"
#include "graph/layer.h"

namespace ctk::pruning {

struct RepairOptions {
  std::size_t most_samples = 512;
  std::size_t most_bytes = std::size_t{1} << 30;  // of values of both networks that are held at once
  std::size_t hold_out_every = 8;                 // of so many samples one is kept from the fit
  double ridge = 1e-3;                            // times the mean diagonal
  std::function<void(std::size_t done, std::size_t total)> progress;
};

struct RepairedLayer {
  std::string name;
  double error_before = 0, error_after = 0;  // squared, over the variance of the target; held-out samples
  bool is_changed = false;
};

// `cut`: coupling.cut(removed); changed in place. Errors: those of running either network on the split (names the
// sample), interrupted.
Result<std::vector<RepairedLayer>> repair(const graph::Coupling& coupling, const graph::Coupling::Units& removed,
                                          graph::Graph& cut, const data::Split& split, const RepairOptions& options);

// Sums over the inputs of every layer that reads a group which can be cut, as the float network feeds it, by node.
using InputSums = std::map<graph::NodeId, RowSums>;
Result<InputSums> input_sums(const graph::Coupling& coupling, const data::Split& split, const RepairOptions& options);
// The same repair from those sums alone: inputs are taken for those of the float network. Exact where one group is cut.
void repair_from_sums(const graph::Coupling& coupling, const graph::Coupling::Units& removed, const InputSums& sums,
                      double ridge, graph::Graph& cut);

}  // namespace ctk::pruning

// A network with ways out before its end: heads behind inner values, and the choice between what they say.
//
// One graph computes everything and chooses: y = confidence_1 >= t_1 ? logits_1 : confidence_2 >= t_2 ? ... : end.
// Its stages, run one after the other, compute only what is needed until a sample is sure. What belongs to an exit is
// written down in the graph's metadata under kKey, as JSON, so that every later form of the graph still says it.
#pragma once

#include <string>
#include <vector>

#include "graph/subgraph.h"

namespace ctk::exits {

inline constexpr const char* kKey = "early_exit";

// A head reads the mean of `feature` over its places and gives logits: mean * weight^T + bias.
struct Head {
  graph::ValueId feature;  // f32 [batch, features], [batch, tokens, features] or [batch, features, height, width]
  Tensor weight, bias;     // f32 [classes, features], [classes]
  float threshold = 0;     // of the largest softmax probability: a sample that reaches it leaves
};

// Names of values in a graph that has exits.
struct Exit {
  std::string feature, logits, confidence;
  float threshold = 0;
};
struct Exits {
  std::vector<Exit> exits;  // in the order they are passed
  std::string end;          // what the network itself says at last
};

// The mean of `feature` over places, [batch, features], as a value of the graph; put right behind the feature.
// `infos`: infer_shapes() of the graph. The graph's outputs are left alone.
graph::ValueId add_mean(graph::Graph& graph, graph::ValueId feature, const std::vector<graph::InferredValue>& infos,
                        const std::string& name);

// Heads in the order they are passed. The first output becomes the choice and keeps its name; what led to it keeps its
// bits. Errors: internal (the graph fails verify()).
Status add_exits(graph::Graph& graph, const std::vector<Head>& heads, const std::vector<graph::InferredValue>& infos);

// One an exit, in the graph and its metadata. Errors: input (as exits_of()).
Status set_thresholds(graph::Graph& graph, const std::vector<float>& thresholds);

// No exits where the metadata names none. Errors: input (metadata that is not ours, values that are not there).
Result<Exits> exits_of(const graph::Graph& graph);

// Parts to be run in order, one more than exits. Part i gives the feature, the logits and the confidence of exit i, the
// last the end; each reads the feature before it, and inputs of the graph where something does not go through that.
// Shapes stay as free in the batch as the graph's. Errors: internal.
Result<std::vector<graph::Subgraph>> stages_of(const graph::Graph& graph, const Exits& exits,
                                               const std::vector<graph::InferredValue>& infos);

}  // namespace ctk::exits

// GGUF for llama.cpp: a decoder graph with its codes as they are, and the tokenizer of the model it came from.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace ctk::exporter {

// `model`: where the graph was read from, a checkpoint folder (config.json, tokenizer.json) or a GGUF file, whose
// metadata is then kept. Every weight in the file is the number the graph computes with:
//   codes of 2..4 bits -> Q4_0, 5 -> Q5_0, 6..8 -> Q8_0, with one fp16 scale for each 32 (longer groups repeat theirs)
//   codes in rows that are no multiple of 32 -> F32, the numbers they stand for: no block type holds such rows
//   floats -> F16 where all of them are fp16 numbers or the layer's scheme is fp16, else F32; norms and biases F32
// Rows of q and k are turned to llama.cpp's order. A head that is the embedding is not written twice.
// Errors: input, before anything is written: a graph that is no decoder as graph/hf builds it (names the node), a
// scheme or group that no block type holds exactly, scales that are no fp16 numbers, weights that are not finite (name,
// count, first index), a tokenizer llama.cpp has no name for.
Status write_gguf(const graph::Graph& graph, const std::string& model, const std::string& path);
Result<std::string> gguf_of(const graph::Graph& graph, const std::string& model);
// What is written as floats though it has codes, for people.
std::vector<std::string> gguf_notes(const graph::Graph& graph);

}  // namespace ctk::exporter

// Reads a Hugging Face checkpoint folder (config.json and safetensors) as a graph.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph::hf {

// Whether `path` is a folder with a config.json.
bool is_checkpoint(const std::string& path);

// Weights stay mapped where the file has them as float32. What was decided stands in reader_notes. `data_files`, when
// given, receives config.json and the weight files. The weights' numbers are not looked at.
// Errors: input (file, tensor or key, expected, found): a folder that is incomplete or inconsistent, an architecture we
// do not know, a tensor of another shape than the configuration says, tensors that the architecture does not use.
Result<Graph> read_hf(const std::string& folder, std::vector<std::string>* data_files = nullptr);

}  // namespace ctk::graph::hf

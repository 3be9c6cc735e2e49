// Reads ONNX models into the graph. Whatever opset a file has (9 to 24), known operators arrive in the form of opset 24
// (axes as inputs and so on); unknown operators and custom domains are carried as they are.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace ctk::graph::onnx {

struct ReadOptions {
  bool allow_custom_ops = true;  // false: a node of another domain than ONNX's own is an error
};

inline constexpr int kOldestOpset = 9;
inline constexpr int kNewestOpset = 24;

// Maps the file, checks everything it claims, sorts and verifies. External data is looked for beside the model.
// `graph.opset` is the file's own number although nodes are normalized; what was decided on the way stands in
// `graph.reader_notes`. `data_files`, when given, receives the absolute paths of the external data files that were
// opened, links followed. Errors: input (path, node or tensor, expected, found).
Result<Graph> read_model(const std::string& path, const ReadOptions& options = {},
                         std::vector<std::string>* data_files = nullptr);

// Same from memory. An empty folder refuses external data. `bytes` need not outlive the call.
Result<Graph> read_model_bytes(std::span<const std::byte> bytes, const std::string& folder_for_external_data,
                               const ReadOptions& options = {});

}  // namespace ctk::graph::onnx

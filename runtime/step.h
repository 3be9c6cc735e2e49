// One planned operation: which buffers it reads and writes, and how it runs. Choice and allocation are over by then.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/result.h"
#include "graph/graph.h"

namespace ctk::runtime {

// Buffers are addressed by slot number; the executor fills in the pointers before a run.
struct RunContext {
  void* const* slots = nullptr;
  std::byte* scratch = nullptr;  // 64-byte aligned, as large as the largest scratch_bytes of the plan

  template <class T>
  T* at(int slot) const {
    return static_cast<T*>(slots[slot]);
  }
};

class Step {
 public:
  virtual ~Step() = default;
  virtual Status run(const RunContext& context) = 0;

  std::string label;               // "conv_w8a8", "quantize", ...: the kernel kind or the conversion
  std::string row;                 // the kernel row that runs it, "" for steps without one
  std::string why;                 // why a slower form was taken, "" when none was wanted
  graph::NodeId node;              // whose time this is; invalid for graph-level conversions
  std::vector<int> reads, writes;  // slots
  std::size_t scratch_bytes = 0;
  std::size_t packed_bytes = 0;  // weights in kernel layout
};

}  // namespace ctk::runtime

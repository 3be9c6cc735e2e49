// Weights in kernel layout, held once for all plans of one graph: other batch sizes, other executors, other threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/result.h"
#include "graph/graph.h"
#include "kernels/conv_shape.h"

namespace ctk::runtime {

class PackedWeights {
 public:
  // The buffer of `node` as kernel row `row` wants it for this geometry (any batch), `bytes` long and 64-byte aligned;
  // made by `pack` when it is asked for the first time. Any thread.
  // Errors: input (out of memory).
  Result<std::shared_ptr<const void>> get(graph::NodeId node, const std::string& row, const kernels::ConvShape& shape,
                                          std::size_t bytes, const std::function<void(void*)>& pack);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const void>> buffers_;
};

}  // namespace ctk::runtime

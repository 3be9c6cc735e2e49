// A Plan: the steps that compute a graph for fixed input shapes, with every choice made (layout, fusion, kernel row,
// memory). The executor only walks it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/cpu_isa.h"
#include "graph/graph.h"
#include "graph/shapes.h"
#include "runtime/kv_caches.h"
#include "runtime/memory_plan.h"
#include "runtime/packed_weights.h"
#include "runtime/step.h"

namespace ctk::runtime {

struct NpuPlacement;  // runtime/npu_executor.h

// Layouts of rank 3 and 4 values. Kernels of the image kinds want channels_last; everything else wants plain.
enum class Layout { plain, channels_last, any };
// Form of a value: as its dtype says, or as uint8 codes by its note.
enum class Form { native, codes };

struct PlanOptions {
  std::vector<Shape> input_shapes;
  std::vector<graph::ValueId> keep;  // values to materialize: no fusion swallows them
  bool fuse = true;                  // false: every node its own step (same bits, more memory traffic)
  int threads = 1;                   // scratch is sized for this many
  std::shared_ptr<PackedWeights> packed = std::make_shared<PackedWeights>();  // of this graph; may be shared
  // Not null: the inputs are the next tokens of a text, and causal Attention sees those before them in these caches.
  std::shared_ptr<KvCaches> caches = nullptr;
  std::shared_ptr<const NpuPlacement> npu = nullptr;  // layers that a simulated NPU runs; null: none
};

struct SlotInfo {
  std::size_t bytes = 0;
  bool is_constant = false;  // points into `constant`
  int alias_of = -1;         // shares the memory of another slot
  Tensor constant;
};

// Where one kept value can be read after its step has run.
struct KeptValue {
  graph::ValueId value;
  int slot = -1;
  Shape shape;  // in storage order
  bool channels_last = false;
  std::size_t after_step = 0;
};

struct Plan {
  std::vector<std::unique_ptr<Step>> steps;
  std::vector<SlotInfo> slots;
  std::vector<int> input_slots;   // one per graph input: float32 (or integer) data, plain layout
  std::vector<int> output_slots;  // one per graph output, native form, plain layout
  std::vector<DType> output_dtypes;
  std::vector<Shape> output_shapes;
  std::vector<KeptValue> kept;
  std::vector<std::size_t> slot_offsets;  // into the arena; unused for constants and aliases
  MemoryPlan memory;
  std::size_t scratch_bytes = 0;
  std::size_t packed_bytes = 0;  // weights in kernel layout
};

// Errors: input (unsupported operator, shape rule broken; names the node), config (CTK_ISA).
Result<Plan> make_plan(const graph::Graph& graph, const PlanOptions& options);

}  // namespace ctk::runtime

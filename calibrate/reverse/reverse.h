// Reverse-mode differentiation of a graph: from the gradient at the first output back to the values asked for.
// In:  a float graph, the shapes of its inputs, the values of one forward run that keep() names.
// Out: d(loss) / d(value) for every target, handed out as each becomes complete, so that only the gradients that cross
//      one node are held. No gradients of constants: those of a layer's weight follow from its output's gradient and
//      its input, see weight_gradient.h.
// Cost: for each product one product of the same size, as in the forward run.
// Products are kernels/gemm_fp32, everything else a fixed order of sums: the same bits at any number of threads.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/shapes.h"

namespace ctk::calibrate {

using Values = std::map<graph::ValueId, Tensor>;  // f32 in ONNX layout, of one forward run

struct GradientVisitor {
  // The gradient of a target, complete. Later nodes first.
  std::function<Status(graph::ValueId target, const Tensor& gradient)> target;
  // What one node alone adds to the gradient of its first input. Not called unless set.
  std::function<Status(graph::NodeId node, const Tensor& gradient)> contribution;
};

class ReversePass {
 public:
  // `graph` must outlive the pass. Targets that the first output does not depend on are never visited.
  // Errors: input (shapes; an operator between a target and the output that has no rule: names node and operator).
  static Result<ReversePass> create(const graph::Graph& graph, std::span<const Shape> input_shapes,
                                    std::vector<graph::ValueId> targets);

  // The values of the forward run that run() reads.
  const std::vector<graph::ValueId>& keep() const { return keep_; }
  const Shape& shape(graph::ValueId id) const { return infos_[id.index].info.shape; }

  // `values` holds keep(); output_gradient has the shape of the first output.
  // Errors: internal (a value that was not kept), those of the rules and of the visitor.
  Status run(const Values& values, const Tensor& output_gradient, const GradientVisitor& visitor) const;

 private:
  explicit ReversePass(const graph::Graph& graph) : graph_(&graph) {}

  const graph::Graph* graph_;
  std::vector<graph::InferredValue> infos_;
  std::vector<bool> is_target_;       // by value index
  std::vector<bool> needs_gradient_;  // by value index: a target, or made from one
  std::vector<graph::NodeId> order_;  // nodes to go through, last first
  std::vector<graph::ValueId> keep_;
};

// All gradients of `targets` at once.
using Gradients = std::map<graph::ValueId, Tensor>;
Result<Gradients> backward(const graph::Graph& graph, std::span<const Shape> input_shapes,
                           std::vector<graph::ValueId> targets, const Values& values, const Tensor& output_gradient);

}  // namespace ctk::calibrate

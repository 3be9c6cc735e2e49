// A graph as a differentiable function: nodes in order, each by its row of torch_ops; constants that are weights become
// parameters.
// What is a parameter: float32 weights and biases of Conv, ConvTranspose, Gemm and MatMul, scales and offsets of
// normalizations, slopes of PRelu, embeddings (the matrix a Gather reads rows of), and vectors that are added to what a
// layer gives. Everything else that is constant stays (rotary tables, masks, factors).
// Codes and notes mean what they mean everywhere: a coded weight is read as the numbers its codes stand for, a noted
// value as the number its code stands for. A coded weight that is trained is a CodedWeight, with its floats and its
// scales as parameters; rounding passes the gradient straight through.
// Memory: what ATen keeps for the way back, one copy of the constants, and one gradient for each parameter.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ranks.h"
#include "graph/graph.h"
#include "graph/shapes.h"
#include "train/torch/fake_quant.h"
#include "train/torch/torch_ops.h"

namespace ctk::train {

struct Parameter {
  std::string name;  // of the constant in the graph
  at::Tensor value;  // a leaf that wants its gradient, when the graph is made to be trained
  bool decays = false;
};

class TorchGraph {
 public:
  // The graph must outlive the object. `floats`: the network that `graph` was quantized from, whose weights are where
  // coded ones of the same name start; may be null. Errors: input (unknown operators; names the node).
  static Result<std::unique_ptr<TorchGraph>> create(const graph::Graph& graph, bool trains,
                                                    const graph::Graph* floats = nullptr,
                                                    Ranges ranges = Ranges::fixed);

  // One tensor per graph input and output. `is_training`: batch normalizations take the statistics of the batch and
  // move their running ones by a tenth. Errors: those of inference, and what ATen throws (names the node).
  Result<Outputs> run(std::span<const at::Tensor> inputs, bool is_training);

  // Values that runs keep from here on, as their readers see them, and what the last run kept.
  void watch(std::vector<graph::ValueId> values) { watch_ = std::move(values); }
  const std::vector<at::Tensor>& watched() const { return watched_; }
  // From here on what is kept of a value that an Attention gives are its probabilities, [batch, heads, queries, keys].
  void watch_probabilities() { watches_probabilities_ = true; }

  // From here on products and convolutions multiply in bfloat16 (FitOptions::autocast).
  void autocast() { autocasts_ = true; }
  // From here on runs that are differentiated keep what lies between blocks and compute the rest again on the way back.
  // Not beside watch(). Errors: input (a network without two places between blocks).
  Status checkpoint_blocks();

  // From here on only low-rank differences of the matrices that products read are trained (FitOptions::lora_rank).
  // Errors: input (no such matrix).
  Status adapt(std::int64_t rank, std::uint64_t seed);

  // Gives every convolution but those that write graph outputs a batch normalization of its own, at first the identity:
  // statistics come from `batches`, weights are scaled so that what is normalized has variance 1, its factor and offset
  // undo that. A convolution that a BatchNormalization follows, or whose weight others read, is left as it is. A
  // coded one gets its own too: folding multiplies the scales of a row, codes stay. Left as they are: those whose rows
  // share a scale, and fp16.
  Status renew_norms(std::span<const std::vector<at::Tensor>> batches);
  // Running statistics of batch normalizations become the means over batches, with the parameters as they are: called
  // for one batch after another, `seen` those before it.
  Status measure_norms(std::span<const at::Tensor> batch, std::size_t seen);

  // From here on what batch normalizations are trained with are the statistics of the batches of all ranks, which then
  // make the same calls of run(). Null: of this process' batches.
  void share_norms(Ranks* ranks) { norm_ranks_ = ranks; }

  std::vector<Parameter>& parameters() { return parameters_; }
  // Weights with codes by their value, when the graph is made to be trained; their tensors are among the parameters.
  const std::map<graph::ValueId, CodedWeight>& coded() const { return coded_; }
  // Running statistics of batch normalizations, in a fixed order.
  std::vector<at::Tensor> buffers() const;
  // The graph with the parameters and statistics as they are; renewed norms are folded in. Constants that no step has
  // touched are the very tensors that came in.
  Result<graph::Graph> graph() const;

 private:
  static constexpr double kNormMomentum = 0.1;  // share of a batch's statistics in the running ones
  static constexpr double kNormEpsilon = 1e-5;  // of renewed norms, as PyTorch's default

  struct RenewedNorm {
    std::size_t weight = 0;  // index into parameters_; the bias it takes the place of stays out of them; not for codes
    bool is_coded = false;   // whose factor must stay above 0
    std::size_t factor = 0, offset = 0;
    at::Tensor mean, variance;  // running, of what the convolution gives without bias
  };
  struct Moments {               // sums over everything but channels
    at::Tensor values, squares;  // [channels] double
    double count = 0;
  };
  struct Plan {
    std::vector<Shape> shapes;
    std::vector<graph::InferredValue> infos;
    std::map<graph::ValueId, at::Tensor> constants;      // values that inference knows
    std::vector<std::vector<graph::ValueId>> last_uses;  // by place in the order: values nobody reads after it
  };

  explicit TorchGraph(const graph::Graph& graph) : graph_(graph) {}
  void read_constants(bool trains, const graph::Graph* floats);
  void read_codes(graph::ValueId id, bool trains, const graph::Graph* floats);
  void read_ranges();
  at::Tensor rounded(graph::ValueId id, const at::Tensor& x) const;
  at::Tensor constant_of(graph::ValueId id) const;  // undefined when the value is no constant
  Result<const Plan*> plan_for(std::span<const at::Tensor> inputs);
  // Nodes [first, last) of the order. Values nobody reads behind them are let go.
  Status run_range(const Plan& plan, std::vector<at::Tensor>& values, std::size_t first, std::size_t last,
                   bool is_training);
  struct Checkpointed;  // torch_checkpoint.cpp: a range as one step of the way back
  Status run_checkpointed(const Plan& plan, std::vector<at::Tensor>& values, std::size_t first, std::size_t last,
                          bool is_training);
  at::Tensor value_of(graph::ValueId id, const std::vector<at::Tensor>& values) const;
  Outputs run_node(const graph::Node& node, graph::NodeId id, const Plan& plan, std::span<const at::Tensor> inputs,
                   bool is_training);
  static void add_moments(Moments& moments, const at::Tensor& output);
  at::Tensor factor_of(const RenewedNorm& norm) const;
  at::Tensor normalized(RenewedNorm& norm, const at::Tensor& x, bool is_training);
  at::Tensor trained_batch_norm(const graph::Node& node, std::span<const at::Tensor> inputs);
  std::size_t add_parameter(std::string name, at::Tensor value, bool decays);
  bool can_renew(graph::NodeId id) const;

  const graph::Graph& graph_;
  std::vector<Parameter> parameters_;
  std::map<graph::ValueId, std::size_t> by_value_;  // parameter of a constant
  std::map<graph::ValueId, at::Tensor> fixed_;      // other constants
  std::map<graph::ValueId, CodedWeight> coded_;     // weights with codes, when they are trained
  std::map<graph::ValueId, at::Tensor> statistics_;
  std::vector<bool> depends_;  // by value: on a parameter or an input
  std::map<graph::NodeId, RenewedNorm> norms_;
  std::map<graph::NodeId, Moments>* moments_ = nullptr;  // of what convolutions give, while they are asked for
  double norm_momentum_ = kNormMomentum;
  struct Adapter {
    at::Tensor up, down;  // [d0, rank], [rank, d1]
    at::Tensor difference() const { return at::matmul(up, down); }
  };
  at::Tensor adapted(graph::ValueId id, const at::Tensor& weight) const;

  std::map<graph::ValueId, Adapter> adapters_;
  Ranges ranges_ = Ranges::fixed;
  std::map<graph::ValueId, std::size_t> range_of_;  // parameter: the scale of a noted value, when ranges are trained
  std::vector<graph::ValueId> watch_;
  std::vector<at::Tensor> watched_;
  bool watches_probabilities_ = false, autocasts_ = false;
  at::Tensor probabilities_;              // of the last node, if it is an Attention and they are watched
  std::vector<std::size_t> checkpoints_;  // places of the order, ascending
  Ranks* norm_ranks_ = nullptr;
  std::vector<Plan> plans_;
};

}  // namespace ctk::train

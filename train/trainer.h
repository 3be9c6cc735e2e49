// The trainer, seen from outside: graphs in, trained graphs out. What stands behind it is LibTorch, which lives in a
// module of its own (train/torch, libctk_train.so) that load_trainer() opens; nothing of it is seen here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ranks.h"
#include "core/result.h"
#include "core/tensor.h"
#include "graph/graph.h"

namespace ctk::train {

enum class Optimizer { sgd, adam, adamw };
enum class Schedule { cosine, step, constant };

// Losses. z: logits of the student, t: of the teacher, y: labels; sums run over classes, means over rows (samples, or
// the tokens that have a label or, without labels, all of them).
//   hard: mean of cross entropy of softmax(z) to y, smoothed: (1 - s) of the mass on y, s spread over all classes.
//   soft: T^2 * mean of KL(softmax(t / T) || softmax(z / T)).
// With teacher and labels: alpha * soft + (1 - alpha) * hard; with one of them, that one alone.
struct LossOptions {
  double temperature = 4, alpha = 0.9;
  double label_smoothing = 0;
  // Added: feature_weight * mean over the task's pairs of features of
  //   mse: squared difference of student (through a learned linear map over channels where these differ in number) and
  //     teacher, over the teacher's mean square;
  //   attention: of maps a = mean over channels of squares, a / |a| a sample, the squared difference summed over
  //   places.
  //   probabilities: of the weights P that an Attention or a Softmax gives to keys, KL(P teacher || P student), mean
  //   over queries and heads; heads are averaged where these differ in number.
  double feature_weight = 1;
  bool feature_attention = false, feature_probabilities = false;
};

// Ranges of activations in a network of codes. Zero points stay.
//   fixed: as calibrated. learned: their scales are trained by what rounding and clipping cost (Esser et al., LSQ,
//   2020). clipped: by what lies outside alone (Choi et al., PACT, 2018, without its decay).
enum class Ranges { fixed, learned, clipped };

struct FitOptions {
  LossOptions loss;
  Optimizer optimizer = Optimizer::sgd;
  double momentum = 0.9;    // of sgd, as Nesterov's; adam uses 0.9 and 0.999
  double weight_decay = 0;  // of weights with two dimensions or more; adam adds it to the gradient, adamw decouples it
  double learning_rate = 0.02;
  Schedule schedule = Schedule::cosine;  // cosine: down to 0 at the end; step: times 0.1 after 1/2 and 3/4 of the steps
  double warmup = 0;                     // share of the steps in which the rate rises linearly from 0
  double clip_norm = 0;                  // of the whole gradient; 0: none
  std::int64_t epochs = 1, batch_size = 128;
  std::int64_t accumulate = 1;  // batches whose gradients are averaged for one step
  double ema = 0;               // decay of a moving average of the parameters, which is then what is kept; 0: none
  std::int64_t patience = 0;    // epochs without a better score after which training ends; 0: never
  // A convolution whose own normalization was folded away trains badly: give each one a batch normalization that starts
  // as the identity, and fold it back at the end.
  bool batch_norm = true;
  Ranges ranges = Ranges::fixed;
  // Instead of all parameters, for each matrix W of a product a low-rank difference of this rank is trained, U V with
  // U [d0, rank] from 0 and V [rank, d1] drawn with variance 1 / d1, and added to W at the end (in front of rounding
  // where it has codes). 0: everything is trained. Source: Hu et al., LoRA, 2021.
  std::int64_t lora_rank = 0;
  // Products and convolutions of the way forth in bfloat16 with sums in float32; everything between them, parameters
  // and the loss stay float32.
  bool autocast = false;
  // Of what lies between two places to which the network narrows only the first value is kept; the rest is computed
  // again on the way back, to the same bits. Not beside batch normalizations.
  bool checkpoint_blocks = false;
  std::uint64_t seed = 0;
  int threads = 1;
  std::int64_t save_every = 200;  // steps between two saved states
};

// Samples to train on. Answers depend on the arguments only, so that a resumed run sees what a straight one does.
class Feed {
 public:
  struct Batch {
    std::vector<Tensor> inputs;        // one per graph input, [B, ...]
    std::vector<std::int64_t> labels;  // one a row of the first output; below 0: row not counted; empty: none
    // Of samples mixed out of two: the labels of the second ones, whose share of the hard loss is 1 - share. Empty:
    // none.
    std::vector<std::int64_t> other_labels = {};
    double share = 1;
    // What a teacher that is not there said, [rows, classes], as logits; undefined: nothing was recorded.
    Tensor teacher = {};
  };
  virtual ~Feed() = default;
  virtual std::size_t count() const = 0;
  // Whether a sample comes out otherwise beside other ones: ranks then read whole batches and take their share.
  virtual bool mixes() const { return false; }
  // Samples by index, in this order, with the random changes of this epoch.
  virtual Result<Batch> read(std::span<const std::size_t> samples, std::int64_t epoch) = 0;
};

struct Progress {
  std::int64_t epoch = 0, step = 0, steps = 0;  // epoch from 0; steps done and in all
  double loss = 0;                              // mean since the epoch began
  double learning_rate = 0;
};

struct EpochRow {
  double loss = 0;   // mean over the epoch's batches
  double score = 0;  // of the state after it; 0 without a score function
  double seconds = 0;
};

// Values [batch, channels, places...], or [batch, tokens, channels], [batch, channels]; both of the same batch and
// places.
struct FeaturePair {
  graph::ValueId student, teacher;
};

struct FitTask {
  const graph::Graph* student = nullptr;
  // Of a student with codes: the network it was quantized from, whose weights are where training starts as far as they
  // round to the student's codes. Scales are trained along, zero points and the ranges of activations are kept.
  const graph::Graph* floats = nullptr;
  const graph::Graph* teacher = nullptr;  // same inputs and first output; null: labels only
  Feed* feed = nullptr;
  FitOptions options;
  // How good a state is, higher is better; the best one is the result, the start among them. Empty: the last one is.
  std::function<Result<double>(const graph::Graph&)> score = {};
  // After every step. An error (interrupted) ends the work, with the state saved.
  std::function<Status(const Progress&)> on_step = {};
  // Keeps a state that `resume` brings back. Empty: none are kept.
  std::function<Status(const std::string&)> save = {};
  std::string resume = {};                 // a state saved by the same task; empty: from the start
  std::vector<FeaturePair> features = {};  // with a teacher; tokens without a label do not count
  // Those that train together, each a share of every batch; null: this process alone. All are given the same task;
  // score and save are called on rank 0.
  Ranks* ranks = nullptr;
};

struct FitResult {
  graph::Graph graph;  // the student with other constants
  std::vector<EpochRow> epochs;
  double score_before = 0, score = 0;
  std::int64_t best_epoch = -1;  // -1: the start was never beaten
};

// Rounding of one block's weights. Codes move by one step at most, scales by a quarter, so that the block's outputs
// come near `targets`: least sum of squared differences over the batches that are not held out.
struct BlockTask {
  const graph::Graph* block = nullptr;   // with codes and notes; inputs need no types of their own
  const graph::Graph* floats = nullptr;  // weights the codes were made of, by name; may be null
  std::vector<std::string> weights;      // values with integer codes that may move; others stay
  // [batch][input], as graph::Executor::run() takes them, and [batch][which of `compared`], float32.
  std::vector<std::vector<Tensor>> inputs, targets;
  std::vector<std::size_t> compared;  // outputs of the block that have targets
  std::size_t held_out = 0;           // the last so many batches are judged on and not trained on; 0: all are both
  std::size_t per_step = 1;           // batches a step sees
  std::int64_t steps = 200;
  std::uint64_t seed = 0;
  int threads = 1;
  std::function<Status(std::int64_t step)> on_step = {};
};

struct BlockResult {
  graph::Graph block;  // the state that was best on held-out batches, the start among them
  // Squared error of the outputs over the targets' own squares, on held-out batches.
  double error_before = 0, error = 0;
  std::int64_t best_step = 0;  // 0: the start was never beaten
};

// One graph made differentiable, for checks. Inputs as graph::Executor::run() takes them.
class Differentiable {
 public:
  virtual ~Differentiable() = default;
  virtual Result<std::vector<Tensor>> forward(std::span<const Tensor> inputs) = 0;
  // Of sum(first output * weights), by the name of each trained constant.
  virtual Result<std::vector<std::pair<std::string, Tensor>>> gradients(std::span<const Tensor> inputs,
                                                                        const Tensor& weights) = 0;
  // The graph with its parameters as they are: without a step, bit for bit the one that came in.
  virtual Result<graph::Graph> graph() const = 0;
};

// How an operator is made differentiable; without `is_differentiable` it runs by its own evaluation and passes no
// gradient, for the reason given.
struct OpSupport {
  graph::Op op = graph::Op::unknown;
  bool is_differentiable = false;
  std::string_view reason;
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  virtual std::string about() const = 0;  // "LibTorch 2.13.0"
  virtual std::span<const OpSupport> ops() const = 0;
  // The process group of torch.distributed with this name, as Python made it (Gloo: bytes and floats of main memory).
  // `here`: its ranks on this machine. Errors: config (no such group).
  virtual Result<std::unique_ptr<Ranks>> join(const std::string& group, int here) = 0;
  // Errors: input (an operator that is not known, coded weights).
  virtual Result<std::unique_ptr<Differentiable>> differentiable(const graph::Graph& graph, int threads) = 0;
  // The loss of one batch and its gradient by `logits` [rows, classes]; teacher and labels may be empty, not both.
  // Errors: as fit().
  virtual Result<std::pair<double, Tensor>> loss(const Tensor& logits, const Tensor& teacher,
                                                 std::span<const std::int64_t> labels, const LossOptions& options) = 0;
  // Errors: config (numbers that make no sense; a loss that is no number: names epoch, step and learning rate), input
  // (graphs that do not fit each other or the labels, too few samples), and those of the task's functions.
  virtual Result<FitResult> fit(const FitTask& task) = 0;
  // Errors: input (nothing to move, sizes that do not fit, values that are no numbers), and those of on_step.
  virtual Result<BlockResult> tune_block(const BlockTask& task) = 0;
};

}  // namespace ctk::train

#include "train/torch/tune_block.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "core/random.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_graph.h"

namespace ctk::train {
namespace {

constexpr double kOffset = 0.499;      // of a step of the grid, either way
constexpr double kScaleChange = 0.25;  // share by which a scale may leave where it started
constexpr double kScaleRate = 0.25;    // of the offsets' rate
constexpr std::int64_t kLooks = 4;     // at held-out batches

// A tensor that moves by signs: the size of 1 for each element, and how far it may get from its start.
struct Moved {
  at::Tensor value, start, unit;
  double rate = 1, bound = 0;
};

class Tuner {
 public:
  explicit Tuner(const BlockTask& task) : task_(task) {}

  Result<BlockResult> run() {
    CTK_CHECK(prepare());
    BlockResult result;
    CTK_TRY(result.error_before, judge());
    result.error = result.error_before;
    std::vector<at::Tensor> best = snapshot();
    for (std::int64_t step = 0; step < task_.steps; ++step) {
      for (std::size_t i = 0; i < task_.per_step; ++i) CTK_CHECK(add_gradient(next_batch()));
      move(1.0 - static_cast<double>(step) / static_cast<double>(task_.steps));
      if (task_.on_step) CTK_CHECK(task_.on_step(step + 1));
      const bool looks = (step + 1) * kLooks / task_.steps > step * kLooks / task_.steps;
      if (!looks) continue;
      CTK_TRY(const double error, judge());
      if (!(error < result.error)) continue;
      result.error = error;
      result.best_step = step + 1;
      best = snapshot();
    }
    {
      const at::NoGradGuard no_gradient;
      for (std::size_t i = 0; i < moved_.size(); ++i) moved_[i].value.copy_(best[i]);
    }
    CTK_TRY(result.block, net_->graph());
    return result;
  }

 private:
  Status prepare() {
    if (task_.inputs.empty() || task_.inputs.size() != task_.targets.size() || task_.held_out >= task_.inputs.size()) {
      return input_error("block: expected targets for each of its batches and one batch at least to train on, found " +
                         std::to_string(task_.inputs.size()) + " batches, " + std::to_string(task_.targets.size()) +
                         " of targets, " + std::to_string(task_.held_out) + " held out. Give more samples");
    }
    CTK_TRY(net_, TorchGraph::create(*task_.block, true, task_.floats));
    for (Parameter& parameter : net_->parameters()) parameter.value.requires_grad_(false);
    for (const auto& [id, weight] : net_->coded()) {
      const std::string& name = task_.block->value(id).name;
      if (!weight.scales.defined() || std::ranges::count(task_.weights, name) == 0) continue;
      const at::Tensor steps = weight.steps().detach();
      moved_.push_back({weight.weight, weight.weight.detach().clone(), steps, 1, kOffset});
      const at::Tensor scales = weight.scales.detach().clone();
      moved_.push_back({weight.scales, scales, scales.abs(), kScaleRate, kScaleChange});
    }
    if (moved_.empty()) {
      return input_error("block: expected weights with integer codes to tune, found none. Leave it as it is");
    }
    for (Moved& moved : moved_) moved.value.requires_grad_(true);
    const double count = static_cast<double>(task_.steps);
    for (Moved& moved : moved_) moved.rate /= count;
    return {};
  }

  Result<std::vector<at::Tensor>> outputs(std::size_t batch) {
    std::vector<at::Tensor> inputs;
    for (const Tensor& input : task_.inputs[batch]) inputs.push_back(to_torch(input));
    CTK_TRY(const Outputs all, net_->run(inputs, false));
    std::vector<at::Tensor> compared;
    for (std::size_t i = 0; i < task_.compared.size(); ++i) {
      const at::Tensor& output = all.at(task_.compared[i]);
      const Shape& shape = task_.targets[batch].at(i).shape();
      if (output.sizes() != at::IntArrayRef(shape.data(), shape.size())) {
        return input_error("block: expected outputs of the targets' shape " + to_string(shape) +
                           ", found another. Give inputs and targets of the same samples");
      }
      compared.push_back(output);
    }
    return compared;
  }

  // Every trained batch once a round, in an order of its own.
  std::size_t next_batch() {
    const std::size_t trained = task_.inputs.size() - task_.held_out, at = seen_ % trained;
    if (at == 0) order_ = Random(task_.seed, "blocks, round " + std::to_string(seen_ / trained)).permutation(trained);
    ++seen_;
    return order_[at];
  }

  Status add_gradient(std::size_t batch) {
    CTK_TRY(const std::vector<at::Tensor> found, outputs(batch));
    at::Tensor loss;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const at::Tensor one = (found[i] - as_torch(task_.targets[batch][i])).square().sum();
      loss = loss.defined() ? loss + one : one;
    }
    const double value = loss.item().toDouble();
    if (!std::isfinite(value)) {
      return input_error("block: expected outputs that are numbers, found a loss of \"" + std::to_string(value) +
                         "\". Look for NaN in the calibration samples");
    }
    loss.backward();
    return {};
  }

  void move(double share) {
    const at::NoGradGuard no_gradient;
    for (Moved& moved : moved_) {
      const at::Tensor gradient = moved.value.grad();
      if (!gradient.defined()) continue;
      const at::Tensor next = moved.value - at::sign(gradient) * moved.unit * (moved.rate * share);
      const at::Tensor away = moved.unit * moved.bound;
      moved.value.copy_(at::minimum(at::maximum(next, moved.start - away), moved.start + away));
      moved.value.mutable_grad() = at::Tensor();
    }
  }

  Result<double> judge() {
    const at::NoGradGuard no_gradient;
    double error = 0, energy = 0;
    const std::size_t first = task_.held_out == 0 ? 0 : task_.inputs.size() - task_.held_out;
    for (std::size_t batch = first; batch < task_.inputs.size(); ++batch) {
      CTK_TRY(const std::vector<at::Tensor> found, outputs(batch));
      for (std::size_t i = 0; i < found.size(); ++i) {
        const at::Tensor target = as_torch(task_.targets[batch][i]);
        error += (found[i] - target).to(at::kDouble).square().sum().item().toDouble();
        energy += target.to(at::kDouble).square().sum().item().toDouble();
      }
    }
    return energy > 0 ? error / energy : error;
  }

  std::vector<at::Tensor> snapshot() const {
    std::vector<at::Tensor> all;
    for (const Moved& moved : moved_) all.push_back(moved.value.detach().clone());
    return all;
  }

  const BlockTask& task_;
  std::unique_ptr<TorchGraph> net_;
  std::vector<Moved> moved_;
  std::size_t seen_ = 0;
  std::vector<std::size_t> order_;
};

}  // namespace

Result<BlockResult> tune_block(const BlockTask& task) {
  return Tuner(task).run();
}

}  // namespace ctk::train

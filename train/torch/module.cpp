// The module's one entry, and the trainer behind it. LibTorch's exceptions end here.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <torch/headeronly/version.h>

#include "train/torch/fit.h"
#include "train/torch/group.h"
#include "train/torch/held_memory.h"
#include "train/torch/losses.h"
#include "train/torch/shared_norm.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_graph.h"
#include "train/torch/tune_block.h"
#include "train/trainer_loader.h"

namespace ctk::train {
namespace {

// Runs `work`, whose errors may be exceptions of ATen's.
template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const c10::Error& error) {
    return input_error(std::string("LibTorch: ") + error.what_without_backtrace());
  } catch (const RanksError& failed) {
    return failed.error;
  } catch (const std::exception& error) {
    return internal_error(std::string("LibTorch: ") + error.what());
  }
}

std::vector<at::Tensor> to_torch_all(std::span<const Tensor> tensors) {
  std::vector<at::Tensor> all;
  for (const Tensor& tensor : tensors) all.push_back(to_torch(tensor));
  return all;
}

class TorchDifferentiable final : public Differentiable {
 public:
  TorchDifferentiable(std::unique_ptr<TorchGraph> net, int threads) : net_(std::move(net)), threads_(threads) {}

  Result<std::vector<Tensor>> forward(std::span<const Tensor> inputs) override {
    return guarded([&]() -> Result<std::vector<Tensor>> {
      at::set_num_threads(threads_);
      const at::NoGradGuard no_gradient;
      CTK_TRY(const Outputs outputs, net_->run(to_torch_all(inputs), false));
      std::vector<Tensor> results;
      for (const at::Tensor& output : outputs) {
        CTK_TRY(Tensor result, from_torch(output));
        results.push_back(std::move(result));
      }
      return results;
    });
  }

  Result<std::vector<std::pair<std::string, Tensor>>> gradients(std::span<const Tensor> inputs,
                                                                const Tensor& weights) override {
    return guarded([&]() -> Result<std::vector<std::pair<std::string, Tensor>>> {
      at::set_num_threads(threads_);
      CTK_TRY(const Outputs outputs, net_->run(to_torch_all(inputs), false));
      (outputs[0] * as_torch(weights)).sum().backward();
      std::vector<std::pair<std::string, Tensor>> results;
      for (Parameter& parameter : net_->parameters()) {
        const at::Tensor& gradient = parameter.value.grad();
        CTK_TRY(Tensor result, from_torch(gradient.defined() ? gradient : at::zeros_like(parameter.value)));
        results.emplace_back(parameter.name, std::move(result));
        parameter.value.mutable_grad() = at::Tensor();
      }
      return results;
    });
  }

  Result<graph::Graph> graph() const override {
    return guarded([&] { return net_->graph(); });
  }

 private:
  std::unique_ptr<TorchGraph> net_;
  int threads_;
};

class TorchTrainer final : public Trainer {
 public:
  std::string about() const override { return std::string("LibTorch ") + TORCH_VERSION; }
  std::span<const OpSupport> ops() const override { return torch_support(); }
  Result<std::unique_ptr<Ranks>> join(const std::string& group, int here) override {
    return guarded([&] { return join_group(group, here); });
  }

  Result<std::unique_ptr<Differentiable>> differentiable(const graph::Graph& graph, int threads) override {
    return guarded([&]() -> Result<std::unique_ptr<Differentiable>> {
      CTK_TRY(auto net, TorchGraph::create(graph, true));
      return std::unique_ptr<Differentiable>(new TorchDifferentiable(std::move(net), threads));
    });
  }

  Result<std::pair<double, Tensor>> loss(const Tensor& logits, const Tensor& teacher,
                                         std::span<const std::int64_t> labels, const LossOptions& options) override {
    return guarded([&]() -> Result<std::pair<double, Tensor>> {
      const at::Tensor z = to_torch(logits).requires_grad_(true);
      const at::Tensor t = teacher.is_defined() ? to_torch(teacher) : at::Tensor();
      const at::Tensor y = labels.empty() ? at::Tensor() : at::tensor(at::IntArrayRef(labels.data(), labels.size()));
      CTK_CHECK(check_loss(z, t, y, options));
      const at::Tensor value = loss_of(z, t, y, options);
      value.backward();
      CTK_TRY(Tensor gradient, from_torch(z.grad()));
      return std::pair(value.item().toDouble(), std::move(gradient));
    });
  }

  Result<FitResult> fit(const FitTask& task) override {
    return guarded([&] {
      at::set_num_threads(task.options.threads);
      const HeldMemory held(task.options.checkpoint_blocks);
      return train::fit(task);
    });
  }

  Result<BlockResult> tune_block(const BlockTask& task) override {
    return guarded([&] {
      at::set_num_threads(task.threads);
      const HeldMemory held(false);
      return train::tune_block(task);
    });
  }
};

}  // namespace
}  // namespace ctk::train

extern "C" __attribute__((visibility("default"))) ctk::train::Trainer* ctk_train_open(int version) {
  static ctk::train::TorchTrainer trainer;
  return version == ctk::train::kTrainerVersion ? &trainer : nullptr;
}

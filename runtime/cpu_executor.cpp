#include "runtime/cpu_executor.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"

namespace ctk::runtime {

using graph::Graph;

// A plan with memory behind it.
struct CpuExecutor::Prepared {
  std::vector<Shape> shapes;
  int threads = 1;
  Plan plan;
  std::shared_ptr<void> arena, scratch;
  std::vector<void*> slots;
  RunContext context;
  std::vector<Tensor> inputs;  // of the last run
};

CpuExecutor::CpuExecutor(const Graph& graph, ExecutorOptions options) : graph_(graph), options_(std::move(options)) {
  if (options_.packed == nullptr) options_.packed = std::make_shared<PackedWeights>();
}

CpuExecutor::~CpuExecutor() = default;

Result<std::unique_ptr<CpuExecutor>> CpuExecutor::create(const Graph& graph, std::vector<Shape> input_shapes,
                                                         ExecutorOptions options) {
  std::unique_ptr<CpuExecutor> executor(new CpuExecutor(graph, std::move(options)));
  CTK_TRY(executor->current_, executor->prepare(input_shapes));
  return executor;
}

Result<CpuExecutor::Prepared*> CpuExecutor::prepare(std::span<const Shape> shapes) {
  for (const auto& known : prepared_) {
    if (std::equal(shapes.begin(), shapes.end(), known->shapes.begin(), known->shapes.end()) &&
        known->threads >= threads()) {
      return known.get();
    }
  }
  auto made = std::make_unique<Prepared>();
  made->shapes.assign(shapes.begin(), shapes.end());
  made->threads = threads();
  PlanOptions options;
  options.input_shapes = made->shapes;
  options.keep = options_.keep;
  options.fuse = options_.fuse;
  options.threads = made->threads;
  options.packed = options_.packed;
  options.caches = options_.caches;
  options.npu = options_.npu;
  CTK_TRY(made->plan, make_plan(graph_, options));
  Plan& plan = made->plan;
  made->arena = allocate_aligned(plan.memory.arena_bytes);
  made->scratch = allocate_aligned(plan.scratch_bytes);
  if (made->arena == nullptr || made->scratch == nullptr) {
    return input_error("out of memory: the activations need " + std::to_string(plan.memory.arena_bytes) + " bytes");
  }
  std::memset(made->arena.get(), 0, plan.memory.arena_bytes);  // touched now, not in the first run
  made->slots.resize(plan.slots.size());
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    made->slots[i] = plan.slots[i].is_constant ? const_cast<void*>(plan.slots[i].constant.data())
                                               : static_cast<std::byte*>(made->arena.get()) + plan.slot_offsets[i];
  }
  made->context = {made->slots.data(), static_cast<std::byte*>(made->scratch.get())};
  // A second batch size is common (the short last batch); more would only hold memory.
  if (prepared_.size() >= 2) prepared_.erase(prepared_.begin() + (prepared_[0].get() == current_ ? 1 : 0));
  prepared_.push_back(std::move(made));
  return prepared_.back().get();
}

Status CpuExecutor::run_steps() {
  for (const auto& step : current_->plan.steps) CTK_CHECK(step->run(current_->context));
  return {};
}

void CpuExecutor::restore_inputs() {
  const Plan& plan = current_->plan;
  for (std::size_t i = 0; i < plan.input_slots.size(); ++i) {
    const auto slot = static_cast<std::size_t>(plan.input_slots[i]);
    if (plan.slots[slot].bytes == 0) continue;
    if (i < current_->inputs.size()) {
      std::memcpy(current_->slots[slot], current_->inputs[i].data(), current_->inputs[i].bytes());
    } else {
      std::memset(current_->slots[slot], 0, plan.slots[slot].bytes);
    }
  }
}

Result<std::vector<Tensor>> CpuExecutor::run(std::span<const Tensor> inputs) {
  return run_observed(inputs, {});
}

Result<std::vector<Tensor>> CpuExecutor::run_observed(std::span<const Tensor> inputs,
                                                      const graph::ValueObserver& observer) {
  if (inputs.size() != graph_.inputs().size()) {
    return input_error("expected " + std::to_string(graph_.inputs().size()) + " inputs, found " +
                       std::to_string(inputs.size()) + ". Give one array for each input of the model");
  }
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const graph::Value& value = graph_.value(graph_.inputs()[i]);
    if (inputs[i].dtype() != value.dtype) {
      return input_error("input \"" + value.name + "\": expected " + std::string(name_of(value.dtype)) + ", found " +
                         std::string(name_of(inputs[i].dtype())) + ". Convert the array");
    }
    shapes.push_back(inputs[i].shape());
  }
  CTK_TRY(current_, prepare(shapes));
  const Plan& plan = current_->plan;
  current_->inputs.assign(inputs.begin(), inputs.end());
  restore_inputs();
  std::size_t next_kept = 0;
  const auto show = [&](std::size_t done_steps) -> Status {
    for (; next_kept < plan.kept.size() && plan.kept[next_kept].after_step < done_steps; ++next_kept) {
      const KeptValue& kept = plan.kept[next_kept];
      if (!observer) continue;
      const TensorView data{DType::f32, kept.shape, current_->slots[static_cast<std::size_t>(kept.slot)]};
      CTK_CHECK(observer(kept.value, data, kept.channels_last));
    }
    return {};
  };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    CTK_CHECK(plan.steps[s]->run(current_->context));
    CTK_CHECK(show(s + 1));
  }
  if (plan.steps.empty()) CTK_CHECK(show(1));  // a network of nothing but its inputs
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < plan.output_slots.size(); ++i) {
    CTK_TRY(Tensor output, Tensor::zeros(plan.output_dtypes[i], plan.output_shapes[i]));
    if (output.bytes() != 0) {
      std::memcpy(output.mutable_data(), current_->slots[static_cast<std::size_t>(plan.output_slots[i])],
                  output.bytes());
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

const Plan& CpuExecutor::plan() const {
  return current_->plan;
}

const RunContext& CpuExecutor::context() const {
  return current_->context;
}

std::size_t CpuExecutor::activation_bytes() const {
  return current_->plan.memory.arena_bytes + current_->plan.scratch_bytes;
}

std::size_t CpuExecutor::packed_bytes() const {
  return current_->plan.packed_bytes;
}

}  // namespace ctk::runtime

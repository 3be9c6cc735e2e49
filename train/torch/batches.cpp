#include "train/torch/batches.h"

#include <ATen/core/grad_mode.h>

#include "core/random.h"
#include "train/torch/tensors.h"

namespace ctk::train {
namespace {

Example to_example(const Feed::Batch& batch) {
  Example example;
  for (const Tensor& input : batch.inputs) example.inputs.push_back(to_torch(input));
  if (!batch.labels.empty()) example.labels = at::tensor(batch.labels, at::kLong);
  if (!batch.other_labels.empty()) {
    example.other_labels = at::tensor(batch.other_labels, at::kLong);
    example.share = batch.share;
  }
  if (batch.teacher.is_defined()) example.teacher = to_torch(batch.teacher);
  return example;
}

}  // namespace

bool Batches::is_mine(std::size_t part) const {
  return slices_ || part % static_cast<std::size_t>(ranks_.size()) == static_cast<std::size_t>(ranks_.rank());
}

std::span<const std::size_t> Batches::samples(std::int64_t epoch, std::size_t first, std::size_t count) {
  if (epoch != ordered_epoch_) {
    Random random(seed_, "order of epoch " + std::to_string(epoch));
    order_ = random.permutation(feed_.count());
    ordered_epoch_ = epoch;
  }
  return std::span(order_).subspan(first, count);
}

Result<Example> Batches::read_whole(std::int64_t epoch, std::size_t first) {
  CTK_TRY(const Feed::Batch batch, feed_.read(samples(epoch, first, part_), epoch));
  return to_example(batch);
}

Result<Example> Batches::read(std::int64_t epoch, std::size_t first) {
  if (!slices_) return read_whole(epoch, first);
  const Share share = share_of(part_, ranks_.rank(), ranks_.size());
  const std::size_t count = share.end - share.begin;
  if (!feed_.mixes()) {
    CTK_TRY(const Feed::Batch batch, feed_.read(samples(epoch, first + share.begin, count), epoch));
    return to_example(batch);
  }
  CTK_TRY(Example example, read_whole(epoch, first));
  const auto cut = [&](at::Tensor& rows) {
    if (!rows.defined()) return;
    const std::int64_t each = rows.size(0) / static_cast<std::int64_t>(part_);
    rows = rows.narrow(0, static_cast<std::int64_t>(share.begin) * each, static_cast<std::int64_t>(count) * each);
  };
  for (at::Tensor& input : example.inputs) cut(input);
  cut(example.labels), cut(example.other_labels), cut(example.teacher);
  return example;
}

Result<double> Batches::weight_of(const Example& example) {
  if (!slices_) return 1.0;
  const auto rows = example.labels.defined() ? example.labels.ge(0).sum().item().toLong() : example.inputs[0].size(0);
  float all = static_cast<float>(rows);
  CTK_CHECK(ranks_.sum("rows of a batch", {&all, 1}));
  return all > 0 ? static_cast<double>(rows) / static_cast<double>(all) : 0.0;
}

Status share_gradients(std::vector<Parameter>& parameters, double& loss, Ranks& ranks) {
  if (ranks.is_alone()) return {};
  const at::NoGradGuard no_gradient;
  std::vector<at::Tensor> flat;
  std::vector<float> found{static_cast<float>(loss)};  // then a 1 a parameter that has a gradient
  for (const Parameter& parameter : parameters) {
    const at::Tensor& gradient = parameter.value.grad();
    found.push_back(gradient.defined() ? 1.0f : 0.0f);
    if (!parameter.value.requires_grad()) continue;
    flat.push_back(gradient.defined() ? gradient.reshape(-1) : at::zeros({parameter.value.numel()}));
  }
  flat.push_back(at::tensor(found));
  at::Tensor all = at::cat(flat);
  CTK_CHECK(ranks.sum("gradients", {all.mutable_data_ptr<float>(), static_cast<std::size_t>(all.numel())}));
  std::int64_t at = 0, row = all.numel() - static_cast<std::int64_t>(found.size());
  loss = all[row++].item().toDouble();
  for (Parameter& parameter : parameters) {
    const bool is_found = all[row++].item().toDouble() > 0;
    if (!parameter.value.requires_grad()) continue;
    const std::int64_t count = parameter.value.numel();
    if (is_found) parameter.value.mutable_grad() = all.narrow(0, at, count).view_as(parameter.value).clone();
    at += count;
  }
  return {};
}

}  // namespace ctk::train

// Batch normalizations of a TorchGraph: those it has, and those it is given to train through.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "train/torch/shared_norm.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_graph.h"

namespace ctk::train {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

constexpr double kLeastFactor = 1e-6;  // of a norm behind codes, whose scales it multiplies

}  // namespace

void TorchGraph::add_moments(Moments& moments, const at::Tensor& output) {
  const at::Tensor x = output.to(at::kDouble);
  std::vector<std::int64_t> others;  // all dimensions but the channels'
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    if (d != 1) others.push_back(d);
  }
  if (!moments.values.defined()) moments.values = moments.squares = at::zeros({x.size(1)}, at::kDouble);
  moments.values = moments.values + x.sum(others);
  moments.squares = moments.squares + x.square().sum(others);
  moments.count += static_cast<double>(x.numel() / x.size(1));
}

at::Tensor TorchGraph::factor_of(const RenewedNorm& norm) const {
  const at::Tensor& factor = parameters_[norm.factor].value;
  return norm.is_coded ? at::clamp_min(factor, kLeastFactor) : factor;
}

at::Tensor TorchGraph::normalized(RenewedNorm& norm, const at::Tensor& x, bool is_training) {
  if (is_training && norm_ranks_ != nullptr) {
    return shared_batch_norm(x, factor_of(norm), parameters_[norm.offset].value, norm.mean, norm.variance,
                             norm_momentum_, kNormEpsilon, *norm_ranks_);
  }
  return at::batch_norm(x, factor_of(norm), parameters_[norm.offset].value, norm.mean, norm.variance, is_training,
                        norm_momentum_, kNormEpsilon, false);
}

at::Tensor TorchGraph::trained_batch_norm(const Node& node, std::span<const at::Tensor> inputs) {
  if (norm_ranks_ != nullptr) {
    return shared_batch_norm(inputs[0], inputs[1], inputs[2], statistics_.at(node.inputs[3]),
                             statistics_.at(node.inputs[4]), norm_momentum_,
                             node.attributes.get_float("epsilon", 1e-5f), *norm_ranks_);
  }
  return at::batch_norm(inputs[0], inputs[1], inputs[2], statistics_.at(node.inputs[3]), statistics_.at(node.inputs[4]),
                        true, norm_momentum_, node.attributes.get_float("epsilon", 1e-5f), false);
}

bool TorchGraph::can_renew(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.op != Op::Conv) return false;
  const auto coded = coded_.find(node.inputs[1]);
  if (coded == coded_.end() ? !by_value_.contains(node.inputs[1]) : !coded->second.has_row_scales()) return false;
  const ValueId output = node.outputs[0];
  if (graph_.is_output(output) || graph_.value(node.inputs[1]).consumers.size() != 1) return false;
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2].is_valid();
  if (has_bias && !by_value_.contains(node.inputs[2])) return false;
  return std::ranges::none_of(graph_.value(output).consumers,
                              [&](NodeId reader) { return graph_.node(reader).op == Op::BatchNormalization; });
}

Status TorchGraph::renew_norms(std::span<const std::vector<at::Tensor>> batches) {
  const at::NoGradGuard no_gradient;
  std::map<NodeId, Moments> moments;
  for (const auto& batch : batches) {
    moments_ = &moments;
    const auto done = run(batch, false);
    moments_ = nullptr;
    CTK_CHECK(done);
  }
  std::vector<std::size_t> replaced;  // biases
  for (const auto& [id, sums] : moments) {
    const Node& node = graph_.node(id);
    const at::Tensor mean = sums.values / sums.count;
    const at::Tensor variance = at::clamp_min(sums.squares / sums.count - mean.square(), 0.0);
    // A channel that hardly moves would be blown up: no less than a thousandth of the layer's own spread.
    const at::Tensor spread = at::sqrt(variance).clamp_min(at::sqrt(variance.mean()).item().toDouble() * 1e-3 + 1e-12);
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2].is_valid();
    at::Tensor bias = at::zeros_like(mean);
    if (has_bias) {
      replaced.push_back(by_value_.at(node.inputs[2]));
      bias = parameters_[replaced.back()].value.to(at::kDouble);
    }
    RenewedNorm norm;
    if (const auto coded = coded_.find(node.inputs[1]); coded != coded_.end()) {
      norm.is_coded = true;
      coded->second.divide_rows(spread);
    } else {
      norm.weight = by_value_.at(node.inputs[1]);
      at::Tensor& w = parameters_[norm.weight].value;
      w = (w.to(at::kDouble) / by_row(spread, w.dim())).to(at::kFloat).requires_grad_(true);
    }
    norm.mean = ((mean - bias) / spread).to(at::kFloat);
    norm.variance = (variance / spread.square()).to(at::kFloat);
    const at::Tensor root = at::sqrt(norm.variance.to(at::kDouble) + kNormEpsilon);
    const std::string name = graph_.address(id);
    norm.factor = add_parameter(name + " factor", (spread * root).to(at::kFloat).requires_grad_(true), false);
    norm.offset = add_parameter(name + " offset", mean.to(at::kFloat).requires_grad_(true), false);
    norms_[id] = std::move(norm);
  }
  for (std::size_t i : replaced) parameters_[i].value.requires_grad_(false);
  return {};
}

Status TorchGraph::measure_norms(std::span<const at::Tensor> batch, std::size_t seen) {
  const at::NoGradGuard no_gradient;
  norm_momentum_ = 1 / static_cast<double>(seen + 1);  // the first takes the place of what was there
  const auto done = run(batch, true);
  norm_momentum_ = kNormMomentum;
  CTK_CHECK(done);
  return {};
}

std::vector<at::Tensor> TorchGraph::buffers() const {
  std::vector<at::Tensor> all;
  for (const auto& [id, tensor] : statistics_) all.push_back(tensor);
  for (const auto& [id, norm] : norms_) {
    all.push_back(norm.mean);
    all.push_back(norm.variance);
  }
  return all;
}

}  // namespace ctk::train

#include "train/torch/shared_norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace ctk::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [channels] as [1, channels, 1, ...].
at::Tensor by_channel(const at::Tensor& values, std::int64_t dims) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dims), 1);
  shape[1] = values.size(0);
  return values.reshape(shape);
}

struct Moments {
  at::Tensor mean, variance;  // [channels] double, of all ranks; the variance is divided by the count
  double count = 0;           // elements a channel
};

// Chan et al., 1979: moments of parts as those of the whole, parts by rank.
Moments moments_of_all(const at::Tensor& x, Ranks& ranks) {
  const auto [mean, variance] = at::batch_norm_update_stats(x, {}, {}, 0.0);
  const auto channels = static_cast<std::size_t>(x.size(1));
  std::vector<double> mine(2 * channels + 1);
  const at::Tensor both = at::cat({mean, variance}).to(at::kDouble).contiguous();
  std::memcpy(mine.data(), both.const_data_ptr<double>(), 2 * channels * sizeof(double));
  mine.back() = static_cast<double>(x.numel() / x.size(1));
  auto parts =
      ranks.gather("normalization", {reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double)});
  if (!parts) throw RanksError(std::move(parts).error());
  Moments all;
  for (std::string& part : *parts) {
    const at::Tensor values = at::from_blob(part.data(), {static_cast<std::int64_t>(mine.size())}, at::kDouble);
    const double count = values[-1].item().toDouble();
    const auto width = static_cast<std::int64_t>(channels);
    const at::Tensor m = values.narrow(0, 0, width).clone(), v = values.narrow(0, width, width).clone();
    if (!all.mean.defined()) {
      all = {m, v, count};
      continue;
    }
    const double sum = all.count + count;
    const at::Tensor apart = m - all.mean;
    all.variance = (all.variance * all.count + v * count + apart.square() * (all.count * count / sum)) / sum;
    all.mean = all.mean + apart * (count / sum);
    all.count = sum;
  }
  return all;
}

struct SharedNorm : torch::autograd::Function<SharedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& factor,
                            const at::Tensor& offset, const at::Tensor& running_mean,
                            const at::Tensor& running_variance, double momentum, double epsilon, std::int64_t ranks) {
    const Moments all = moments_of_all(x, *reinterpret_cast<Ranks*>(ranks));
    const at::Tensor mean = all.mean.to(at::kFloat), variance = all.variance.to(at::kFloat);
    at::Tensor(running_mean).mul_(1 - momentum).add_(mean, momentum);
    at::Tensor(running_variance)
        .mul_(1 - momentum)
        .add_(variance, momentum * all.count / std::max(1.0, all.count - 1));  // as ATen's, without bias
    context->save_for_backward({x, factor, mean, variance});
    context->saved_data["count"] = all.count;
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["ranks"] = ranks;
    return at::batch_norm(x, factor, offset, mean, variance, false, 0.0, epsilon, false);
  }

  // s = 1 / sqrt(variance + epsilon), y^ = (x - mean) s: dx = factor s (dy - mean(dy) - y^ mean(dy y^)), means over
  // all ranks.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &factor = saved[1], &mean = saved[2], &variance = saved[3];
    const at::Tensor& dy = gradients[0];
    const double count = context->saved_data["count"].toDouble(), epsilon = context->saved_data["epsilon"].toDouble();
    auto& ranks = *reinterpret_cast<Ranks*>(context->saved_data["ranks"].toInt());
    const auto local =
        at::native_batch_norm_backward(dy, x, factor, mean, variance, {}, {}, false, epsilon, {false, true, true});
    const at::Tensor d_factor = std::get<1>(local), d_offset = std::get<2>(local);
    at::Tensor sums = at::cat({d_factor, d_offset}).contiguous();
    const Status status = ranks.sum("normalization back",
                                    std::span(sums.mutable_data_ptr<float>(), static_cast<std::size_t>(sums.numel())));
    if (!status) throw RanksError(status.error());
    const std::int64_t channels = factor.size(0);
    const at::Tensor s = at::rsqrt(variance + epsilon);
    const at::Tensor a = factor * s;
    const at::Tensor b = -a * s * sums.narrow(0, 0, channels) / count;
    const at::Tensor c = -a * sums.narrow(0, channels, channels) / count - b * mean;
    at::Tensor dx = at::mul(x, by_channel(b, x.dim())).add_(by_channel(c, x.dim()));
    dx.addcmul_(dy, by_channel(a, x.dim()));
    const at::Tensor none;
    return {dx, d_factor, d_offset, none, none, none, none, none};
  }
};

}  // namespace

at::Tensor shared_batch_norm(const at::Tensor& x, const at::Tensor& factor, const at::Tensor& offset,
                             const at::Tensor& mean, const at::Tensor& variance, double momentum, double epsilon,
                             Ranks& ranks) {
  return SharedNorm::apply(x, factor, offset, mean, variance, momentum, epsilon,
                           reinterpret_cast<std::int64_t>(&ranks));
}

}  // namespace ctk::train

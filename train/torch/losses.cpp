#include "train/torch/losses.h"

#include <cmath>

namespace ctk::train {
namespace {

at::Tensor soft_loss(const at::Tensor& logits, const at::Tensor& teacher, double temperature) {
  const at::Tensor student = at::log_softmax(logits / temperature, 1);
  const at::Tensor target = at::log_softmax(teacher / temperature, 1);
  return at::kl_div(student, target, at::Reduction::Sum, true) *
         (temperature * temperature / static_cast<double>(logits.size(0)));
}

std::string text(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%g", value);
  return digits;
}

}  // namespace

at::Tensor rows_of(const at::Tensor& output) {
  if (output.dim() <= 2) return output;
  if (output.dim() == 3) return output.reshape({-1, output.size(2)});
  return output.movedim(1, -1).reshape({-1, output.size(1)});
}

at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& teacher, const at::Tensor& labels,
                   const LossOptions& options, const at::Tensor& other_labels, double share) {
  at::Tensor z = logits, t = teacher, y = labels, other = other_labels;
  if (y.defined() && y.lt(0).any().item().toBool()) {
    const at::Tensor counted = at::nonzero(y.ge(0)).reshape(-1);
    z = z.index_select(0, counted);
    y = y.index_select(0, counted);
    if (other.defined()) other = other.index_select(0, counted);
    if (t.defined()) t = t.index_select(0, counted);
  }
  if (z.size(0) == 0) return logits.sum() * 0;
  const auto towards = [&](const at::Tensor& classes) {
    return at::cross_entropy_loss(z, classes, {}, at::Reduction::Mean, -100, options.label_smoothing);
  };
  const auto hard = [&] { return other.defined() ? share * towards(y) + (1 - share) * towards(other) : towards(y); };
  if (!t.defined()) return hard();
  const at::Tensor soft = soft_loss(z, t, options.temperature);
  if (!y.defined()) return soft;
  return options.alpha * soft + (1 - options.alpha) * hard();
}

Status check_loss(const at::Tensor& logits, const at::Tensor& teacher, const at::Tensor& labels,
                  const LossOptions& options) {
  if (!teacher.defined() && !labels.defined()) {
    return config_error(
        "expected labels or a teacher to learn from, found neither. Give data.train `labels:`, or a "
        "`teacher:`");
  }
  if (!(options.temperature > 0) || !std::isfinite(options.temperature)) {
    return config_error("temperature: expected a number above 0, found \"" + text(options.temperature) +
                        "\". The usual is 4");
  }
  if (!(options.alpha >= 0 && options.alpha <= 1)) {
    return config_error("alpha: expected a number from 0 to 1, found \"" + text(options.alpha) +
                        "\". The usual is 0.9");
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    return config_error("label_smoothing: expected a number from 0 to below 1, found \"" +
                        text(options.label_smoothing) + "\". The usual is 0.1");
  }
  if (logits.dim() != 2 || logits.scalar_type() != at::kFloat) {
    return input_error("expected logits [samples, classes] as the student's first output, found " +
                       std::to_string(logits.dim()) + " dimensions. Train networks that classify");
  }
  if (teacher.defined() && teacher.sizes() != logits.sizes()) {
    if (teacher.dim() == 2 && teacher.size(1) != logits.size(1)) {
      return input_error("teacher: expected the student's " + std::to_string(logits.size(1)) + " classes, found " +
                         std::to_string(teacher.size(1)) + ". Give a teacher of the same classes in the same order");
    }
    return input_error("teacher: expected an output for each of the student's " + std::to_string(logits.size(0)) +
                       " rows, found " + std::to_string(teacher.size(0)) + ". Give a teacher of the same form");
  }
  if (!labels.defined()) return {};
  if (labels.size(0) != logits.size(0)) {
    return input_error("labels: expected one for each of the student's " + std::to_string(logits.size(0)) +
                       " rows, found " + std::to_string(labels.size(0)) + ". Give a network whose output they label");
  }
  const auto greatest = labels.size(0) == 0 ? -1 : labels.max().item().toLong();
  if (greatest >= logits.size(1)) {
    return input_error("labels: expected classes below " + std::to_string(logits.size(1)) + ", the student's, found " +
                       std::to_string(greatest) + ". Give labels that count from 0");
  }
  return {};
}

}  // namespace ctk::train

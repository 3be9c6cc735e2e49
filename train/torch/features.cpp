#include "train/torch/features.h"

#include <cmath>

#include "core/random.h"

namespace ctk::train {
namespace {

constexpr double kLeastSquare = 1e-12;  // of a teacher's feature that is all zero
constexpr double kLeastWeight = 1e-12;  // of a key, whose logarithm is taken
constexpr double kRounding = 1e-3;      // of a sum of weights that is 1

// [rows, channels], rows by batch, then place.
at::Tensor rows_by_channel(const at::Tensor& value) {
  if (value.dim() <= 3) return value.reshape({-1, value.size(-1)});
  return value.movedim(1, -1).reshape({-1, value.size(1)});
}

// Rows whose label counts; all without as many labels.
at::Tensor counted(const at::Tensor& rows, const at::Tensor& labels) {
  if (!labels.defined() || labels.size(0) != rows.size(0)) return rows;
  return rows.index_select(0, at::nonzero(labels.ge(0)).reshape(-1));
}

// [batch, places], each row of length 1.
at::Tensor attention_map(const at::Tensor& value, const at::Tensor& labels) {
  at::Tensor squares = rows_by_channel(value).square().mean(1);
  if (labels.defined() && labels.size(0) == squares.size(0)) squares = squares * labels.ge(0);
  const at::Tensor map = squares.reshape({value.size(0), -1});
  return map / at::clamp_min(at::sqrt(map.square().sum(1, true)), kLeastSquare);
}

// KL(teacher || student) of the weights of each query's keys, mean over queries and heads. A key of no weight in the
// teacher adds nothing, one of no weight in the student counts as kLeastWeight.
at::Tensor divergence(at::Tensor student, at::Tensor teacher, const at::Tensor& labels) {
  if (student.size(1) != teacher.size(1)) student = student.mean(1, true), teacher = teacher.mean(1, true);
  const at::Tensor apart =
      at::log(at::clamp_min(teacher, kLeastWeight)) - at::log(at::clamp_min(student, kLeastWeight));
  const at::Tensor queries = (teacher * apart).sum(-1);  // [batch, heads, queries]
  if (!labels.defined() || labels.size(0) != queries.size(0) * queries.size(2)) return queries.mean();
  const at::Tensor counts = labels.ge(0).reshape({queries.size(0), 1, queries.size(2)}).to(at::kFloat);
  return (queries * counts).sum() / at::clamp_min(counts.sum() * queries.size(1), 1);
}

bool is_distribution(const at::Tensor& value) {
  return value.dim() == 4 && value.ge(0).all().item().toBool() &&
         value.sum(-1).sub(1).abs().le(kRounding).logical_or(value.sum(-1).eq(0)).all().item().toBool();
}

}  // namespace

Status FeatureLoss::prepare(const std::vector<at::Tensor>& student, const std::vector<at::Tensor>& teacher,
                            std::vector<Parameter>& parameters) {
  maps_.assign(student.size(), {});
  for (std::size_t i = 0; i < student.size(); ++i) {
    const bool is_there = student[i].defined() && teacher[i].defined();
    if (kind_ == FeatureKind::probabilities) {
      if (is_there && is_distribution(student[i]) && is_distribution(teacher[i]) &&
          student[i].size(2) == teacher[i].size(2) && student[i].size(3) == teacher[i].size(3)) {
        continue;
      }
      return input_error("features: pair " + std::to_string(i + 1) +
                         ": expected outputs of Attention nodes, or of a Softmax over keys [batch, heads, queries, "
                         "keys], of as many queries and keys in student and teacher, found other values. Name such "
                         "nodes, or use feature_loss: mse");
    }
    const at::Tensor mine = is_there ? rows_by_channel(student[i]) : at::Tensor();
    const at::Tensor theirs = is_there ? rows_by_channel(teacher[i]) : at::Tensor();
    if (!is_there || student[i].size(0) != teacher[i].size(0) || mine.size(0) != theirs.size(0)) {
      return input_error(
          "features: expected values of as many samples and places in student and teacher, found other "
          "ones in pair " +
          std::to_string(i + 1) + ". Pair values of one resolution");
    }
    if (kind_ == FeatureKind::energies || mine.size(1) == theirs.size(1)) continue;
    Random random(seed_, "map of feature " + std::to_string(i));
    std::vector<float> values(static_cast<std::size_t>(mine.size(1) * theirs.size(1)));
    const double spread = 1 / std::sqrt(static_cast<double>(mine.size(1)));
    for (float& value : values) value = static_cast<float>(random.normal() * spread);
    maps_[i] = at::tensor(values, at::kFloat).reshape({theirs.size(1), mine.size(1)}).requires_grad_(true);
    parameters.push_back({"map of feature " + std::to_string(i), maps_[i], false});
  }
  return {};
}

at::Tensor FeatureLoss::loss(const std::vector<at::Tensor>& student, const std::vector<at::Tensor>& teacher,
                             const at::Tensor& labels) const {
  at::Tensor sum;
  for (std::size_t i = 0; i < student.size(); ++i) {
    at::Tensor one;
    if (kind_ == FeatureKind::probabilities) {
      one = divergence(student[i], teacher[i], labels);
    } else if (kind_ == FeatureKind::energies) {
      one = (attention_map(student[i], labels) - attention_map(teacher[i], labels)).square().sum(1).mean();
    } else {
      const at::Tensor theirs = counted(rows_by_channel(teacher[i]), labels);
      at::Tensor mine = counted(rows_by_channel(student[i]), labels);
      if (maps_[i].defined()) mine = at::linear(mine, maps_[i]);
      const at::Tensor scale = at::clamp_min(theirs.square().mean(), kLeastSquare);
      one = theirs.size(0) == 0 ? student[i].sum() * 0 : (mine - theirs).square().mean() / scale;
    }
    sum = sum.defined() ? sum + one : one;
  }
  return sum / static_cast<double>(student.size());
}

}  // namespace ctk::train

#include "data/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/parallel.h"

namespace ctk::data {
namespace {

const MetricInfo kMetrics[] = {
    {"top1", Better::higher, true, false, false, "share of samples whose largest output is the label"},
    {"top5", Better::higher, true, false, false, "share of samples whose label is among the five largest outputs"},
    {"agreement", Better::higher, false, true, false, "share of samples whose largest output is the float network's"},
    {"kl", Better::lower, false, true, false, "mean KL(float || network) of the softmax of the outputs, nats"},
    {"mse", Better::lower, false, true, false, "mean squared difference to the float network's outputs"},
    {"sqnr_db", Better::higher, false, true, false, "10 log10 of float output power over error power, dB"},
    {"perplexity", Better::lower, false, false, true, "exponential of the mean loss of each predicted token"},
    {"cosine", Better::higher, false, true, false, "mean cosine of a sample's embedding to the float network's"},
    {"spearman", Better::higher, true, false, false,
     "rank correlation of the cosines of pairs of embeddings with their scores", true},
};

// How an output tensor falls into rows of K numbers.
struct RowLayout {
  std::size_t samples = 0, rows = 0, classes = 0;  // rows: of one sample
  bool is_class_first = false;                     // [B, K, pixels] rather than [B, rows, K]
};

Result<RowLayout> layout_of(const Shape& shape) {
  if (shape.size() < 2 || elements(shape) == 0)
    return input_error("metric: expected outputs of shape [samples, classes, ...], found " + to_string(shape) +
                       ". Choose an output that has one row for each sample.");
  const auto dimension = [&](std::size_t axis) { return static_cast<std::size_t>(shape[axis]); };
  const std::size_t samples = dimension(0), all = elements(shape) / samples;
  if (shape.size() == 3) return RowLayout{samples, dimension(1), dimension(2), false};
  return RowLayout{samples, all / dimension(1), dimension(1), true};
}

// Row r of sample s, gathered into `scratch` where its numbers do not lie together.
std::span<const float> row_at(const float* data, const RowLayout& layout, std::size_t s, std::size_t r,
                              std::vector<float>& scratch) {
  const float* sample = data + s * layout.rows * layout.classes;
  if (!layout.is_class_first || layout.rows == 1) return {sample + r * layout.classes, layout.classes};
  scratch.resize(layout.classes);
  for (std::size_t k = 0; k < layout.classes; ++k) scratch[k] = sample[k * layout.rows + r];
  return scratch;
}

// How many outputs rank before the label: larger ones, and equal ones of a lower index.
std::size_t rank_of(std::span<const float> row, std::size_t label) {
  std::size_t before = 0;
  for (std::size_t k = 0; k < row.size(); ++k) before += row[k] > row[label] || (row[k] == row[label] && k < label);
  return before;
}

double squared_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double difference = static_cast<double>(a[k]) - static_cast<double>(b[k]);
    sum += difference * difference;
  }
  return sum;
}

double power(std::span<const float> row) {
  double sum = 0;
  for (float value : row) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

Status check_finite(std::span<const float> values, std::size_t per_sample, std::size_t first_sample,
                    const char* whose) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return input_error("metric: " + std::string(whose) + " output of sample " +
                         std::to_string(first_sample + i / per_sample) + ": expected finite numbers, found " +
                         std::to_string(values[i]) + " at element " + std::to_string(i % per_sample) +
                         ". Look for the layer that overflows.");
  return {};
}

double log_sum_exp(std::span<const float> row) {
  const double largest = row[arg_max(row)];
  double sum = 0;
  for (float value : row) sum += std::exp(static_cast<double>(value) - largest);
  return largest + std::log(sum);
}

// What one row adds to its sample.
struct RowValue {
  double value = 0, signal = 0, noise = 0;
};

RowValue row_value(std::string_view metric, std::span<const float> row, std::span<const float> wanted,
                   std::int64_t label) {
  RowValue out;
  const auto is_among = [&](std::size_t first) { return rank_of(row, static_cast<std::size_t>(label)) < first; };
  if (metric == "top1") out.value = is_among(1);
  if (metric == "top5") out.value = is_among(5);
  if (metric == "agreement") out.value = arg_max(row) == arg_max(wanted);
  if (metric == "kl") out.value = kl_of_rows(wanted, row);
  if (metric == "mse") out.value = squared_difference(row, wanted) / static_cast<double>(row.size());
  if (metric == "sqnr_db") {
    out.signal = power(wanted);
    out.noise = squared_difference(row, wanted);
  }
  if (metric == "perplexity" && label >= 0) {
    out.signal = log_sum_exp(row) - static_cast<double>(row[static_cast<std::size_t>(label)]);
    out.noise = 1;
  }
  return out;
}

// Rows are independent, and a vocabulary is long: they are shared out to the threads and summed in order later.
std::vector<RowValue> row_values(std::string_view metric, const float* out, const float* ref,
                                 std::span<const std::int64_t> labels, const RowLayout& layout) {
  std::vector<RowValue> values(layout.samples * layout.rows);
  const std::size_t chunk = std::max<std::size_t>(1, 65536 / layout.classes);
  parallel_for(values.size(), chunk, [&](std::size_t begin, std::size_t end) {
    std::vector<float> out_scratch, ref_scratch;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t s = i / layout.rows, r = i % layout.rows;
      const std::span<const float> row = row_at(out, layout, s, r, out_scratch);
      const std::span<const float> wanted =
          ref == nullptr ? std::span<const float>{} : row_at(ref, layout, s, r, ref_scratch);
      const std::int64_t label = labels.size() == values.size() ? labels[i] : labels.empty() ? -1 : labels[s];
      values[i] = row_value(metric, row, wanted, label);
    }
  });
  return values;
}

// Mean of a sample's rows.
std::vector<double> embedding(const float* sample, const RowLayout& layout) {
  std::vector<double> mean(layout.classes, 0.0);
  for (std::size_t r = 0; r < layout.rows; ++r) {
    for (std::size_t k = 0; k < layout.classes; ++k)
      mean[k] +=
          static_cast<double>(layout.is_class_first ? sample[k * layout.rows + r] : sample[r * layout.classes + k]);
  }
  for (double& value : mean) value /= static_cast<double>(layout.rows);
  return mean;
}

double cosine(std::span<const double> a, std::span<const double> b) {
  double both = 0, aa = 0, bb = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    both += a[k] * b[k];
    aa += a[k] * a[k];
    bb += b[k] * b[k];
  }
  if (aa == 0 || bb == 0) return aa == bb ? 1.0 : 0.0;  // two silent embeddings agree
  return both / std::sqrt(aa * bb);
}

// From 1; equal values share the mean of their ranks.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = (static_cast<double>(i + end) + 1.0) / 2.0;
    i = end;
  }
  return ranks;
}

constexpr std::int64_t kPairStep = std::int64_t{1} << 32, kZeroScore = std::int64_t{1} << 31;
constexpr double kScoreStep = 1e-4;

Status check_tokens(std::span<const std::int64_t> labels, const RowLayout& layout, std::size_t first_sample) {
  const std::size_t count = layout.samples * layout.rows;
  if (labels.size() != count || (layout.is_class_first && layout.rows > 1))
    return input_error(
        "metric perplexity: expected outputs [samples, tokens, vocabulary] and one id for each row, found " +
        std::to_string(labels.size()) + " ids for " + std::to_string(count) +
        " rows. Give text as data, and a language model.");
  for (std::size_t i = 0; i < count; ++i)
    if (labels[i] >= static_cast<std::int64_t>(layout.classes))
      return input_error("metric perplexity: expected ids 0 to " + std::to_string(layout.classes - 1) + ", found " +
                         std::to_string(labels[i]) + " in sample " + std::to_string(first_sample + i / layout.rows) +
                         ". Take the tokenizer that belongs to the model.");
  return {};
}

}  // namespace

std::int64_t pair_label(std::int64_t pair, double score) {
  return pair * kPairStep + kZeroScore + std::llround(score / kScoreStep);
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) + 1.0) / 2.0;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);  // 0 / 0 where a side has no order
}

std::span<const MetricInfo> metrics() {
  return kMetrics;
}

Result<const MetricInfo*> find_metric(std::string_view name) {
  std::string known;
  for (const MetricInfo& info : kMetrics) {
    if (info.name == name) return &info;
    known += (known.empty() ? "" : ", ") + std::string(info.name);
  }
  return config_error("metric: expected one of " + known + ", found '" + std::string(name) + "'.");
}

std::size_t arg_max(std::span<const float> row) {
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());  // the first of equal ones
}

double kl_of_rows(std::span<const float> reference, std::span<const float> output) {
  const double p_norm = log_sum_exp(reference), q_norm = log_sum_exp(output);
  double sum = 0;
  for (std::size_t k = 0; k < reference.size(); ++k) {
    const double log_p = static_cast<double>(reference[k]) - p_norm, log_q = static_cast<double>(output[k]) - q_norm;
    sum += std::exp(log_p) * (log_p - log_q);
  }
  return std::max(sum, 0.0);  // rounding may leave a little less than nothing
}

Status MetricSum::add(TensorView output, std::span<const std::int64_t> labels, TensorView reference) {
  if (output.dtype != DType::f32)
    return input_error("metric: expected f32 outputs, found " + std::string(name_of(output.dtype)) + ".");
  CTK_TRY(const RowLayout layout, layout_of(output.shape));
  const std::size_t per_sample = layout.rows * layout.classes;
  CTK_CHECK(check_finite(output.values<float>(), per_sample, count_, "the"));
  if (info_->needs_reference) {
    if (reference.dtype != DType::f32 || reference.shape != output.shape)
      return input_error("metric " + std::string(info_->name) + ": expected float outputs of shape " +
                         to_string(output.shape) + " to compare with, found " + to_string(reference.shape) + ".");
    CTK_CHECK(check_finite(reference.values<float>(), per_sample, count_, "the float network's"));
  }
  if (info_->is_of_pairs) {
    if (labels.size() != layout.samples)
      return input_error(
          "metric " + std::string(info_->name) +
          ": expected samples that come in pairs with a score, found none. Give a text with pairs: true.");
    for (std::size_t s = 0; s < layout.samples; ++s, ++count_) {
      std::vector<double> one = embedding(output.as<float>() + s * per_sample, layout);
      const auto [first, is_new] = waiting_.try_emplace(labels[s]);
      if (is_new) {
        first->second = std::move(one);
        continue;
      }
      cosines_.push_back(cosine(first->second, one));
      scores_.push_back(static_cast<double>(labels[s] % kPairStep - kZeroScore));
      waiting_.erase(first);
    }
    return {};
  }
  if (info_->name == "cosine") {
    for (std::size_t s = 0; s < layout.samples; ++s, ++count_) {
      const double value = cosine(embedding(output.as<float>() + s * per_sample, layout),
                                  embedding(reference.as<float>() + s * per_sample, layout));
      sum_ += value;
      sum_squares_ += value * value;
    }
    return {};
  }
  if (info_->needs_labels) {
    if (labels.size() != layout.samples || layout.rows != 1)
      return input_error("metric " + std::string(info_->name) +
                         ": expected one label and one row of outputs for each sample, found " +
                         std::to_string(labels.size()) + " labels and outputs " + to_string(output.shape) +
                         ". Give labels in the data source, or choose a metric that needs none.");
    for (std::size_t s = 0; s < labels.size(); ++s)
      if (labels[s] < 0 || static_cast<std::size_t>(labels[s]) >= layout.classes)
        return input_error("metric " + std::string(info_->name) + ": expected labels 0 to " +
                           std::to_string(layout.classes - 1) + ", found " + std::to_string(labels[s]) + " at sample " +
                           std::to_string(count_ + s) + ". Mend the labels, or take the model they belong to.");
  }
  if (info_->needs_tokens) CTK_CHECK(check_tokens(labels, layout, count_));
  const std::vector<RowValue> values =
      row_values(info_->name, output.as<float>(), reference.as<float>(), labels, layout);
  for (std::size_t s = 0; s < layout.samples; ++s, ++count_) {
    double value = 0, signal = 0, noise = 0;
    for (std::size_t r = 0; r < layout.rows; ++r) {
      const RowValue& row = values[s * layout.rows + r];
      value += row.value;
      signal += row.signal;
      noise += row.noise;
    }
    value /= static_cast<double>(layout.rows);
    sum_ += value;
    sum_squares_ += value * value;
    signal_ += signal;
    noise_ += noise;
    signal_signal_ += signal * signal;
    signal_noise_ += signal * noise;
    noise_noise_ += noise * noise;
  }
  return {};
}

Result<std::vector<std::int64_t>> next_tokens(const Tensor& input_ids) {
  const Shape& shape = input_ids.shape();
  if (input_ids.dtype() != DType::i64 || shape.size() != 2)
    return input_error("metric perplexity: expected input_ids as i64 [samples, tokens], found " +
                       std::string(name_of(input_ids.dtype())) + " " + to_string(shape) +
                       ". Choose a metric of classes for this model.");
  const auto ids = input_ids.values<std::int64_t>();
  const auto length = static_cast<std::size_t>(shape[1]);
  std::vector<std::int64_t> next(ids.size(), -1);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    if ((i + 1) % length != 0) next[i] = ids[i + 1];
  }
  return next;
}

Result<MetricValue> MetricSum::value() const {
  if (count_ == 0) return input_error("metric " + std::string(info_->name) + ": expected samples, found none.");
  const double n = static_cast<double>(count_);
  MetricValue result{sum_ / n, 0, count_};
  if (info_->name == "sqnr_db") {
    if (noise_ == 0) return MetricValue{std::numeric_limits<double>::infinity(), 0, count_};
    if (signal_ == 0)
      return input_error("metric sqnr_db: the float network's outputs are all 0, so there is no signal. Choose mse.");
    result.value = 10.0 * std::log10(signal_ / noise_);
    // ln(S/N) moves by s_i/S - n_i/N with sample i.
    const double relative = signal_signal_ / (signal_ * signal_) - 2.0 * signal_noise_ / (signal_ * noise_) +
                            noise_noise_ / (noise_ * noise_);
    result.standard_error = 10.0 / std::log(10.0) * std::sqrt(std::max(relative, 0.0));
    return result;
  }
  if (info_->needs_tokens) {
    if (noise_ == 0)
      return input_error("metric perplexity: expected samples of at least two tokens, found none. Give longer text.");
    const double mean = signal_ / noise_;
    // Residuals of the samples: their loss minus what the mean would give for their tokens.
    const double variance = signal_signal_ - 2.0 * mean * signal_noise_ + mean * mean * noise_noise_;
    result.value = std::exp(mean);
    result.standard_error = result.value * std::sqrt(std::max(variance, 0.0)) / noise_;
    result.count = static_cast<std::size_t>(noise_);
    return result;
  }
  if (info_->is_of_pairs) {
    result.count = cosines_.size();
    result.value = rank_correlation(cosines_, scores_);
    if (!std::isfinite(result.value))
      return input_error("metric " + std::string(info_->name) + ": expected pairs with scores that differ, found " +
                         std::to_string(cosines_.size()) + " whole pairs. Give more, both samples of each.");
    // Of a correlation r of n pairs: sqrt((1 - r^2) / (n - 2)).
    const double rest = std::max(static_cast<double>(cosines_.size()) - 2.0, 1.0);
    result.standard_error = std::sqrt((1.0 - result.value * result.value) / rest);
    return result;
  }
  result.standard_error = std::sqrt(std::max(sum_squares_ / n - result.value * result.value, 0.0) / n);
  return result;
}

Result<Drop> drop_of(double baseline, double final, Better better, bool relative) {
  if (!std::isfinite(baseline) || !std::isfinite(final))
    return input_error("metric drop: expected finite figures, found " + std::to_string(baseline) + " before and " +
                       std::to_string(final) + " after. Look for NaN in the outputs, or choose another metric.");
  const double worse = better == Better::higher ? baseline - final : final - baseline;
  if (!relative) return Drop{worse, false};
  if (baseline == 0)
    return input_error("metric drop: a relative limit has no meaning for a baseline of 0, found " +
                       std::to_string(final) + " after. Use the absolute limit.");
  const double share = worse / std::abs(baseline);
  if (!std::isfinite(share))
    return input_error("metric drop: the baseline " + std::to_string(baseline) +
                       " is too small for a relative limit. Use the absolute limit.");
  return Drop{share, true};
}

}  // namespace ctk::data

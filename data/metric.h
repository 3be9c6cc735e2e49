// Metrics: how good a network's outputs are, alone or beside those of the float network; and how much worse is too
// much.
//
// An output [B, K] is one row of K numbers per sample; [B, T, K] has T rows (tokens), [B, K, H, W] has H*W (pixels). A
// sample's value is the mean over its rows, the metric the mean over samples; sums are in double. Perplexity counts
// tokens alike, whatever sample they are in: exp(sum of losses / tokens scored). An embedding is the mean of a sample's
// rows, as sentence encoders are read (Reimers, Gurevych, EMNLP 2019).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/tensor.h"

namespace ctk::data {

enum class Better { higher, lower };

struct MetricInfo {
  std::string_view name;
  Better better;
  bool needs_labels;
  bool needs_reference;  // outputs of the float network on the same samples
  bool needs_tokens;     // labels are the token that follows each row: see next_tokens()
  std::string_view what;
  bool is_of_pairs = false;  // labels are those of pair_label(): both samples of a pair have to come
};

// Label of the two samples of a pair, scored by somebody: which pair, and the score in 1e-4.
constexpr double kMostScore = 1000;
std::int64_t pair_label(std::int64_t pair, double score);

std::span<const MetricInfo> metrics();
// Errors: config (unknown name; lists the known).
Result<const MetricInfo*> find_metric(std::string_view name);

struct MetricValue {
  double value = 0;           // sqnr_db: +infinity when nothing differs
  double standard_error = 0;  // sqrt(variance / count) over samples; sqnr_db: by the delta method
  std::size_t count = 0;      // samples; perplexity: tokens scored
};

// Collects batches, in any sizes, for one metric. The answer depends on the samples and their order only.
class MetricSum {
 public:
  explicit MetricSum(const MetricInfo& info) : info_(&info) {}
  // output, reference: f32, one shape; labels: [B], each in 0..K-1, or [B * T] of next_tokens(). What the metric does
  // not need may be empty.
  // Errors: input (shapes, label outside the classes, NaN or Inf in an output; names sample and value).
  Status add(TensorView output, std::span<const std::int64_t> labels, TensorView reference = {});
  // Errors: input (no sample was added).
  Result<MetricValue> value() const;

 private:
  const MetricInfo* info_;
  std::size_t count_ = 0;
  double sum_ = 0, sum_squares_ = 0;  // of the samples' values
  double signal_ = 0, noise_ = 0;     // sqnr_db: sums of squares; perplexity: losses and tokens
  double signal_signal_ = 0, signal_noise_ = 0, noise_noise_ = 0;
  // Of pairs: a first sample waits for its second, then the cosine of both stands beside their score.
  std::map<std::int64_t, std::vector<double>> waiting_;
  std::vector<double> cosines_, scores_;
};

// Spearman's rank correlation, ties at their mean rank. NaN for fewer than two values, or all alike on a side.
double rank_correlation(std::span<const double> a, std::span<const double> b);

// What a row of a language model's output [B, T, vocabulary] is scored against, from its input_ids [B, T]: the id that
// follows; -1 behind the last, which is not scored. Errors: input (shape or dtype other than i64 [B, T]).
Result<std::vector<std::int64_t>> next_tokens(const Tensor& input_ids);

// Index of the largest of `row`; of equal ones the lowest. Row: at least one element, no NaN.
std::size_t arg_max(std::span<const float> row);
// KL(p || q) in nats of softmax(reference) against softmax(output), one row each of the same length. Never below 0.
double kl_of_rows(std::span<const float> reference, std::span<const float> output);

// How much worse a metric became: positive is worse, negative better.
struct Drop {
  double value = 0;
  bool is_relative = false;  // share of |baseline|, else in the metric's own unit
};

// Errors: input (a figure that is not finite; baseline 0 with `relative`).
Result<Drop> drop_of(double baseline, double final, Better better, bool relative);
// True when the drop is at most `limit`. A NaN on either side is false.
inline bool is_within(const Drop& drop, double limit) {
  return drop.value <= limit;
}

}  // namespace ctk::data

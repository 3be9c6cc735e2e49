#include "train/torch/fit.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/printable.h"
#include "train/torch/batches.h"
#include "train/torch/features.h"
#include "train/torch/losses.h"
#include "train/torch/optimizer.h"
#include "train/torch/shared_norm.h"
#include "train/torch/state.h"

namespace ctk::train {
namespace {

constexpr std::size_t kLeastForNorms = 8;    // samples a batch whose statistics say something
constexpr std::size_t kNormBatches = 4;      // from which renewed norms start
constexpr std::size_t kMeasuredBatches = 8;  // that statistics of normalizations are measured on behind an epoch

std::string text(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%g", value);
  return digits;
}

Status check_options(const FitOptions& options) {
  const auto wrong = [](const std::string& key, const std::string& expected, double found) {
    return config_error(key + ": expected " + expected + ", found \"" + text(found) + "\". Correct it");
  };
  const double rate = options.learning_rate;
  if (!(rate > 0) || !std::isfinite(rate)) return wrong("learning_rate", "a number above 0", rate);
  if (options.epochs < 1) return wrong("epochs", "at least 1", static_cast<double>(options.epochs));
  if (options.batch_size < 1) return wrong("batch_size", "at least 1", static_cast<double>(options.batch_size));
  if (options.accumulate < 1) return wrong("accumulate", "at least 1", static_cast<double>(options.accumulate));
  if (!(options.momentum >= 0 && options.momentum < 1))
    return wrong("momentum", "a number from 0 to below 1", options.momentum);
  if (!(options.weight_decay >= 0) || !std::isfinite(options.weight_decay))
    return wrong("weight_decay", "0 or more", options.weight_decay);
  if (!(options.warmup >= 0 && options.warmup < 1)) return wrong("warmup", "a share from 0 to below 1", options.warmup);
  if (!(options.ema >= 0 && options.ema < 1)) return wrong("ema", "a number from 0 to below 1", options.ema);
  if (!(options.clip_norm >= 0)) return wrong("clip_norm", "0 or more", options.clip_norm);
  return {};
}

// A network of codes would be trained through roundings nobody asked for.
Status refuse_codes(const graph::Graph& graph) {
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const graph::Value& value = graph.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (value.is_removed || (!value.quantized && !value.activation_quant)) continue;
    return input_error("value \"" + printable(value.name) +
                       "\": expected a float network to train, found codes. Train before \"quantize\", or use qat");
  }
  return {};
}

class Fit {
 public:
  explicit Fit(const FitTask& task)
      : task_(task),
        options_(task.options),
        ranks_(task.ranks != nullptr ? *task.ranks : alone()),
        samples_(*task.feed, task.options.seed, ranks_) {}

  Result<FitResult> run() {
    CTK_CHECK(prepare());
    if (!task_.resume.empty()) {
      CTK_CHECK(restore());
    } else if (task_.score) {
      CTK_TRY(result_.score_before, score_of(*task_.student));
      result_.score = result_.score_before;
    }
    while (epoch_ < options_.epochs && !is_stale()) {
      CTK_CHECK(run_epoch());
      CTK_CHECK(end_epoch());
    }
    if (result_.best_epoch < 0) {
      result_.graph = task_.student->clone();
    } else {
      put(best_);
      CTK_TRY(result_.graph, student_->graph());
    }
    return std::move(result_);
  }

 private:
  Status prepare() {
    CTK_CHECK(check_options(options_));
    if (task_.feed->count() == 0) return input_error("data.train: expected samples, found none. Give some");
    // A graph of fixed batch takes so many at a time; gradients add up to those of the whole batch.
    const auto& declared = task_.student->value(task_.student->inputs()[0]).shape;
    const bool is_fixed = declared && !declared->empty() && (*declared)[0].size > 0;
    batch_ = std::min(static_cast<std::size_t>(options_.batch_size), task_.feed->count());
    part_ = is_fixed ? static_cast<std::size_t>((*declared)[0].size) : batch_;
    if (part_ > task_.feed->count()) {
      return input_error("data.train: expected at least " + std::to_string(part_) +
                         " samples, the model's fixed batch, found " + std::to_string(task_.feed->count()) +
                         ". Give more");
    }
    batch_ = std::max(part_, batch_ / part_ * part_);
    samples_.set_part(part_, is_fixed);
    if (samples_.slices() && batch_ < static_cast<std::size_t>(ranks_.size())) {
      return config_error("batch_size: expected at least " + std::to_string(ranks_.size()) +
                          ", a sample for every rank, found \"" + std::to_string(batch_) +
                          "\". Raise it, give more samples, or start fewer ranks");
    }
    batches_ = static_cast<std::int64_t>(task_.feed->count() / batch_);
    updates_ = (batches_ + options_.accumulate - 1) / options_.accumulate;
    if (task_.floats == nullptr) CTK_CHECK(refuse_codes(*task_.student));
    CTK_TRY(student_, TorchGraph::create(*task_.student, true, task_.floats, options_.ranges));
    if (student_->parameters().empty()) {
      return input_error("expected a network with weights to train, found none. Leave the stage out");
    }
    if (options_.lora_rank > 0) CTK_CHECK(student_->adapt(options_.lora_rank, options_.seed));
    if (task_.teacher != nullptr) {
      CTK_TRY(teacher_, TorchGraph::create(*task_.teacher, false));
    }
    if (teacher_ && !task_.features.empty()) {
      const bool is_of_keys = options_.loss.feature_probabilities;
      features_.emplace(is_of_keys                        ? FeatureKind::probabilities
                        : options_.loss.feature_attention ? FeatureKind::energies
                                                          : FeatureKind::values,
                        options_.seed);
      if (is_of_keys) student_->watch_probabilities(), teacher_->watch_probabilities();
      std::vector<graph::ValueId> mine, theirs;
      for (const FeaturePair& pair : task_.features) mine.push_back(pair.student), theirs.push_back(pair.teacher);
      student_->watch(std::move(mine));
      teacher_->watch(std::move(theirs));
    }
    std::vector<std::vector<at::Tensor>> first;
    for (std::size_t i = 0; i < std::min<std::size_t>(kNormBatches, task_.feed->count() / part_); ++i) {
      CTK_TRY(Example example, samples_.read_whole(0, i * part_));
      if (i == 0) CTK_CHECK(check_fit(example));
      first.push_back(std::move(example.inputs));
    }
    if (options_.batch_norm && options_.lora_rank == 0) CTK_CHECK(student_->renew_norms(first));
    if (samples_.slices()) student_->share_norms(&ranks_);
    if (!student_->buffers().empty() && part_ < kLeastForNorms && options_.batch_norm) {
      return input_error("batch normalization: expected at least " + std::to_string(kLeastForNorms) +
                         " samples a batch, found " + std::to_string(part_) + " of " +
                         std::to_string(task_.feed->count()) +
                         " in data.train. Give more, raise batch_size, or set batch_norm: false");
    }
    if (options_.autocast) student_->autocast();
    if (options_.checkpoint_blocks) CTK_CHECK(checkpoint());
    step_.emplace(student_->parameters(), options_);
    average_ = options_.ema > 0 ? snapshot() : std::vector<at::Tensor>{};
    best_ = snapshot();
    return {};
  }

  Status checkpoint() {
    const bool has_norms = options_.batch_norm && !student_->buffers().empty();
    if (!has_norms && !features_) return student_->checkpoint_blocks();
    return config_error("checkpoint_blocks: expected a training without " +
                        std::string(has_norms ? "batch normalizations, whose statistics would move twice"
                                              : "features, which keep inner values") +
                        ", found \"true\". Set it to false" + (has_norms ? ", or batch_norm: false" : ""));
  }

  // Errors that would otherwise come up deep inside a loss.
  Status check_fit(const Example& example) {
    const at::NoGradGuard no_gradient;
    CTK_TRY(const Outputs mine, student_->run(example.inputs, false));
    at::Tensor theirs = example.teacher;
    if (teacher_) {
      auto outputs = teacher_->run(example.inputs, false);
      if (!outputs) return std::move(outputs).error().with_context("teacher");
      theirs = rows_of((*outputs)[0]);
    }
    CTK_CHECK(check_loss(rows_of(mine[0]), theirs, example.labels, options_.loss));
    if (!features_) return {};
    return features_->prepare(student_->watched(), teacher_->watched(), student_->parameters());
  }

  // One part's loss, its gradient divided by `share` added to what is there.
  Result<double> add_gradient(const Example& example, double share) {
    try {
      return try_gradient(example, share);
    } catch (const RanksError& failed) {
      return failed.error;
    }
  }

  Result<double> try_gradient(const Example& example, double share) {
    at::Tensor target = example.teacher;
    std::vector<at::Tensor> wanted;  // features
    if (teacher_) {
      const at::NoGradGuard no_gradient;
      CTK_TRY(const Outputs outputs, teacher_->run(example.inputs, false));
      target = rows_of(outputs[0]);
      wanted = teacher_->watched();
    }
    CTK_TRY(const Outputs outputs, student_->run(example.inputs, options_.batch_norm));
    const at::Tensor logits = rows_of(outputs[0]);
    at::Tensor loss = loss_of(logits, target, example.labels, options_.loss, example.other_labels, example.share);
    if (features_) {
      loss = loss + options_.loss.feature_weight * features_->loss(student_->watched(), wanted, example.labels);
    }
    (share == 1 ? loss : loss / share).backward();
    return loss.item().toDouble();
  }

  // The loss of samples [begin, end) of the epoch's order, summed over batches, and the gradient of its mean over them.
  Result<double> gradient_of(std::size_t begin, std::size_t end) {
    double loss = 0;
    for (std::size_t at = begin; at < end; at += part_) {
      if (!samples_.is_mine((at - begin) / part_)) continue;
      CTK_TRY(const Example example, samples_.read(epoch_, at));
      CTK_TRY(const double weight, samples_.weight_of(example));
      CTK_TRY(const double one, add_gradient(example, static_cast<double>((end - begin) / part_) / weight));
      loss += one * weight * static_cast<double>(part_) / static_cast<double>(batch_);
    }
    CTK_CHECK(share_gradients(student_->parameters(), loss, ranks_));
    return loss;
  }

  // By rank 0 for all.
  Result<double> score_of(const graph::Graph& net) {
    CTK_TRY(const std::string bytes, ranks_.first_does("score", [&]() -> Result<std::string> {
      CTK_TRY(const double score, task_.score(net));
      return std::string(reinterpret_cast<const char*>(&score), sizeof score);
    }));
    double score = 0;
    std::memcpy(&score, bytes.data(), std::min(bytes.size(), sizeof score));
    return score;
  }

  Status run_epoch() {
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t total = options_.epochs * updates_;
    while (update_ < updates_) {
      const std::int64_t done = epoch_ * updates_ + update_;
      const double rate = learning_rate_at(options_, done, total);
      const std::int64_t first = update_ * options_.accumulate;
      const std::int64_t last = std::min(batches_, first + options_.accumulate);
      const std::size_t begin = static_cast<std::size_t>(first) * batch_, end = static_cast<std::size_t>(last) * batch_;
      const Result<double> found = gradient_of(begin, end);
      if (!found) {
        CTK_CHECK(save());  // as it was before this step
        return found.error();
      }
      const double loss = *found;
      if (!std::isfinite(loss)) return diverged(loss, rate);
      step_->step(rate);
      move_average();
      loss_sum_ += loss;
      ++update_;
      const auto now = std::chrono::steady_clock::now();
      seconds_ += std::chrono::duration<double>(now - (update_start_ ? *update_start_ : start)).count();
      update_start_ = now;
      if (task_.on_step) {
        const Status go_on = task_.on_step({epoch_, done + 1, total, loss_sum_ / static_cast<double>(last), rate});
        if (!go_on) {
          CTK_CHECK(save());
          return go_on;
        }
      }
      if (options_.save_every > 0 && (done + 1) % options_.save_every == 0 && update_ < updates_) CTK_CHECK(save());
    }
    update_start_.reset();
    return {};
  }

  Error diverged(double loss, double rate) const {
    return config_error("epoch " + std::to_string(epoch_ + 1) + ", step " + std::to_string(update_ + 1) + " of " +
                        std::to_string(updates_) + ": expected a finite loss, found " + text(loss) +
                        " at a learning rate of " + text(rate) +
                        ". The network is kept as it was before; lower learning_rate, or set clip_norm: 1");
  }

  // Running statistics lag behind the parameters, and an average of parameters has none of its own: both are measured
  // anew, on batches of this epoch.
  Status measure_norms() {
    if (!options_.batch_norm || student_->buffers().empty()) return {};
    for (std::size_t i = 0; i < std::min(kMeasuredBatches, task_.feed->count() / part_); ++i) {
      CTK_TRY(const Example example, samples_.read(epoch_, i * part_));
      CTK_CHECK(student_->measure_norms(example.inputs, i));
    }
    return {};
  }

  Status end_epoch() {
    EpochRow row{loss_sum_ / static_cast<double>(batches_), 0, seconds_};
    bool is_better = true;
    const std::vector<at::Tensor> now = snapshot();
    if (!average_.empty()) put(average_);
    CTK_CHECK(measure_norms());
    std::vector<at::Tensor> candidate = snapshot();
    if (task_.score) {
      CTK_TRY(const graph::Graph net, student_->graph());
      CTK_TRY(row.score, score_of(net));
      is_better = row.score > result_.score;
    }
    put(now);
    if (is_better) {
      best_ = std::move(candidate);
      result_.best_epoch = epoch_;
      result_.score = row.score;
    }
    result_.epochs.push_back(row);
    ++epoch_;
    update_ = 0;
    loss_sum_ = seconds_ = 0;
    return save();
  }

  bool is_stale() const {
    return options_.patience > 0 && epoch_ - 1 - result_.best_epoch >= options_.patience && task_.score;
  }

  std::vector<at::Tensor> live() {
    std::vector<at::Tensor> all;
    for (Parameter& parameter : student_->parameters()) all.push_back(parameter.value);
    for (const at::Tensor& buffer : student_->buffers()) all.push_back(buffer);
    return all;
  }
  static std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& tensor : tensors) all.push_back(tensor.detach().clone());
    return all;
  }
  std::vector<at::Tensor> snapshot() { return copies(live()); }
  void put(const std::vector<at::Tensor>& values) {
    const at::NoGradGuard no_gradient;
    const std::vector<at::Tensor> all = live();
    for (std::size_t i = 0; i < all.size(); ++i) at::Tensor(all[i]).copy_(values[i]);
  }
  void move_average() {
    if (average_.empty()) return;
    const at::NoGradGuard no_gradient;
    const std::vector<at::Tensor> all = live();
    for (std::size_t i = 0; i < all.size(); ++i) average_[i].mul_(options_.ema).add_(all[i], 1 - options_.ema);
  }

  Status save() {
    if (!task_.save || !ranks_.is_first()) return {};
    StateWriter out;
    out.add(epoch_), out.add(update_), out.add(step_->steps), out.add(loss_sum_), out.add(seconds_);
    out.add(result_.score_before), out.add(result_.score), out.add(result_.best_epoch);
    out.add(static_cast<std::int64_t>(result_.epochs.size()));
    for (const EpochRow& row : result_.epochs) out.add(row.loss), out.add(row.score), out.add(row.seconds);
    for (const auto& tensors : {live(), step_->memory(), average_, best_}) out.add(tensors);
    return task_.save(out.take());
  }

  Status restore() {
    StateReader in(task_.resume);
    in.read(epoch_), in.read(update_), in.read(step_->steps), in.read(loss_sum_), in.read(seconds_);
    in.read(result_.score_before), in.read(result_.score), in.read(result_.best_epoch);
    std::int64_t rows = 0;
    in.read(rows);
    for (std::int64_t i = 0; i < rows && in.is_good(); ++i) {
      EpochRow row;
      in.read(row.loss), in.read(row.score), in.read(row.seconds);
      result_.epochs.push_back(row);
    }
    std::vector<at::Tensor> parameters = live(), memory = step_->memory();
    in.read(parameters), in.read(memory), in.read(average_), in.read(best_);
    return in.status();
  }

  const FitTask& task_;
  const FitOptions& options_;
  Ranks& ranks_;
  Batches samples_;
  std::unique_ptr<TorchGraph> student_, teacher_;
  std::optional<FeatureLoss> features_;
  std::optional<ParameterStep> step_;
  std::size_t batch_ = 0, part_ = 0;        // samples a batch, and at a time
  std::int64_t batches_ = 0, updates_ = 0;  // of one epoch
  std::int64_t epoch_ = 0, update_ = 0;     // done
  std::vector<at::Tensor> average_, best_;  // parameters and statistics
  double loss_sum_ = 0, seconds_ = 0;       // of this epoch
  std::optional<std::chrono::steady_clock::time_point> update_start_;
  FitResult result_;
};

}  // namespace

Result<FitResult> fit(const FitTask& task) {
  return Fit(task).run();
}

}  // namespace ctk::train

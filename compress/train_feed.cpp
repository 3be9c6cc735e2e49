#include "compress/train_feed.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/random.h"
#include "data/metric.h"

namespace ctk::pipeline {
namespace {

// Beta(a, a) for 0 < a <= 1, by Joehnk's method, which takes at most two tries on average there. Powers of a small `a`
// may underflow: then the share is 0 or 1, which is where they lie.
double beta(Random& random, double a) {
  for (;;) {
    const double u = std::log(random.uniform()) / a, v = std::log(random.uniform()) / a;  // of the two powers
    const double most = std::max(u, v);
    if (!std::isfinite(most)) continue;
    const double sum = std::exp(u - most) + std::exp(v - most);
    if (most + std::log(sum) <= 0) return std::exp(u - most) / sum;
  }
}

}  // namespace

Result<std::unique_ptr<SplitFeed>> SplitFeed::open(const data::Split& split, const Augment& augment) {
  std::unique_ptr<SplitFeed> feed(new SplitFeed(split, augment));
  feed->is_text_ = split.source->spec().text.has_value();
  CTK_TRY(const data::Batch first, split.read(0, 1));
  std::size_t bytes = 0;
  for (const Tensor& input : first.inputs) bytes += input.bytes();
  const bool is_picture = first.inputs[0].dtype() == DType::f32 && first.inputs[0].shape().size() == 4;
  if ((augment.changes_pictures() || augment.mixup > 0) && !is_picture) {
    return config_error("data.train.augment: expected pictures [channels, height, width] to flip or shift, found " +
                        ctk::to_string(first.inputs[0].shape()) + " of " +
                        std::string(name_of(first.inputs[0].dtype())) + ". Remove augment");
  }
  feed->keeps_ = bytes * split.count() <= kMostKept;
  if (feed->keeps_) feed->kept_.resize(split.count());
  return feed;
}

Status SplitFeed::record(RecordedTeacher recorded) {
  if (augment_.mixup > 0 && recorded.logits.is_defined()) {
    return config_error(
        "data.train.augment.mixup: expected 0 beside recorded outputs, which say nothing of mixtures, "
        "found \"" +
        std::to_string(augment_.mixup) + "\". Remove it, or give the teacher itself");
  }
  recorded_ = std::move(recorded);
  return {};
}

Status SplitFeed::keep_missing(std::span<const std::size_t> samples) {
  std::vector<std::size_t> missing, rows;
  for (std::size_t sample : samples) {
    if (kept_[sample].empty()) missing.push_back(sample), rows.push_back(split_.indices[sample]);
  }
  if (missing.empty()) return {};
  CTK_TRY(const data::Batch batch, split_.source->read_batch(rows));
  for (const Tensor& input : batch.inputs) {
    Shape one = input.shape();
    one[0] = 1;
    const std::size_t bytes = byte_size(input.dtype(), elements(one));
    for (std::size_t i = 0; i < missing.size(); ++i) {
      CTK_TRY(Tensor part, Tensor::zeros(input.dtype(), one));
      std::memcpy(part.mutable_data(), static_cast<const std::byte*>(input.data()) + i * bytes, bytes);
      kept_[missing[i]].push_back(std::move(part));
    }
  }
  return {};
}

Result<data::Batch> SplitFeed::stored(std::span<const std::size_t> samples) {
  if (!keeps_) {
    std::vector<std::size_t> rows;
    for (std::size_t sample : samples) rows.push_back(split_.indices[sample]);
    return split_.source->read_batch(rows);
  }
  CTK_CHECK(keep_missing(samples));
  data::Batch batch;
  for (std::size_t i = 0; i < kept_[samples[0]].size(); ++i) {
    Shape shape = kept_[samples[0]][i].shape();
    shape[0] = static_cast<std::int64_t>(samples.size());
    CTK_TRY(Tensor whole, Tensor::zeros(kept_[samples[0]][i].dtype(), shape));
    std::byte* to = static_cast<std::byte*>(whole.mutable_data());
    for (std::size_t sample : samples) {
      const Tensor& part = kept_[sample][i];
      std::memcpy(to, part.data(), part.bytes());
      to += part.bytes();
    }
    batch.inputs.push_back(std::move(whole));
  }
  if (split_.source->has_labels()) {
    for (std::size_t sample : samples) batch.labels.push_back(split_.source->label(split_.indices[sample]));
  }
  return batch;
}

void SplitFeed::change(MutableTensorView pictures, std::size_t slot, std::size_t sample, std::int64_t epoch) const {
  const auto channels = static_cast<std::size_t>(pictures.shape[1]);
  const std::int64_t height = pictures.shape[2], width = pictures.shape[3];
  const auto plane = static_cast<std::size_t>(height * width);
  Random random(augment_.seed, "augment " + std::to_string(epoch) + " " + std::to_string(sample));
  const bool flips = augment_.flip && random.below(2) == 1;
  const auto move = [&] {
    return augment_.shift == 0
               ? 0
               : static_cast<std::int64_t>(random.below(2 * static_cast<std::uint64_t>(augment_.shift) + 1)) -
                     augment_.shift;
  };
  const std::int64_t down = move(), right = move();
  std::int64_t top = 0, left = 0;  // of the square that is cut out
  if (augment_.cutout > 0) {
    top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height))) - augment_.cutout / 2;
    left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width))) - augment_.cutout / 2;
  }
  std::vector<float> before(plane);
  for (std::size_t c = 0; c < channels; ++c) {
    float* to = pictures.as<float>() + (slot * channels + c) * plane;
    std::copy(to, to + plane, before.begin());
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x, ++to) {
        const std::int64_t from_y = y - down, moved = x - right;
        const std::int64_t from_x = flips ? width - 1 - moved : moved;
        const bool is_inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
        const bool is_cut = y >= top && y < top + augment_.cutout && x >= left && x < left + augment_.cutout;
        *to = is_inside && !is_cut ? before[static_cast<std::size_t>(from_y * width + from_x)] : 0.0f;
      }
    }
  }
}

void SplitFeed::mix(Batch& batch, std::size_t first, std::int64_t epoch) const {
  Random random(augment_.seed, "mixup " + std::to_string(epoch) + " " + std::to_string(first));
  batch.share = beta(random, augment_.mixup);
  const Tensor& pictures = batch.inputs[0];
  const auto count = static_cast<std::size_t>(pictures.shape()[0]);
  const std::vector<std::size_t> others = random.permutation(count);
  Tensor mixed = pictures.clone();
  const auto from = pictures.values<float>();
  const auto to = mixed.mutable_values<float>();
  const auto share = static_cast<float>(batch.share);
  const std::size_t one = from.size() / count;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < one; ++k) {
      to[i * one + k] = share * from[i * one + k] + (1 - share) * from[others[i] * one + k];
    }
    if (!batch.labels.empty()) batch.other_labels.push_back(batch.labels[others[i]]);
  }
  batch.inputs[0] = std::move(mixed);
}

Result<train::Feed::Batch> SplitFeed::read(std::span<const std::size_t> samples, std::int64_t epoch) {
  CTK_TRY(data::Batch read, stored(samples));
  if (augment_.changes_pictures()) {
    Tensor changed = read.inputs[0].clone();  // a batch read from an array may be a window on it
    for (std::size_t i = 0; i < samples.size(); ++i) change(changed.mutable_view(), i, samples[i], epoch);
    read.inputs[0] = std::move(changed);
  }
  Batch batch;
  if (is_text_) {
    CTK_TRY(batch.labels, data::next_tokens(read.inputs[0]));
  } else {
    batch.labels = std::move(read.labels);
  }
  if (!recorded_.labels.empty()) {
    batch.labels.clear();
    for (std::size_t sample : samples)
      batch.labels.push_back(recorded_.labels[split_.source->row(split_.indices[sample])]);
  }
  if (recorded_.logits.is_defined()) {
    const auto classes = static_cast<std::size_t>(recorded_.logits.shape()[1]);
    CTK_TRY(batch.teacher,
            Tensor::zeros(DType::f32, {static_cast<std::int64_t>(samples.size()), static_cast<std::int64_t>(classes)}));
    float* to = batch.teacher.mutable_values<float>().data();
    for (std::size_t sample : samples) {
      const float* from =
          recorded_.logits.values<float>().data() + split_.source->row(split_.indices[sample]) * classes;
      to = std::copy(from, from + classes, to);
    }
  }
  batch.inputs = std::move(read.inputs);
  if (augment_.mixup > 0) mix(batch, samples[0], epoch);
  return batch;
}

}  // namespace ctk::pipeline

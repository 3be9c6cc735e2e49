// A split as the trainer reads it: shuffled batches, pictures changed at random, labels a row.
#pragma once

#include <vector>

#include "compress/teacher.h"
#include "data/splits.h"
#include "train/trainer.h"

namespace ctk::pipeline {

struct Augment {
  bool flip = false;       // mirror left and right, every second time
  std::int64_t shift = 0;  // move by up to so many pixels in both directions; what comes in is 0, the mean colour
  // Side of a square, in pixels, that becomes 0; its middle is anywhere in the picture. DeVries and Taylor, 2017.
  std::int64_t cutout = 0;
  // a, from 0 (none) to 1: every sample becomes share times itself and 1 - share times another of its batch, share of
  // the whole batch drawn from Beta(a, a). Zhang et al., mixup, 2018.
  double mixup = 0;
  std::uint64_t seed = 0;

  bool changes_pictures() const { return flip || shift > 0 || cutout > 0; }
};

// What a sample becomes depends on the seed, the epoch and its index alone, with mixup on its batch. Samples are
// decoded once and kept while they fit kMostKept bytes. The split must outlive the feed.
class SplitFeed final : public train::Feed {
 public:
  static constexpr std::size_t kMostKept = std::size_t{1} << 30;

  // Errors: config (augmentation of what is no picture).
  static Result<std::unique_ptr<SplitFeed>> open(const data::Split& split, const Augment& augment);

  // What a teacher said of the rows of the split's file: its labels take the place of the file's own.
  // Errors: config (mixup: nobody said what a mixture is).
  Status record(RecordedTeacher recorded);

  std::size_t count() const override { return split_.count(); }
  bool mixes() const override { return augment_.mixup > 0; }
  Result<Batch> read(std::span<const std::size_t> samples, std::int64_t epoch) override;

 private:
  SplitFeed(const data::Split& split, const Augment& augment) : split_(split), augment_(augment) {}
  Result<data::Batch> stored(std::span<const std::size_t> samples);
  Status keep_missing(std::span<const std::size_t> samples);
  void mix(Batch& batch, std::size_t first, std::int64_t epoch) const;
  void change(MutableTensorView pictures, std::size_t slot, std::size_t sample, std::int64_t epoch) const;

  const data::Split& split_;
  const Augment augment_;
  RecordedTeacher recorded_;
  bool is_text_ = false, keeps_ = false;
  std::vector<std::vector<Tensor>> kept_;  // by sample: inputs of one sample, or empty
};

}  // namespace ctk::pipeline

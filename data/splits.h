// Splits: which samples train, calibrate, score, select and test. Disjoint where they are drawn, checked where given.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "data/source.h"

namespace ctk::data {

struct SplitRequest {
  std::optional<SourceSpec> train, calibrate, score, select, evaluate;
  std::uint64_t seed = 0;
  // Samples to draw for a role that is not given; 0: the role is not needed.
  std::size_t draw_calibrate = 256, draw_score = 256, draw_select = 512;
};

struct Split {
  std::string role;                      // "train", "calibrate", "score", "select", "test"
  std::shared_ptr<const Source> source;  // may be shared with other splits
  std::vector<std::size_t> indices;      // into source, in reading order
  std::string fingerprint;               // over content hashes and labels, in order
  bool is_drawn = false;

  std::size_t count() const { return indices.size(); }
  const std::string& path() const { return source->spec().path; }
  // Samples [begin, end) of this split, end <= count().
  Result<Batch> read(std::size_t begin, std::size_t end) const {
    return source->read_batch(std::span(indices).subspan(begin, end - begin));
  }
};

struct Warning {
  // split_copies, split_overlap, split_short, split_absent, split_from_train, files_ignored, samples_skipped
  std::string code;
  std::string text;
};

struct Splits {
  std::optional<Split> train, calibrate, score, select, test;
  std::vector<Warning> warnings;

  std::vector<const Split*> all() const;  // those present, in the order of the fields
};

// Given sources are used whole, in file order (after skip and samples). Absent roles of calibrate, score and select are
// drawn together by seed, from samples whose content no given split holds: the first of (1) the rest of calibrate's
// file, (2) the rest of train's file, (3) the train split, which gives up at most a quarter of its samples, that has
// enough, or the largest. Drawn indices ascend. When fewer are left than wished for, each role gets its share in
// proportion (at least one while there are any, in the order named); a role that gets none stays absent, with a
// warning.
//
// No sample of `evaluate` is, by content, in another split. Where evaluate and a given split read different rows of one
// file that holds the same sample twice, the copy leaves the given split, with a warning; any other such sample is an
// error. Errors: those of open_source(); input (a sample of `evaluate` in another given split: names both).
Result<Splits> make_splits(const SplitRequest& request, std::span<const InputInfo> inputs);

}  // namespace ctk::data

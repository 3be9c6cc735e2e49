// Source: labelled samples in a file or folder, read batch by batch as the model wants them.
//
// value = ((stored - zero_point) / scale - mean[c]) / std[c], computed in double, rounded once to float32; c runs along
// axis 0 of a sample (axis 1 of a batch). Stored numbers stay in their stored type; only the batch asked for is float.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/result.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "data/text/text_spec.h"

namespace ctk::data {

// What the model says about one of its inputs.
struct InputInfo {
  std::string name;
  DType dtype = DType::f32;  // f32, i32 or i64
  Shape shape;               // of one sample, without the batch axis; -1 = free
};

// What to do with a sample that cannot be used: a NaN or Inf in it, an image that does not decode.
enum class BadSample { fail, skip };

// A data source as the pipeline file gives it.
struct SourceSpec {
  std::string path;
  // Model input -> array in the file, in file order. Empty: an array with the input's own name, or "x" (or the file's
  // only array) for the only input of a model.
  std::vector<std::pair<std::string, std::string>> inputs;
  // Array name, "from_name" (file name = class index), "from_folder" (sorted folder names), or empty: array "y" where
  // the file has one of integers, one for each sample; otherwise none.
  std::string labels;
  std::string split;  // arrays "<array>_<split>", or rows where the array "split" equals it
  std::int64_t skip = 0;
  std::optional<std::int64_t> samples;  // the first so many after `skip`; absent: all
  std::optional<double> scale;          // giving any of these four says that integers may become floats
  std::optional<double> zero_point;
  std::vector<double> mean, std;       // one number, or one per channel
  std::optional<std::int64_t> resize;  // images: length of the shorter side, pixels
  std::optional<std::int64_t> crop;    // images: side of the centre square, pixels
  std::string metric;                  // carried for whoever evaluates
  BadSample on_bad_sample = BadSample::fail;
  std::optional<TextSpec> text;  // the file is a text, whatever its name: samples are token ids
};

struct Batch {
  std::vector<Tensor> inputs;        // one per model input, in the model's order: [B, sample shape...]
  std::vector<std::int64_t> labels;  // [B], or empty
};

struct SkippedSample {
  std::size_t row = 0;  // as Source::row()
  std::string where;    // as Source::where()
  std::string input;    // of the model; empty when the sample cannot be read at all
  std::string reason;
};

class Rows;

// Immutable once open; every member may be called from several threads.
class Source {
 public:
  Source(SourceSpec spec, std::vector<InputInfo> inputs, std::shared_ptr<const Rows> rows);
  ~Source();

  std::size_t count() const { return selected_.size(); }  // at least 1
  const SourceSpec& spec() const { return spec_; }
  std::span<const InputInfo> inputs() const { return inputs_; }

  // The samples `indices` (each below count(), any order, repeats allowed), in that order. Samples of a batch must have
  // one shape; with free dimensions read unequal ones apart, one by one if need be.
  // Errors: input (image does not decode, shape differs from the model's or within the batch, NaN or Inf).
  Result<Batch> read_batch(std::span<const std::size_t> indices) const;

  bool has_labels() const;
  std::int64_t label(std::size_t index) const;  // only with has_labels()
  // Errors: input (label below 0 or not below `classes`; names sample and value).
  Status check_labels(std::int64_t classes) const;

  // Content hash of the stored sample: its array elements, or the decoded pixels in planes before resize and crop.
  // The same picture as JPEG and as uint8 [C,H,W] in an npz hashes alike; two sources can be compared by it.
  Result<std::uint64_t> hash(std::size_t index) const;
  // All of them in order, computed in parallel.
  Result<std::vector<std::uint64_t>> hashes() const;

  std::size_t row(std::size_t index) const { return selected_[index]; }  // in the file or folder, before skip
  std::string where(std::size_t index) const;                            // "test.npz row 17", "images/0005.jpg"
  const std::vector<SkippedSample>& skipped() const { return skipped_; }
  const std::vector<std::string>& notes() const;  // what was ignored on opening, one sentence each

 private:
  friend Result<std::unique_ptr<Source>> open_source(const SourceSpec&, std::span<const InputInfo>,
                                                     std::shared_ptr<const Rows>);
  Status select_rows();
  Status check_samples();
  std::string sample_name(std::size_t index) const;  // for messages: "a/test.npz: sample 3 (test.npz row 17)"
  Status fill(std::size_t index, std::size_t slot, const std::vector<Tensor>& stored, Batch& out) const;

  SourceSpec spec_;
  std::vector<InputInfo> inputs_;
  std::shared_ptr<const Rows> rows_;
  std::vector<std::size_t> selected_;  // row of each sample
  std::vector<SkippedSample> skipped_;
};

// Opens a source and checks what can be checked without reading it all: names, dtypes, shapes and the first sample,
// array values for NaN and Inf, the numbers of the spec. With BadSample::skip every sample is checked (images are
// decoded once). Errors: input (file missing, damaged or empty; names, shapes, dtypes, counts that do not fit the model
// or the spec), config (numbers of the spec that make no sense).
Result<std::unique_ptr<Source>> open_source(const SourceSpec& spec, std::span<const InputInfo> inputs);

}  // namespace ctk::data

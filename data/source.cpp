#include "data/source.h"

#include <algorithm>
#include <numeric>

#include "core/hash.h"
#include "core/parallel.h"
#include "data/convert.h"
#include "data/rows.h"

namespace ctk::data {

Source::Source(SourceSpec spec, std::vector<InputInfo> inputs, std::shared_ptr<const Rows> rows)
    : spec_(std::move(spec)), inputs_(std::move(inputs)), rows_(std::move(rows)) {}
Source::~Source() = default;

Result<std::unique_ptr<Source>> open_source(const SourceSpec& spec, std::span<const InputInfo> inputs) {
  CTK_CHECK(check_numbers(spec));
  CTK_TRY(std::shared_ptr<const Rows> rows, open_rows(spec, inputs));
  return open_source(spec, inputs, std::move(rows));
}

Result<std::unique_ptr<Source>> open_source(const SourceSpec& spec, std::span<const InputInfo> inputs,
                                            std::shared_ptr<const Rows> rows) {
  CTK_CHECK(check_numbers(spec));
  auto source = std::make_unique<Source>(spec, std::vector<InputInfo>(inputs.begin(), inputs.end()), std::move(rows));
  CTK_CHECK(source->select_rows());
  CTK_CHECK(source->check_samples());
  return source;
}

// [skip, skip + samples) of the rows, of a text at most `windows`.
Status Source::select_rows() {
  const std::size_t total = rows_->count();
  const std::string has = "the source has " + std::to_string(total) + " samples";
  if (total == 0) return input_error(spec_.path + ": expected samples, found none. Give a source that has some.");
  const auto skip = static_cast<std::size_t>(spec_.skip);
  if (skip >= total)
    return input_error(spec_.path + ": skip: no sample is left after skip: " + std::to_string(skip) + ", " + has +
                       ". Skip fewer.");
  std::size_t wanted = spec_.samples ? static_cast<std::size_t>(*spec_.samples) : total - skip;
  if (wanted > total - skip)
    return input_error(spec_.path + ": samples: expected at most " + std::to_string(total - skip) + ", found " +
                       std::to_string(wanted) + ": " + has + (skip ? " and skip is " + std::to_string(skip) : "") +
                       ". Ask for fewer, or leave samples out to take all.");
  if (spec_.text && spec_.text->windows) wanted = std::min(wanted, static_cast<std::size_t>(*spec_.text->windows));
  selected_.resize(wanted);
  std::iota(selected_.begin(), selected_.end(), skip);
  return {};
}

// Names, dtypes and shapes by the first sample; values of arrays for NaN and Inf by all. With BadSample::skip every
// sample is read, so that the count is known from the start.
Status Source::check_samples() {
  const bool skips = spec_.on_bad_sample == BadSample::skip;
  std::vector<std::size_t> good;
  bool is_checked = false;  // shapes and dtypes, by the first sample that can be read
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    const bool needs_read = skips || rows_->is_array() || i == 0;
    if (!needs_read) break;
    Result<std::vector<Tensor>> stored = rows_->read(selected_[i]);
    std::string input, reason = stored ? "" : stored.error().message;
    if (stored && (!is_checked || !rows_->is_array())) {
      for (std::size_t k = 0; k < inputs_.size(); ++k) {
        Status status = check_sample(spec_, inputs_[k], (*stored)[k], rows_->origin(k));
        if (!status) return std::move(status).error().with_context(sample_name(i));
      }
      is_checked = true;
    }
    for (std::size_t k = 0; stored && reason.empty() && k < inputs_.size(); ++k) {
      if (const auto element = find_not_finite((*stored)[k])) {
        reason = "element " + std::to_string(*element) + " of " + rows_->origin(k) + " is NaN or infinite";
      } else if (skips) {
        CTK_TRY(Tensor scratch, Tensor::zeros(inputs_[k].dtype, (*stored)[k].shape()));
        const Status converted = convert_sample(spec_, inputs_[k], (*stored)[k], scratch.mutable_data());
        if (!converted) reason = converted.error().message;
      }
      if (!reason.empty()) input = inputs_[k].name;
    }
    if (reason.empty()) {
      good.push_back(selected_[i]);
    } else if (skips) {
      skipped_.push_back({selected_[i], where(i), input, reason});
    } else {
      return stored ? input_error(sample_name(i) + ": input '" + input + "': " + reason +
                                  ". Mend the data, or set on_bad_sample: skip.")
                    : std::move(stored).error();
    }
  }
  if (skips && good.empty())
    return input_error(spec_.path + ": expected samples, found none that can be used: all " +
                       std::to_string(selected_.size()) + " were skipped, the first because " + skipped_[0].reason);
  if (skips) selected_ = std::move(good);
  return {};
}

Result<Batch> Source::read_batch(std::span<const std::size_t> indices) const {
  if (indices.empty()) return internal_error("a batch of no samples was asked for");
  for (std::size_t index : indices)
    if (index >= count())
      return internal_error("sample " + std::to_string(index) + " of " + std::to_string(count()) + " was asked for");
  Batch batch;
  // The first sample decides the shape; the others are read in parallel, each into its own slice.
  CTK_TRY(const std::vector<Tensor> first, rows_->read(selected_[indices[0]]));
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    Shape shape = first[k].shape();
    shape.insert(shape.begin(), static_cast<std::int64_t>(indices.size()));
    CTK_TRY(Tensor tensor, Tensor::zeros(inputs_[k].dtype, std::move(shape)));
    batch.inputs.push_back(std::move(tensor));
  }
  std::vector<Status> statuses(indices.size());
  parallel_for(indices.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t slot = begin; slot < end; ++slot) {
      if (slot == 0) {
        statuses[0] = fill(indices[0], 0, first, batch);
        continue;
      }
      Result<std::vector<Tensor>> stored = rows_->read(selected_[indices[slot]]);
      statuses[slot] = stored ? fill(indices[slot], slot, *stored, batch) : Status(std::move(stored).error());
    }
  });
  for (Status& status : statuses)
    if (!status) return std::move(status).error();
  if (has_labels())
    for (std::size_t index : indices) batch.labels.push_back(label(index));
  return batch;
}

// Converts one sample into its slice of the batch.
Status Source::fill(std::size_t index, std::size_t slot, const std::vector<Tensor>& stored, Batch& out) const {
  const auto here = [&](std::size_t k) { return sample_name(index) + ": input '" + inputs_[k].name + "'"; };
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    Status status = check_sample(spec_, inputs_[k], stored[k], rows_->origin(k));
    if (!status) return std::move(status).error().with_context(sample_name(index));
    const Shape& batch_shape = out.inputs[k].shape();
    if (!std::equal(stored[k].shape().begin(), stored[k].shape().end(), batch_shape.begin() + 1, batch_shape.end()))
      return input_error(here(k) + ": expected the shape of the batch's first sample, " + to_string(batch_shape) +
                         " as a batch, found " + to_string(stored[k].shape()) +
                         ". Read samples of unequal shape one by one.");
    std::byte* slice =
        static_cast<std::byte*>(out.inputs[k].mutable_data()) + slot * byte_size(inputs_[k].dtype, stored[k].size());
    status = convert_sample(spec_, inputs_[k], stored[k], slice);
    if (!status) return std::move(status).error().with_context(here(k));
  }
  return {};
}

bool Source::has_labels() const {
  return !rows_->labels.empty();
}

std::int64_t Source::label(std::size_t index) const {
  return rows_->labels[selected_[index]];
}

Status Source::check_labels(std::int64_t classes) const {
  for (std::size_t i = 0; has_labels() && i < count(); ++i)
    if (label(i) < 0 || label(i) >= classes)
      return input_error(spec_.path + ": labels: expected classes 0 to " + std::to_string(classes - 1) + ", found " +
                         std::to_string(label(i)) + " at sample " + std::to_string(i) + " (" + where(i) +
                         "). Mend the labels, or take the model they belong to.");
  return {};
}

Result<std::uint64_t> Source::hash(std::size_t index) const {
  return rows_->hash(selected_[index]);
}

Result<std::vector<std::uint64_t>> Source::hashes() const {
  std::vector<std::uint64_t> result(count());
  std::vector<Status> statuses(count());
  parallel_for(count(), 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Result<std::uint64_t> hash = this->hash(i);
      if (hash)
        result[i] = *hash;
      else
        statuses[i] = std::move(hash).error();
    }
  });
  for (Status& status : statuses)
    if (!status) return std::move(status).error();
  return result;
}

std::string Source::where(std::size_t index) const {
  return rows_->name(selected_[index]);
}

std::string Source::sample_name(std::size_t index) const {
  return spec_.path + ": sample " + std::to_string(index) + " (" + where(index) + ")";
}

const std::vector<std::string>& Source::notes() const {
  return rows_->notes;
}

std::uint64_t hash_sample(std::span<const Tensor> stored) {
  std::vector<std::uint64_t> parts;
  for (const Tensor& tensor : stored) {
    parts.push_back(static_cast<std::uint64_t>(bits_of(tensor.dtype())));
    parts.push_back(tensor.shape().size());
    for (std::int64_t dimension : tensor.shape()) parts.push_back(static_cast<std::uint64_t>(dimension));
    parts.push_back(hash64(tensor.raw()));
  }
  return hash64(std::as_bytes(std::span(parts)));
}

}  // namespace ctk::data

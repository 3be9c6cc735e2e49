// Rows of text files: one sample of token ids each, as data/text/token_source.h cuts them.
#include <algorithm>

#include "data/rows.h"
#include "data/text/token_source.h"

namespace ctk::data {
namespace {

class TextRows : public Rows {
 public:
  TextRows(std::shared_ptr<const TokenSource> source, const InputInfo& input)
      : source_(std::move(source)), dtype_(input.dtype), has_row_axis_(input.shape.size() == 2) {}

  std::size_t count() const override { return source_->count(); }
  std::string name(std::size_t row) const override { return source_->where(row); }
  std::string origin(std::size_t) const override { return "the text (context tokens)"; }
  bool is_array() const override { return false; }

  Result<std::vector<Tensor>> read(std::size_t row) const override {
    const std::span<const std::int64_t> ids = source_->ids(row);
    Shape shape{static_cast<std::int64_t>(ids.size())};
    if (has_row_axis_) shape.insert(shape.begin(), 1);
    CTK_TRY(Tensor tensor, Tensor::zeros(dtype_, std::move(shape)));
    if (dtype_ == DType::i32)
      std::copy(ids.begin(), ids.end(), static_cast<std::int32_t*>(tensor.mutable_data()));
    else
      std::copy(ids.begin(), ids.end(), static_cast<std::int64_t*>(tensor.mutable_data()));
    return std::vector<Tensor>{std::move(tensor)};
  }

  Result<std::uint64_t> hash(std::size_t row) const override { return source_->hash(row); }

 private:
  std::shared_ptr<const TokenSource> source_;
  DType dtype_;
  bool has_row_axis_;  // the model's sample is [1, T]
};

}  // namespace

Result<std::shared_ptr<Rows>> open_text(const SourceSpec& spec, std::span<const InputInfo> inputs) {
  if (inputs.size() != 1)
    return input_error(spec.path + ": text feeds one model input (token ids), the model has " +
                       std::to_string(inputs.size()) + ". Save an .npz with an array for each.");
  if (inputs[0].dtype != DType::i64 && inputs[0].dtype != DType::i32)
    return input_error(spec.path + ": text: expected a model whose input '" + inputs[0].name +
                       "' takes token ids (i64 or i32), found " + std::string(name_of(inputs[0].dtype)) +
                       ". Give data of the model's kind.");
  const std::pair<const char*, bool> foreign[] = {{"inputs", !spec.inputs.empty()},
                                                  {"labels", !spec.labels.empty()},
                                                  {"split", !spec.split.empty()},
                                                  {"resize", spec.resize.has_value()},
                                                  {"crop", spec.crop.has_value()}};
  for (const auto& [key, is_given] : foreign)
    if (is_given)
      return config_error(spec.path + ": " + key + ": expected no such key for a text, found one. Leave it out.");
  CTK_TRY(std::shared_ptr<const TokenSource> source, TokenSource::open(spec.path, *spec.text));
  auto rows = std::make_shared<TextRows>(source, inputs[0]);
  rows->labels = source->labels();
  if (source->short_lines() != 0)
    rows->notes.push_back(spec.path + ": " + std::to_string(source->short_lines()) +
                          " lines of one token are left out: nothing in them can be predicted");
  return std::shared_ptr<Rows>(std::move(rows));
}

}  // namespace ctk::data

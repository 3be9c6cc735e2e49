// Rows: the samples of one file or folder as stored. One implementation per kind; Source adds selection and conversion.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "data/source.h"

namespace ctk::data {

class Rows {
 public:
  virtual ~Rows() = default;
  virtual std::size_t count() const = 0;
  // One tensor per model input, in the stored type, of the sample's shape (images: planes, after resize and crop).
  virtual Result<std::vector<Tensor>> read(std::size_t row) const = 0;
  // Hash of the sample before anything is done to it: see hash_sample().
  virtual Result<std::uint64_t> hash(std::size_t row) const = 0;
  virtual std::string name(std::size_t row) const = 0;
  // What the i-th model input is read from, for messages: "array 'x' [4,3,8,8]", "the pictures".
  virtual std::string origin(std::size_t input) const = 0;
  // True when all rows have the dtype and shape of row 0 and reading one costs nothing.
  virtual bool is_array() const = 0;

  std::vector<std::int64_t> labels;  // [count], or empty
  std::vector<std::string> notes;
};

// A way to store samples. `matches` looks at the name only; the content is checked on opening. Where SourceSpec::text
// is set the kind is "text".
struct SourceKind {
  std::string_view name;
  std::string_view what;
  bool (*matches)(const std::string& path, bool is_folder);
  Result<std::shared_ptr<Rows>> (*open)(const SourceSpec& spec, std::span<const InputInfo> inputs);
};

std::span<const SourceKind> source_kinds();
// Finds the kind and opens it. Errors: input (missing path, no kind matches: lists them).
Result<std::shared_ptr<const Rows>> open_rows(const SourceSpec& spec, std::span<const InputInfo> inputs);
// The second half of open_source(), for rows that several sources share.
Result<std::unique_ptr<Source>> open_source(const SourceSpec& spec, std::span<const InputInfo> inputs,
                                            std::shared_ptr<const Rows> rows);

// 64-bit hash over bits, shape and bytes of each tensor.
std::uint64_t hash_sample(std::span<const Tensor> stored);

Result<std::shared_ptr<Rows>> open_npz(const SourceSpec& spec, std::span<const InputInfo> inputs);
Result<std::shared_ptr<Rows>> open_npy(const SourceSpec& spec, std::span<const InputInfo> inputs);
Result<std::shared_ptr<Rows>> open_image_folder(const SourceSpec& spec, std::span<const InputInfo> inputs);
Result<std::shared_ptr<Rows>> open_image_zip(const SourceSpec& spec, std::span<const InputInfo> inputs);
Result<std::shared_ptr<Rows>> open_text(const SourceSpec& spec, std::span<const InputInfo> inputs);

}  // namespace ctk::data

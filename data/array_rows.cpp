// Rows of .npz and .npy files: row i is element i along the first axis of each array.
#include <algorithm>
#include <filesystem>

#include "data/npy.h"
#include "data/rows.h"
#include "data/zip.h"

namespace ctk::data {
namespace {

class ArrayRows : public Rows {
 public:
  std::size_t count() const override { return rows_ ? rows_->size() : total_; }
  std::string name(std::size_t row) const override {
    return file_ + " row " + std::to_string(stored_row(row)) + suffix_;
  }
  std::string origin(std::size_t input) const override { return origins_[input]; }
  bool is_array() const override { return true; }
  Result<std::vector<Tensor>> read(std::size_t row) const override { return views(row); }
  Result<std::uint64_t> hash(std::size_t row) const override { return hash_sample(views(row)); }

  // Errors: input (a scalar, or another length than the arrays before).
  Status add(const std::string& name, NpyArray array, const std::string& where) {
    const std::string text = "array '" + name + "' " + to_string(array.shape);
    if (!array.values.is_defined())
      return input_error(where + ": expected numbers, found strings in " + text + ". Save numbers.");
    if (array.shape.empty())
      return input_error(where + ": expected an array with samples along its first axis, found the single number '" +
                         name + "'. Save it as [N, ...].");
    const auto length = static_cast<std::size_t>(array.shape[0]);
    if (!arrays_.empty() && length != total_)
      return input_error(where + ": expected as many samples in every array, found " + origins_[0] + " and " + text +
                         ". Save arrays of one length.");
    total_ = length;
    arrays_.push_back(std::move(array.values));
    origins_.push_back(text);
    return {};
  }

  std::size_t total() const { return total_; }
  void keep(std::vector<std::size_t> rows) { rows_ = std::move(rows); }
  std::size_t stored_row(std::size_t row) const { return rows_ ? (*rows_)[row] : row; }
  void set_file(const std::string& path) { file_ = std::filesystem::path(path).filename().string(); }
  void set_suffix(const std::string& suffix) { suffix_ = suffix; }

 private:
  std::vector<Tensor> views(std::size_t row) const {
    std::vector<Tensor> result;
    result.reserve(arrays_.size());
    for (const Tensor& array : arrays_) {
      Shape shape(array.shape().begin() + 1, array.shape().end());
      const std::size_t bytes = byte_size(array.dtype(), elements(shape));
      const std::byte* data = static_cast<const std::byte*>(array.data()) + stored_row(row) * bytes;
      result.push_back(Tensor::borrowed(array.dtype(), std::move(shape), data, nullptr));  // this object owns the bytes
    }
    return result;
  }

  std::string file_, suffix_;  // of a row's name
  std::vector<Tensor> arrays_;
  std::vector<std::string> origins_;
  std::size_t total_ = 0;
  std::optional<std::vector<std::size_t>> rows_;  // of the arrays, where `split` selects some
};

// The arrays of an .npz, read one by one.
class NpzFile {
 public:
  static Result<NpzFile> open(const std::string& path) {
    CTK_TRY(ZipFile zip, ZipFile::open(path));
    return NpzFile(path, std::move(zip));
  }

  bool has(const std::string& array) const { return zip_.find(array + ".npy") != nullptr; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const ZipEntry& entry : zip_.entries())
      if (entry.name.ends_with(".npy")) names.push_back(entry.name.substr(0, entry.name.size() - 4));
    return names;
  }
  Result<NpyHeader> header(const std::string& array) const {
    const ZipEntry& entry = *zip_.find(array + ".npy");
    CTK_TRY(const std::vector<std::byte> head, zip_.read_head(entry, kNpyHeadBytes));
    return parse_npy_header(head, entry.bytes, where(array));
  }
  // The header is believed only as far as the archive's directory agrees with it, and before memory is asked for.
  Result<NpyArray> load(const std::string& array) const {
    CTK_TRY(const NpyHeader header, this->header(array));
    CTK_TRY(const Bytes bytes, zip_.read(*zip_.find(array + ".npy")));
    return load_npy(header, bytes, where(array));
  }
  std::string where(const std::string& array) const { return path_ + ": array '" + array + "'"; }
  // "x u8 [4000,3,32,32], y i64 [4000]"
  std::string listing() const {
    std::string text;
    for (const std::string& name : names()) {
      if (!text.empty()) text += ", ";
      text += name;
      const Result<NpyHeader> head = header(name);
      if (!head) continue;
      text += head->dtype ? " " : " strings";
      if (head->dtype) text += name_of(*head->dtype);
      text += " ";
      text += to_string(head->shape);
    }
    return text.empty() ? "no arrays" : text;
  }
  const std::string& path() const { return path_; }

 private:
  NpzFile(std::string path, ZipFile zip) : path_(std::move(path)), zip_(std::move(zip)) {}
  std::string path_;
  ZipFile zip_;
};

// Finds arrays by name under a split: "<name>_<split>" first, then the plain name with rows chosen by array "split".
struct Names {
  const NpzFile& file;
  const std::string& split;

  bool has(const std::string& name) const { return file.has(name) || has_own(name); }
  bool has_own(const std::string& name) const { return !split.empty() && file.has(name + "_" + split); }
  std::string stored(const std::string& name) const { return has_own(name) ? name + "_" + split : name; }
};

std::string quoted_inputs(std::span<const InputInfo> inputs) {
  std::string text;
  for (const InputInfo& input : inputs) text += (text.empty() ? "'" : ", '") + input.name + "'";
  return text;
}

// The array of each model input, in the model's order. See SourceSpec::inputs.
Result<std::vector<std::string>> bind_inputs(const SourceSpec& spec, std::span<const InputInfo> inputs,
                                             const Names& names) {
  for (const auto& [input, array] : spec.inputs) {
    if (std::none_of(inputs.begin(), inputs.end(), [&](const InputInfo& i) { return i.name == input; }))
      return input_error(spec.path + ": inputs: expected a name of a model input, found '" + input +
                         "'. The model has " + quoted_inputs(inputs) + ".");
    if (std::count_if(spec.inputs.begin(), spec.inputs.end(), [&](const auto& pair) { return pair.first == input; }) >
        1)
      return config_error(spec.path + ": inputs: model input '" + input + "' is given twice. Keep one.");
    if (!names.has(array))
      return input_error(spec.path + ": inputs: expected the name of an array of the file, found '" + array +
                         "'. The file has " + names.file.listing() + ".");
  }
  std::vector<std::string> others;  // arrays that could be the only input of a model
  for (const std::string& name : names.file.names())
    if (name != "split" && name != spec.labels && name != names.stored(spec.labels)) others.push_back(name);
  std::vector<std::string> bound;
  for (const InputInfo& input : inputs) {
    const auto given = std::find_if(spec.inputs.begin(), spec.inputs.end(),
                                    [&](const auto& pair) { return pair.first == input.name; });
    if (given != spec.inputs.end())
      bound.push_back(names.stored(given->second));
    else if (names.has(input.name))
      bound.push_back(names.stored(input.name));
    else if (inputs.size() == 1 && names.has("x"))
      bound.push_back(names.stored("x"));
    else if (inputs.size() == 1 && others.size() == 1)
      bound.push_back(others[0]);
    else
      return input_error(spec.path + ": expected an array for model input '" + input.name +
                         "', found none of that name. The file has " + names.file.listing() + ". Add inputs: {" +
                         input.name + ": ARRAY}.");
  }
  return bound;
}

// Rows where the array "split" equals spec.split.
Result<std::vector<std::size_t>> rows_of_split(const SourceSpec& spec, const NpzFile& file, std::size_t total) {
  if (!file.has("split"))
    return input_error(spec.path + ": split '" + spec.split + "': expected arrays named '..._" + spec.split +
                       "' or an array 'split' that says it of each row, found " + file.listing() +
                       ". Leave split out, or use skip and samples.");
  CTK_TRY(const NpyArray array, file.load("split"));
  if (array.shape != Shape{static_cast<std::int64_t>(total)})
    return input_error(file.where("split") + ": expected one entry for each of " + std::to_string(total) +
                       " rows, found shape " + to_string(array.shape) + ".");
  std::vector<std::string> values = array.strings;
  if (array.values.is_defined()) {
    if (is_float(array.values.dtype()))
      return input_error(file.where("split") + ": expected strings or integers, found " +
                         std::string(name_of(array.values.dtype())) + ".");
    CTK_TRY(const std::vector<std::int64_t> numbers, to_i64(array.values));
    for (std::int64_t number : numbers) values.push_back(std::to_string(number));
  }
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] == spec.split) rows.push_back(i);
  if (!rows.empty()) return rows;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::string known;
  for (std::size_t i = 0; i < values.size() && i < 8; ++i) known += (i ? ", '" : "'") + values[i] + "'";
  return input_error(spec.path + ": split '" + spec.split + "': no row has it, array 'split' holds " + known + ".");
}

// Labels of the kept rows; nothing for a default "y" that cannot be labels.
Result<std::vector<std::int64_t>> load_labels(const SourceSpec& spec, const Names& names, const ArrayRows& rows,
                                              const std::vector<std::string>& bound) {
  const bool is_default = spec.labels.empty();
  const std::string wanted = is_default ? "y" : spec.labels;
  if (wanted == "from_name" || wanted == "from_folder")
    return input_error(spec.path + ": labels: '" + wanted + "' is for image folders, this file has " +
                       names.file.listing() + ". Name an array.");
  const std::string stored = names.stored(wanted);
  if (is_default && (!names.has(wanted) || std::find(bound.begin(), bound.end(), stored) != bound.end()))
    return std::vector<std::int64_t>{};
  if (!names.has(wanted))
    return input_error(spec.path + ": labels: expected the name of an array of the file, found '" + wanted +
                       "'. The file has " + names.file.listing() + ".");
  const auto total = static_cast<std::int64_t>(rows.total());
  if (is_default) {
    CTK_TRY(const NpyHeader header, names.file.header(stored));
    if (!header.dtype || is_float(*header.dtype) || header.shape != Shape{total}) return std::vector<std::int64_t>{};
  }
  CTK_TRY(const NpyArray array, names.file.load(stored));
  if (!array.values.is_defined() || is_float(array.values.dtype()))
    return input_error(names.file.where(stored) + ": labels: expected integers (class indices), found " +
                       (array.values.is_defined() ? std::string(name_of(array.values.dtype())) : "strings") +
                       ". Save class indices as int64.");
  if (array.shape != Shape{total} && array.shape != Shape{total, 1})
    return input_error(names.file.where(stored) + ": labels: expected one for each of " + std::to_string(total) +
                       " samples of " + rows.origin(0) + ", found shape " + to_string(array.shape) + ".");
  CTK_TRY(const std::vector<std::int64_t> all, to_i64(array.values));
  if (array.values.dtype() == DType::u64) {
    const auto unsigned_values = array.values.values<std::uint64_t>();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] >= 0) continue;
      return input_error(names.file.where(stored) + ": labels: expected classes up to 9223372036854775807, found " +
                         std::to_string(unsigned_values[i]) + " at row " + std::to_string(i) + ". Mend the labels.");
    }
  }
  std::vector<std::int64_t> labels(rows.count());
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = all[rows.stored_row(i)];
  return labels;
}

}  // namespace

Result<std::shared_ptr<Rows>> open_npz(const SourceSpec& spec, std::span<const InputInfo> inputs) {
  CTK_TRY(const NpzFile file, NpzFile::open(spec.path));
  const Names names{file, spec.split};
  CTK_TRY(const std::vector<std::string> bound, bind_inputs(spec, inputs, names));
  auto rows = std::make_shared<ArrayRows>();
  rows->set_file(spec.path);
  bool own_arrays = !spec.split.empty();
  for (const std::string& name : bound) {
    CTK_TRY(NpyArray array, file.load(name));
    CTK_CHECK(rows->add(name, std::move(array), spec.path));
    own_arrays = own_arrays && name.ends_with("_" + spec.split);
  }
  if (own_arrays) rows->set_suffix(" of '" + bound[0] + "'");
  if (!spec.split.empty() && !own_arrays) {
    CTK_TRY(std::vector<std::size_t> kept, rows_of_split(spec, file, rows->total()));
    rows->keep(std::move(kept));
  }
  CTK_TRY(rows->labels, load_labels(spec, names, *rows, bound));
  return std::shared_ptr<Rows>(std::move(rows));
}

Result<std::shared_ptr<Rows>> open_npy(const SourceSpec& spec, std::span<const InputInfo> inputs) {
  if (inputs.size() != 1)
    return input_error(spec.path + ": a .npy file holds one array, the model has " + std::to_string(inputs.size()) +
                       " inputs (" + quoted_inputs(inputs) + "). Save an .npz.");
  if (!spec.inputs.empty() || !spec.labels.empty() || !spec.split.empty())
    return config_error(spec.path + ": a .npy file holds one array without a name: expected no " +
                        std::string(!spec.inputs.empty()   ? "inputs"
                                    : !spec.labels.empty() ? "labels"
                                                           : "split") +
                        " key. Leave it out, or save an .npz.");
  CTK_TRY(const MappedFile file, MappedFile::open(spec.path));
  const std::span<const std::byte> bytes = file.bytes();
  CTK_TRY(const NpyHeader header,
          parse_npy_header(bytes.first(std::min(bytes.size(), kNpyHeadBytes)), bytes.size(), spec.path));
  CTK_TRY(NpyArray array, load_npy(header, {bytes, file.owner()}, spec.path));
  auto rows = std::make_shared<ArrayRows>();
  rows->set_file(spec.path);
  CTK_CHECK(rows->add(std::filesystem::path(spec.path).stem().string(), std::move(array), spec.path));
  return std::shared_ptr<Rows>(std::move(rows));
}

}  // namespace ctk::data

// Rows of image folders and zip archives of images: files sorted by path, byte by byte; decoded when asked for.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "core/file.h"
#include "data/image.h"
#include "data/resample.h"
#include "data/rows.h"
#include "data/zip.h"

namespace ctk::data {
namespace {

// Where the encoded bytes come from: a folder or an archive.
class ImageFiles {
 public:
  virtual ~ImageFiles() = default;
  virtual Result<Bytes> read(std::size_t file) const = 0;
  std::vector<std::string> names;  // relative paths with '/'
};

class FolderFiles : public ImageFiles {
 public:
  explicit FolderFiles(std::string root) : root_(std::move(root)) {}
  Result<Bytes> read(std::size_t file) const override {
    CTK_TRY(const MappedFile mapped, MappedFile::open((std::filesystem::path(root_) / names[file]).string()));
    return Bytes{mapped.bytes(), mapped.owner()};
  }

 private:
  std::string root_;
};

class ZippedFiles : public ImageFiles {
 public:
  explicit ZippedFiles(ZipFile zip) : zip_(std::move(zip)) {}
  // Entries by name, once the names are sorted.
  void index() {
    std::map<std::string_view, const ZipEntry*> by_name;
    for (const ZipEntry& entry : zip_.entries()) by_name[entry.name] = &entry;
    for (const std::string& name : names) entries_.push_back(by_name[name]);
  }
  Result<Bytes> read(std::size_t file) const override { return zip_.read(*entries_[file]); }
  const ZipFile& zip() const { return zip_; }

 private:
  ZipFile zip_;
  std::vector<const ZipEntry*> entries_;  // into zip_, which does not change
};

class ImageRows : public Rows {
 public:
  ImageRows(const SourceSpec& spec, const InputInfo& input, std::unique_ptr<ImageFiles> files)
      : path_(spec.path), resize_(spec.resize), crop_(spec.crop), files_(std::move(files)) {
    if (!input.shape.empty()) wants_channels_ = input.shape[0];
    folder_ = (std::filesystem::path(path_) / "").parent_path().filename().string();  // with or without a last '/'
  }

  std::size_t count() const override { return files_->names.size(); }
  std::string name(std::size_t row) const override {
    return folder_.empty() ? files_->names[row] : folder_ + "/" + files_->names[row];
  }
  std::string origin(std::size_t) const override { return "the images (channels, height, width)"; }
  bool is_array() const override { return false; }

  Result<std::vector<Tensor>> read(std::size_t row) const override {
    CTK_TRY(Image image, decode(row));
    if (wants_channels_ == 1 && image.channels == 3)
      return input_error(where(row) +
                         ": expected a grey image (the model takes 1 channel), found RGB. Convert the images to grey.");
    if (wants_channels_ == 3 && image.channels == 1) image = as_rgb(image);
    if (resize_) {
      CTK_TRY(image, resize_shorter(image, *resize_, where(row)));
    }
    if (crop_) {
      CTK_TRY(image, crop_centre(image, *crop_, where(row)));
    }
    CTK_TRY(Tensor planes, to_planes(image));
    return std::vector<Tensor>{std::move(planes)};
  }

  Result<std::uint64_t> hash(std::size_t row) const override {
    CTK_TRY(const Image image, decode(row));
    CTK_TRY(const Tensor planes, to_planes(image));
    return hash_sample(std::span(&planes, 1));
  }

 private:
  std::string where(std::size_t row) const { return path_ + ": image '" + files_->names[row] + "'"; }

  Result<Image> decode(std::size_t row) const {
    CTK_TRY(const Bytes bytes, files_->read(row));
    return decode_image(bytes.bytes, where(row));
  }

  static Image as_rgb(const Image& grey) {
    Image rgb{grey.height, grey.width, 3, {}};
    rgb.pixels.reserve(grey.pixels.size() * 3);
    for (std::uint8_t pixel : grey.pixels) rgb.pixels.insert(rgb.pixels.end(), 3, pixel);
    return rgb;
  }

  std::string path_, folder_;
  std::optional<std::int64_t> resize_, crop_;
  std::unique_ptr<ImageFiles> files_;
  std::int64_t wants_channels_ = -1;
};

bool is_image_name(const std::string& name) {
  std::string extension = std::filesystem::path(name).extension().string();
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

bool is_hidden(const std::string& name) {
  return name[0] == '.' || name.find("/.") != std::string::npos || name.starts_with("__MACOSX/");
}

// Keeps visible images, sorted; says in `notes` what else was there.
Status keep_images(const std::string& path, std::vector<std::string>& names, std::vector<std::string>& notes) {
  std::sort(names.begin(), names.end());
  std::vector<std::string> kept;
  std::string first_other;
  for (std::string& name : names) {
    if (is_image_name(name) && !is_hidden(name))
      kept.push_back(std::move(name));
    else if (first_other.empty())
      first_other = name;
  }
  const std::size_t others = names.size() - kept.size();
  if (others != 0)
    notes.push_back(path + ": " + std::to_string(others) + " files that are no JPEG or PNG are ignored, the first '" +
                    first_other + "'");
  names = std::move(kept);
  if (!names.empty()) return {};
  return input_error(
      path + ": expected JPEG or PNG images, found none" +
      (others != 0 ? " among " + std::to_string(others) + " files, the first '" + first_other + "'" : std::string()) +
      ". Give a folder or archive that has some.");
}

// Class indices by file name or by sorted folder names.
Result<std::vector<std::int64_t>> labels_of(const SourceSpec& spec, const std::vector<std::string>& names) {
  std::vector<std::int64_t> labels;
  if (spec.labels.empty()) return labels;
  std::map<std::string, std::int64_t> classes;  // of folders, in sorted order
  for (const std::string& name : names) classes[std::filesystem::path(name).parent_path().string()] = 0;
  std::int64_t next = 0;
  for (auto& [folder, index] : classes) index = next++;
  for (const std::string& name : names) {
    const std::filesystem::path file(name);
    if (spec.labels == "from_folder") {
      const std::string folder = file.parent_path().string();
      if (folder.empty())
        return input_error(spec.path + ": labels: from_folder expects each image in the folder of its class, found '" +
                           name + "' outside any. Move it into one.");
      labels.push_back(classes[folder]);
      continue;
    }
    const std::string stem = file.stem().string();
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), value);
    if (error != std::errc() || end != stem.data() + stem.size() || value < 0)
      return input_error(spec.path +
                         ": labels: from_name expects the class index as file name (\"0017.jpg\"), found '" + name +
                         "'. Rename it, or use from_folder.");
    labels.push_back(value);
  }
  return labels;
}

// What both kinds check before they look at files.
Status check_spec(const SourceSpec& spec, std::span<const InputInfo> inputs) {
  if (inputs.size() != 1)
    return input_error(spec.path + ": images feed one model input, the model has " + std::to_string(inputs.size()) +
                       ". Save an .npz with an array for each.");
  if (!spec.inputs.empty()) return config_error(spec.path + ": inputs: images have no named arrays. Leave inputs out.");
  if (!spec.split.empty())
    return config_error(spec.path +
                        ": split: images have no array that says it. Leave split out; use skip and samples, or a "
                        "folder for each split.");
  if (!spec.labels.empty() && spec.labels != "from_name" && spec.labels != "from_folder")
    return config_error(spec.path + ": labels: expected from_name or from_folder for images, found '" + spec.labels +
                        "'.");
  return {};
}

Result<std::shared_ptr<Rows>> make_rows(const SourceSpec& spec, std::span<const InputInfo> inputs,
                                        std::unique_ptr<ImageFiles> files, std::vector<std::string> notes) {
  CTK_TRY(std::vector<std::int64_t> labels, labels_of(spec, files->names));
  auto rows = std::make_shared<ImageRows>(spec, inputs[0], std::move(files));
  rows->labels = std::move(labels);
  rows->notes = std::move(notes);
  return std::shared_ptr<Rows>(std::move(rows));
}

}  // namespace

Result<std::shared_ptr<Rows>> open_image_folder(const SourceSpec& spec, std::span<const InputInfo> inputs) {
  CTK_CHECK(check_spec(spec, inputs));
  auto files = std::make_unique<FolderFiles>(spec.path);
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(spec.path,
                                                   std::filesystem::directory_options::follow_directory_symlink, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    if (at.depth() > 16)
      return input_error(spec.path + ": folders lie more than 16 deep (a link to itself?). Flatten them.");
    std::error_code ignored;  // a link to nowhere is no regular file
    if (at->is_regular_file(ignored)) files->names.push_back(at->path().lexically_relative(spec.path).generic_string());
  }
  if (error)
    return input_error(spec.path + ": expected a folder of pictures that can be read, found: " + error.message() +
                       ". Check the path and its permissions.");
  std::vector<std::string> notes;
  CTK_CHECK(keep_images(spec.path, files->names, notes));
  return make_rows(spec, inputs, std::move(files), std::move(notes));
}

Result<std::shared_ptr<Rows>> open_image_zip(const SourceSpec& spec, std::span<const InputInfo> inputs) {
  CTK_CHECK(check_spec(spec, inputs));
  CTK_TRY(ZipFile zip, ZipFile::open(spec.path));
  auto files = std::make_unique<ZippedFiles>(std::move(zip));
  for (const ZipEntry& entry : files->zip().entries()) files->names.push_back(entry.name);
  std::vector<std::string> notes;
  CTK_CHECK(keep_images(spec.path, files->names, notes));
  files->index();
  return make_rows(spec, inputs, std::move(files), std::move(notes));
}

}  // namespace ctk::data

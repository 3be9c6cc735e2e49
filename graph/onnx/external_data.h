// External data: tensor bytes in a file beside the model. A location is a claim of an untrusted file, so it is checked
// before anything is opened.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/tensor.h"

namespace ctk::graph::onnx {

// A path relative to the model's folder without "..", root or NUL. Errors: input (names the location).
Status check_location(const std::string& location);

class ExternalData {
 public:
  // `folder` empty: every access is refused.
  explicit ExternalData(std::string folder) : folder_(std::move(folder)) {}

  // `length` bytes at `offset` of the file at `location`, as a tensor that shares the mapping where it is aligned for
  // `dtype`. Refused: locations that leave the folder (by "..", root or links), hard links, and what is no regular
  // file. Errors: input (names the location, and the numbers when the file is too short).
  Result<Tensor> tensor(const std::string& location, std::uint64_t offset, DType dtype, const Shape& shape);

  // Absolute paths, links followed, of the files opened so far; each once.
  std::vector<std::string> paths() const;

 private:
  struct File {
    std::string path;  // absolute, links followed
    MappedFile mapping;
  };
  Result<File> open(const std::string& location);

  std::string folder_;
  std::map<std::string, File> files_;  // by location
};

// Where a tensor file for writing may lie: `folder`/`location`, inside the folder after following links of its parent
// directories, which are created. Errors: input (names the location).
Result<std::string> path_for_writing(const std::string& folder, const std::string& location);

}  // namespace ctk::graph::onnx

// safetensors files, mapped: an 8-byte little-endian header length, the header as JSON, then the bytes of the tensors.
//   {"__metadata__": {"format": "pt"}, "model.norm.weight": {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}}
// data_offsets count from the end of the header. No number is used before it is compared with the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/tensor.h"

namespace ctk::graph::hf {

struct StoredTensor {
  std::string type;            // as the file spells it: "F32", "BF16"
  std::optional<DType> dtype;  // ours; none for 8-bit floats, which are carried and not computed with
  Shape shape;
  std::size_t begin = 0, bytes = 0;  // in the file
};

class SafetensorsFile {
 public:
  // Errors: input (path, tensor, and the numbers that disagree).
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  // The tensor's bytes, shared with the mapping (copied where they lie unaligned in the file). `name` must be there.
  // Errors: input (a type we have none for).
  Result<Tensor> tensor(const std::string& name) const;

 private:
  std::string path_;
  MappedFile file_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace ctk::graph::hf

// A checkpoint folder's weights: one safetensors file, or several by an index.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/hf/safetensors.h"

namespace ctk::graph::hf {

// The weights of a checkpoint folder: model.safetensors, or the shards that model.safetensors.index.json names.
class Checkpoint {
 public:
  // A tensor in two shards is the one that the index names, with a note. Errors: input (no weights; index and single
  // file both there; a shard missing; a tensor that the index promises and its shard lacks; two copies that it is
  // silent about).
  static Result<Checkpoint> open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  std::vector<std::string> paths() const;  // of the files that were opened
  const StoredTensor* find(const std::string& name) const;
  std::vector<std::string> names() const;
  const std::vector<std::string>& notes() const { return notes_; }  // copies that the index passes over
  Result<Tensor> tensor(const std::string& name) const;

 private:
  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::vector<std::string> notes_;
  std::map<std::string, std::size_t, std::less<>> file_of_;
};

}  // namespace ctk::graph::hf

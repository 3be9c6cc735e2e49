// Stage artifacts on disk, under the fingerprint of everything they depend on: <output>/.cache/<stage>-<fingerprint>.
// Artifacts are also what ranks share: rank 0 reads and writes them, and every rank restores a stage from the same
// bytes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/ranks.h"
#include "core/result.h"

namespace ctk::pipeline {

// Part of every fingerprint: raised when a stage would answer differently for the same inputs.
inline constexpr int kArtifactVersion = 7;

class ArtifactCache {
 public:
  ArtifactCache(std::string folder, bool use, Ranks* ranks = nullptr);
  // Contents of a complete artifact, or nothing. A damaged one (its trailing hash does not fit) counts as absent. All
  // ranks ask together, and get what rank 0 finds.
  std::optional<std::string> get(const std::string& stage, const std::string& fingerprint) const;
  // Whole or not at all; by rank 0, nothing is done on the others. Errors: input (disk).
  Status put(const std::string& stage, const std::string& fingerprint, const std::string& contents) const;
  std::string path(const std::string& stage, const std::string& fingerprint) const;

  Ranks& ranks() const;  // alone() while rank 0 works by itself
  bool is_shared() const { return !ranks_->is_alone(); }

  // Rank 0 does the work by itself: ranks() and get() then concern nobody else. Its bytes or its error to all.
  Result<std::string> first_does(std::string_view what, const std::function<Result<std::string>()>& work);
  // A stage of rank 0's: it runs there by itself, then on the others, who find the artifacts that it read or wrote and
  // write none. `is_needed`: whether the others have to; they do nothing otherwise. The same status on all.
  Status first_runs(std::string_view what, bool is_needed, const std::function<Status()>& stage);

 private:
  struct State {
    int by_itself = 0;                          // depth of work that rank 0 does alone
    bool is_replay = false;                     // on other ranks: what is asked for is in `seen`
    bool keeps = false;                         // on rank 0: what is read and written goes to `seen`
    std::map<std::string, std::string> seen{};  // by stage
  };
  std::optional<std::string> read(const std::string& file) const;

  std::string folder_;
  bool use_;
  Ranks* ranks_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace ctk::pipeline

// Picks the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/result.h"

namespace ctk::runtime {

struct Sampling {
  double temperature = 0;  // 0: the largest logit, the first of equals
  std::int64_t top_k = 0;  // only the k largest (0: all)
  double top_p = 1;        // of those the fewest, largest first, whose probabilities reach p
  std::uint64_t seed = 0;
};

// Errors: config (a number out of range: key, expected, found).
Status check_sampling(const Sampling& sampling);

// Probabilities are those at the temperature; equal logits go by id. The same seed and logits give the same tokens.
class Sampler {
 public:
  Sampler(const Sampling& sampling, std::size_t vocabulary);
  // logits [vocabulary]. Allocates nothing. Errors: input (a logit that is not finite).
  Result<std::int64_t> pick(std::span<const float> logits);

 private:
  struct Choice {
    double weight;
    std::int64_t id;
  };
  Sampling sampling_;
  Random random_;
  std::vector<Choice> choices_;
};

}  // namespace ctk::runtime

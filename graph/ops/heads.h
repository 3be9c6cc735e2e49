// Heads: how RotaryEmbedding and Attention lie in memory, [batch, heads, tokens, size] or [batch, tokens, heads *
// size].
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "graph/ops/check.h"

namespace ctk::graph {

struct Heads {
  std::size_t batch = 0, heads = 0, tokens = 0, size = 0;
  std::size_t batch_stride = 0, head_stride = 0, token_stride = 0;  // elements; those of one head lie together

  std::size_t offset(std::size_t b, std::size_t head, std::size_t token) const {
    return b * batch_stride + head * head_stride + token * token_stride;
  }
};

// `heads` counts for rank 3 only (attribute `attribute`; it must divide the last dimension). Errors: input.
inline Result<Heads> heads_of(std::string_view name, const Shape& shape, std::int64_t heads,
                              std::string_view attribute) {
  CTK_CHECK(expect_rank(name, shape, 3, 4));
  const auto dim = [&](std::size_t d) { return static_cast<std::size_t>(shape[d]); };
  Heads h;
  h.batch = dim(0);
  if (shape.size() == 4) {
    h.heads = dim(1), h.tokens = dim(2), h.size = dim(3);
    h.token_stride = h.size, h.head_stride = h.tokens * h.size;
  } else {
    if (heads < 1 || shape[2] % heads != 0) {
      return input_error(std::string(attribute) + ": expected a positive divisor of " + std::to_string(shape[2]) +
                         ", the last dimension of " + std::string(name) + " " + to_string(shape) + ", found " +
                         std::to_string(heads) + ". Correct the attribute.");
    }
    h.heads = static_cast<std::size_t>(heads), h.tokens = dim(1), h.size = dim(2) / h.heads;
    h.head_stride = h.size, h.token_stride = dim(2);
  }
  h.batch_stride = h.heads * h.tokens * h.size;
  return h;
}

}  // namespace ctk::graph

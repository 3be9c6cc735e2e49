// Caches of keys and values of one text: one for each Attention node, allocated once, written by the steps of a plan
// (PlanOptions::caches) behind the tokens that stand in them.
#pragma once

#include <map>
#include <memory>

#include "core/result.h"
#include "graph/graph.h"
#include "kernels/attention/attention.h"

namespace ctk::runtime {

class KvCaches {
 public:
  // Each cache holds `context` tokens.
  KvCaches(kernels::CacheForm form, std::size_t context) : form_(form), context_(context) {}

  // The cache of `node`, made when asked for the first time. Errors: input (out of memory).
  Result<kernels::KvCache> of(graph::NodeId node, std::size_t kv_heads, std::size_t key_size, std::size_t value_size);

  kernels::CacheForm form() const { return form_; }
  std::size_t context() const { return context_; }
  std::size_t bytes() const { return bytes_; }  // of all caches

  std::size_t tokens = 0;  // that stand in every cache: a run appends behind them, whoever runs it moves the number

 private:
  struct Held {
    std::shared_ptr<void> memory;
    kernels::KvCache cache;
  };
  kernels::CacheForm form_;
  std::size_t context_, bytes_ = 0;
  std::map<std::uint32_t, Held> held_;  // by node
};

}  // namespace ctk::runtime

// Reads a text token by token on a decoder, keeping keys and values: what stands in the caches is not computed again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/cpu_executor.h"

namespace ctk::runtime {

struct GenerateOptions {
  std::size_t context = 0;  // tokens the caches hold; 0: as many as the model has positions for, at most 2048
  kernels::CacheForm cache = kernels::CacheForm::f16;
  std::size_t chunk = 256;  // tokens read at once
};

class Generator {
 public:
  // `graph`: input_ids i64 [1, sequence] -> logits f32 [1, sequence, vocabulary]; causal Attention, positions by
  // RotaryEmbedding (graph/hf/decoder.h). Plans for one token and allocates the caches.
  // Errors: input (not such a graph: what was expected and found; out of memory), config (a context the model has no
  // positions for).
  static Result<std::unique_ptr<Generator>> create(graph::Graph graph, const GenerateOptions& options);

  // Makes the text `tokens`, whatever it was: what both begin with is kept, the rest read in chunks. Answers the logits
  // behind the last token [vocabulary], valid until the next call.
  // Errors: input (no token, more than context(), an id outside the vocabulary).
  Result<std::span<const float>> read(std::span<const std::int64_t> tokens);
  // One token more. Allocates nothing, but where the text is full: then its first token and the latest half of the
  // rest stay, read anew at the positions they now have. Errors: input (an id outside the vocabulary).
  Result<std::span<const float>> append(std::int64_t token);

  std::size_t context() const { return caches_->context(); }
  std::size_t vocabulary() const { return vocabulary_; }
  std::span<const std::int64_t> tokens() const { return tokens_; }  // the text
  std::size_t reused() const { return reused_; }                    // tokens the last read() did not compute
  std::size_t cache_bytes() const { return caches_->bytes(); }
  std::size_t packed_bytes() const { return one_->packed_bytes(); }  // weights in kernel layout
  std::size_t activation_bytes() const;                              // of all plans
  // The plan that reads one token, for timing its steps, and the one that reads chunk() tokens: null before the first
  // text of so many.
  CpuExecutor& one_token() { return *one_; }
  CpuExecutor* chunk_reader() { return many_.get(); }
  std::size_t chunk() const { return chunk_; }
  // Goes back to the text's first so many tokens, at most those there are.
  void keep(std::size_t tokens);

 private:
  explicit Generator(graph::Graph graph) : graph_(std::move(graph)) {}
  Result<CpuExecutor*> executor(std::size_t tokens);
  Status run(CpuExecutor& executor, std::span<const std::int64_t> tokens);
  Status slide();

  graph::Graph graph_;
  std::size_t vocabulary_ = 0, chunk_ = 0, reused_ = 0;
  std::shared_ptr<KvCaches> caches_;
  std::shared_ptr<PackedWeights> packed_ = std::make_shared<PackedWeights>();
  std::unique_ptr<CpuExecutor> one_, many_, rest_;  // by tokens at once: 1, chunk_, fewer
  std::size_t rest_tokens_ = 0;
  std::vector<std::int64_t> tokens_, kept_;
  std::span<const float> logits_;
};

}  // namespace ctk::runtime

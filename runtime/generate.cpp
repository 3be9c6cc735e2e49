#include "runtime/generate.h"

#include <algorithm>

#include "runtime/generate_graph.h"

namespace ctk::runtime {
namespace {

constexpr std::size_t kDefaultContext = 2048, kLeastContext = 2;

}  // namespace

Result<std::unique_ptr<Generator>> Generator::create(graph::Graph graph, const GenerateOptions& options) {
  std::unique_ptr<Generator> made(new Generator(std::move(graph)));
  CTK_TRY(const ReadingGraph ready, make_reading_graph(made->graph_));
  const std::size_t context = options.context == 0 ? std::min(kDefaultContext, ready.positions) : options.context;
  if (context < kLeastContext || context > ready.positions) {
    return config_error("context: expected from " + std::to_string(kLeastContext) + " to " +
                        std::to_string(ready.positions) + " tokens, which the model has positions for, found " +
                        std::to_string(context) + ". Ask for a context within");
  }
  made->vocabulary_ = ready.vocabulary;
  made->chunk_ = std::clamp<std::size_t>(options.chunk, 1, context);
  made->caches_ = std::make_shared<KvCaches>(options.cache, context);
  made->tokens_.reserve(context);
  made->kept_.reserve(context);
  CTK_TRY(CpuExecutor* const one, made->executor(1));
  static_cast<void>(one);
  return made;
}

std::size_t Generator::activation_bytes() const {
  std::size_t bytes = 0;
  for (const auto* executor : {&one_, &many_, &rest_}) {
    if (*executor != nullptr) bytes += (*executor)->activation_bytes();
  }
  return bytes;
}

Result<CpuExecutor*> Generator::executor(std::size_t tokens) {
  std::unique_ptr<CpuExecutor>& slot = tokens == 1 ? one_ : tokens == chunk_ ? many_ : rest_;
  if (slot != nullptr && (&slot != &rest_ || rest_tokens_ == tokens)) return slot.get();
  slot.reset();
  ExecutorOptions options;
  options.packed = packed_;
  options.caches = caches_;
  const Shape shape = {1, static_cast<std::int64_t>(tokens)};
  CTK_TRY(slot, CpuExecutor::create(graph_, {shape, shape}, options));
  if (&slot == &rest_) rest_tokens_ = tokens;
  return slot.get();
}

Status Generator::run(CpuExecutor& executor, std::span<const std::int64_t> tokens) {
  for (std::int64_t token : tokens) {
    if (token >= 0 && token < static_cast<std::int64_t>(vocabulary_)) continue;
    return input_error("expected token ids below " + std::to_string(vocabulary_) + ", the model's vocabulary, found " +
                       std::to_string(token) + ". Use the tokenizer that came with the model");
  }
  const Plan& plan = executor.plan();
  const RunContext& context = executor.context();
  std::copy(tokens.begin(), tokens.end(), context.at<std::int64_t>(plan.input_slots[0]));
  auto* const positions = context.at<std::int64_t>(plan.input_slots[1]);
  for (std::size_t i = 0; i < tokens.size(); ++i) positions[i] = static_cast<std::int64_t>(caches_->tokens + i);
  CTK_CHECK(executor.run_steps());
  caches_->tokens += tokens.size();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  logits_ = {context.at<const float>(plan.output_slots[0]), vocabulary_};
  return {};
}

Result<std::span<const float>> Generator::read(std::span<const std::int64_t> tokens) {
  if (tokens.empty()) return input_error("expected a text of one token or more, found none. Give a prompt");
  if (tokens.size() > context()) {
    return input_error("expected a text of at most " + std::to_string(context()) + " tokens, the context, found " +
                       std::to_string(tokens.size()) + ". Shorten it, or ask for a longer context");
  }
  const auto shared = std::mismatch(tokens.begin(), tokens.end(), tokens_.begin(), tokens_.end()).first;
  // The last token is read in any case: its logits are the answer.
  reused_ = std::min(static_cast<std::size_t>(shared - tokens.begin()), tokens.size() - 1);
  tokens_.resize(reused_);
  caches_->tokens = reused_;
  while (caches_->tokens < tokens.size()) {
    const std::size_t count = std::min(chunk_, tokens.size() - caches_->tokens);
    CTK_TRY(CpuExecutor* const ready, executor(count));
    CTK_CHECK(run(*ready, tokens.subspan(caches_->tokens, count)));
  }
  return logits_;
}

void Generator::keep(std::size_t tokens) {
  tokens_.resize(std::min(tokens, tokens_.size()));
  caches_->tokens = tokens_.size();
}

Status Generator::slide() {
  const std::size_t latest = (tokens_.size() - 1) / 2;
  kept_.assign(1, tokens_.front());
  kept_.insert(kept_.end(), tokens_.end() - static_cast<std::ptrdiff_t>(latest), tokens_.end());
  auto read_again = read(kept_);
  if (!read_again) return std::move(read_again).error();
  return {};
}

Result<std::span<const float>> Generator::append(std::int64_t token) {
  if (caches_->tokens == context()) CTK_CHECK(slide());
  CTK_CHECK(run(*one_, std::span(&token, 1)));
  return logits_;
}

}  // namespace ctk::runtime

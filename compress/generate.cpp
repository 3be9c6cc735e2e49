#include "compress/generate.h"

#include <chrono>
#include <filesystem>

#include "compress/chat.h"
#include "compress/interrupt.h"
#include "compress/model.h"
#include "compress/model_tokenizer.h"
#include "compress/quantize/apply.h"
#include "core/file.h"
#include "core/printable.h"
#include "graph/layer.h"

namespace ctk::pipeline {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of a folder or a bundle, the tokenizer.json or tokenizer.model beside its files; of a .gguf file without one, its
// vocabulary.
Result<std::shared_ptr<const data::Tokenizer>> find_tokenizer(const std::string& model, const std::string& given) {
  if (!given.empty()) return open_model_tokenizer(given);
  std::error_code ignored;
  const fs::path folder = fs::is_directory(model, ignored) ? fs::path(model) : fs::path(model).parent_path();
  const fs::path beside = folder / "tokenizer.json";
  if (fs::is_regular_file(beside, ignored)) return data::open_tokenizer(beside.string());
  if (fs::is_regular_file(folder / "tokenizer.model", ignored)) return data::open_tokenizer(folder.string());
  if (is_gguf_file(model)) return open_model_tokenizer(model);
  return input_error(printable(model) + ": expected a tokenizer.json beside the model, found none at \"" +
                     printable(beside.string()) + "\". Name the model's tokenizer with --tokenizer");
}

// Hands on the text of ids as soon as it cannot change any more: a character may take several tokens.
class TextStream {
 public:
  explicit TextStream(const data::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // `context`: the prompt's last tokens, since the first new token's text may depend on what stands before it.
  void start(std::span<const std::int64_t> context) {
    window_.assign(context.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(context.size(), kBefore)),
                   context.end());
    shown_ = window_.size();
  }
  Result<std::string> add(std::int64_t token) {
    window_.push_back(token);
    CTK_TRY(const std::string before, tokenizer_.decode(std::span(window_).first(shown_), true));
    CTK_TRY(const std::string now, tokenizer_.decode(window_, true));
    if (now.size() <= before.size() || ends_within_character(now)) return std::string();
    window_.erase(window_.begin(),
                  window_.begin() + static_cast<std::ptrdiff_t>(shown_ > kBefore ? shown_ - kBefore : std::size_t{0}));
    shown_ = window_.size();
    return now.substr(before.size());
  }
  // What was held back at the end of the text.
  Result<std::string> rest() {
    CTK_TRY(const std::string before, tokenizer_.decode(std::span(window_).first(shown_), true));
    CTK_TRY(const std::string now, tokenizer_.decode(window_, true));
    return now.size() > before.size() ? now.substr(before.size()) : std::string();
  }

 private:
  static constexpr std::size_t kBefore = 4;

  static bool ends_within_character(const std::string& text) {
    std::size_t tail = 0;
    for (std::size_t i = text.size(); i-- > 0 && tail < 4;) {
      const auto byte = static_cast<unsigned char>(text[i]);
      ++tail;
      if ((byte & 0xc0) == 0x80) continue;
      const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      return length > tail;
    }
    return text.ends_with("\xef\xbf\xbd");
  }

  const data::Tokenizer& tokenizer_;
  std::vector<std::int64_t> window_;
  std::size_t shown_ = 0;
};

Result<std::vector<std::int64_t>> prompt_ids(const data::Tokenizer& tokenizer, const GenerateRequest& request) {
  data::EncodeOptions options;
  options.add_special_tokens = request.adds_special_tokens && !request.is_chat;  // a template writes its own
  std::string prompt = request.prompt;
  if (request.is_chat) {
    ChatRequest chat{request.model, request.chat_template, {}};
    if (!request.system.empty()) chat.messages.push_back({"system", request.system});
    chat.messages.push_back({"user", request.prompt});
    CTK_TRY(prompt, chat_prompt(chat, tokenizer));
  } else if (!request.system.empty() || !request.chat_template.empty()) {
    return config_error(std::string("--") + (request.system.empty() ? "chat-template" : "system") +
                        ": expected --chat beside it, found none. Add it, or leave both out");
  }
  CTK_TRY(std::vector<std::int64_t> ids, tokenizer.encode(prompt, options));
  const auto bos = tokenizer.bos_id();
  if (request.adds_bos && !bos) {
    return config_error("--bos: expected a tokenizer with such a token, found none in \"" +
                        printable(tokenizer.where()) + "\". Leave the switch out");
  }
  const bool starts = request.adds_bos && (ids.empty() || ids.front() != *bos);
  if (starts || (ids.empty() && request.adds_special_tokens && bos)) ids.insert(ids.begin(), *bos);
  if (ids.empty()) return config_error("--prompt: expected a text, found \"\". Give the beginning of a text");
  return ids;
}

}  // namespace

std::size_t set_activation_bits(graph::Graph& graph, int bits) {
  std::size_t changed = 0;
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    graph::Value& weight = graph.value(layer.weight);
    // Without groups, activations of 8 bits are codes with calibrated ranges.
    if (weight.quantized == nullptr || weight.quantized->scheme.granularity != Granularity::per_group) continue;
    auto noted = std::make_shared<QuantTensor>(*weight.quantized);
    noted->scheme.activation_bits = bits;
    weight.quantized = std::move(noted);
    graph.node(layer.node).scheme.activation_bits = bits;
    ++changed;
  }
  return changed;
}

Result<LanguageModel> load_language_model(const std::string& model, const std::string& tokenizer) {
  LanguageModel loaded;
  CTK_TRY(loaded.graph, read_graph(model));
  CTK_TRY(loaded.tokenizer, find_tokenizer(model, tokenizer));
  std::error_code ignored;
  if (!fs::is_directory(model, ignored)) return loaded;  // bundles are written after the passes
  if (auto passes = graph::run_passes(loaded.graph); !passes) return std::move(passes).error().with_context(model);
  CTK_CHECK(quantization::fold_gemm_factors(loaded.graph));
  return loaded;
}

Result<GenerateResult> generate(const GenerateRequest& request, const std::function<void(std::string_view)>& on_text) {
  CTK_CHECK(runtime::check_sampling(request.sampling));
  GenerateResult result;
  const Clock::time_point start = Clock::now();
  CTK_TRY(LanguageModel model, load_language_model(request.model, request.tokenizer));
  if (request.activation_bits != 0 && set_activation_bits(model.graph, request.activation_bits) == 0) {
    return config_error("--activations: expected a model with coded weights in groups, found none in \"" +
                        printable(request.model) + "\". Leave the switch out");
  }
  auto made = runtime::Generator::create(std::move(model.graph), request.decoder);
  if (!made) return std::move(made).error().with_context(printable(request.model));
  runtime::Generator& generator = **made;
  const data::Tokenizer& tokenizer = *model.tokenizer;
  if (tokenizer.vocabulary_size() > static_cast<std::int64_t>(generator.vocabulary())) {
    return input_error(printable(request.model) + ": expected a tokenizer of at most " +
                       std::to_string(generator.vocabulary()) + " tokens, the model's vocabulary, found " +
                       std::to_string(tokenizer.vocabulary_size()) + " in \"" + printable(tokenizer.where()) +
                       "\". Use the tokenizer that came with the model");
  }
  CTK_TRY(std::vector<std::int64_t> ids, prompt_ids(tokenizer, request));
  if (ids.size() > generator.context()) {
    return config_error("--prompt: expected at most " + std::to_string(generator.context()) +
                        " tokens, the context, found " + std::to_string(ids.size()) +
                        ". Shorten the prompt, or raise --context");
  }
  result.load_seconds = seconds_since(start);
  result.context = generator.context();
  result.prompt_tokens = ids.size();

  runtime::Sampler sampler(request.sampling, generator.vocabulary());
  TextStream stream(tokenizer);
  stream.start(ids);
  const Clock::time_point begin = Clock::now();
  CTK_TRY(std::span<const float> logits, generator.read(ids));
  result.prompt_tokens_per_second = static_cast<double>(ids.size()) / seconds_since(begin);
  Clock::time_point first = begin;
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (on_text && !text.empty()) on_text(text);
  };
  while (result.new_tokens < request.most_tokens) {
    CTK_CHECK(check_interrupt());
    if (result.new_tokens > 0) {
      CTK_TRY(logits, generator.append(ids.back()));
    }
    auto token = sampler.pick(logits);
    if (!token) return std::move(token).error().with_context(printable(request.model));
    if (result.new_tokens == 0) {
      result.first_token_seconds = seconds_since(begin);
      first = Clock::now();
    }
    if (request.stops_at_end && tokenizer.eos_id() && *token == *tokenizer.eos_id()) {
      result.ended = true;
      break;
    }
    ids.push_back(*token);
    ++result.new_tokens;
    CTK_TRY(const std::string text, stream.add(*token));
    show(text);
  }
  if (result.new_tokens > 1) {
    result.tokens_per_second = static_cast<double>(result.new_tokens - 1) / seconds_since(first);
  }
  CTK_TRY(const std::string rest, stream.rest());
  show(rest);
  result.cache_bytes = generator.cache_bytes();
  result.packed_bytes = generator.packed_bytes();
  return result;
}

}  // namespace ctk::pipeline

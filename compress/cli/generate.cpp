// compress generate: text from a language model, with the time to the first token and tokens a second.
#include "compress/generate.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "core/parallel.h"

namespace ctk::cli {
namespace {

struct Arguments {
  pipeline::GenerateRequest request;
  std::string cache = "fp16";
  std::size_t context = 0;
  bool is_raw = false, runs_on = false;
};

Status run(const Session& session, Arguments& arguments) {
  pipeline::GenerateRequest& request = arguments.request;
  if (session.threads > 0) set_threads(session.threads);
  using kernels::CacheForm;
  request.decoder.cache = arguments.cache == "fp32"   ? CacheForm::f32
                          : arguments.cache == "int8" ? CacheForm::i8
                                                      : CacheForm::f16;
  request.decoder.context = arguments.context;
  request.adds_special_tokens = !arguments.is_raw;
  request.stops_at_end = !arguments.runs_on;
  const auto show = [&](std::string_view text) {
    if (session.is_json) return;
    print(std::string(text));
    std::fflush(stdout);
  };
  if (!session.is_json && !request.is_chat) show(request.prompt);
  auto generated = pipeline::generate(request, show);
  if (!session.is_json) print("\n");
  if (!generated) return std::move(generated).error();
  const pipeline::GenerateResult& r = *generated;
  if (session.is_json) {
    const nlohmann::ordered_json json = {
        {"model", request.model},
        {"prompt", request.prompt},
        {"text", r.text},
        {"ended", r.ended},
        {"tokens", {{"prompt", r.prompt_tokens}, {"new", r.new_tokens}}},
        {"seconds", {{"load", r.load_seconds}, {"first_token", r.first_token_seconds}}},
        {"tokens_per_second", {{"prompt", r.prompt_tokens_per_second}, {"new", r.tokens_per_second}}},
        {"context", r.context},
        {"cache", arguments.cache},
        {"bytes", {{"cache", r.cache_bytes}, {"weights", r.packed_bytes}}},
        {"threads", threads()}};
    print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    return {};
  }
  std::fprintf(stderr,
               "%zu prompt tokens, %zu new; load %.3f s, first token %.3f s, prompt %.1f tokens/s, then %.1f tokens/s "
               "(%d threads)\n",
               r.prompt_tokens, r.new_tokens, r.load_seconds, r.first_token_seconds, r.prompt_tokens_per_second,
               r.tokens_per_second, threads());
  return {};
}

}  // namespace

void add_generate(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("generate", "Write text with a language model");
  const auto arguments = std::make_shared<Arguments>();
  pipeline::GenerateRequest& request = arguments->request;
  verb->add_option("model", request.model, "A checkpoint folder, or a bundle made from one")->required();
  verb->add_option("--prompt", request.prompt, "The beginning of the text")->required();
  verb->add_option("--tokenizer", request.tokenizer,
                   "A tokenizer.json, its folder or a .gguf file (default: the model's own)");
  verb->add_option("--tokens", request.most_tokens, "Tokens to write at most (default 128)");
  verb->add_option("--context", arguments->context, "Tokens remembered (default: the model's, at most 2048)");
  verb->add_option("--cache", arguments->cache, "Form of remembered keys and values (default fp16)")
      ->check(CLI::IsMember({"fp32", "fp16", "int8"}));
  verb->add_option("--chunk", request.decoder.chunk, "Prompt tokens read at once (default 256)")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--activations", request.activation_bits, "Bits of activations beside coded weights in groups")
      ->check(CLI::IsMember({8, 16}));
  verb->add_option("--temperature", request.sampling.temperature, "0: always the likeliest token (default)");
  verb->add_option("--top-k", request.sampling.top_k, "Draw from the k likeliest only");
  verb->add_option("--top-p", request.sampling.top_p, "Draw from the likeliest that reach probability p");
  verb->add_option("--seed", request.sampling.seed, "Of the draws (default 0)");
  verb->add_flag("--chat", request.is_chat, "The prompt is a message: put it into the model's chat template");
  verb->add_option("--system", request.system, "With --chat: the system message before it");
  verb->add_option("--chat-template", request.chat_template, "With --chat: a file with another template");
  verb->add_flag("--bos", request.adds_bos, "Begin with the tokenizer's BOS token");
  verb->add_flag("--raw", arguments->is_raw, "No special tokens around the prompt");
  verb->add_flag("--ignore-end", arguments->runs_on, "Write on past the end-of-text token");
  add_json(*verb, session);
  add_threads(*verb, session);
  verb->callback(
      [&session, arguments] { session.action = [&session, arguments] { return run(session, *arguments); }; });
}

}  // namespace ctk::cli

// compress estimate: size, caches and bounds of speed of a model, without running it.
#include "compress/estimate/estimate.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "core/parallel.h"
#include "search/problem.h"

namespace ctk::cli {
namespace {

using nlohmann::ordered_json;
using search::format_amount;
using namespace pipeline::estimate;

std::string rate(double us) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g", us > 0 ? 1e6 / us : 0.0);
  return text;
}

std::string limit_name(const Bound& bound) {
  return bound.is_memory_bound() ? "memory" : "arithmetic";
}

ordered_json bound_json(const Bound& bound) {
  return {{"us", bound.us()},
          {"bytes", bound.bytes},
          {"ops", bound.ops},
          {"memory_us", bound.memory_us},
          {"compute_us", bound.compute_us},
          {"bound_by", limit_name(bound)}};
}

std::string as_json(const Estimate& e) {
  ordered_json json = {{"model", e.outline.name},
                       {"parameters", e.outline.parameters},
                       {"scheme", e.scheme},
                       {"unit",
                        {{"name", e.unit.name},
                         {"source", e.unit.source},
                         {"bandwidth_gb_s", e.unit.limits.bandwidth_gb_s},
                         {"peak_gops", e.unit.limits.peak_gops}}},
                       {"weight_bytes", e.weight_bytes},
                       {"streamed_bytes", e.streamed_bytes}};
  if (e.contexts.empty()) {
    json["run"] = bound_json(e.run);
  } else {
    ordered_json contexts = ordered_json::array();
    for (const ContextRow& row : e.contexts) {
      ordered_json decode = bound_json(row.decode);
      decode["tokens_per_second"] = 1e6 / row.decode.us();
      contexts.push_back({{"context", row.context},
                          {"cache_bytes", {{"fp16", row.cache_fp16}, {"int8", row.cache_int8}}},
                          {"decode", std::move(decode)}});
    }
    json["contexts"] = std::move(contexts);
  }
  if (e.prompt > 0) {
    json["prefill"] = bound_json(e.prefill);
    json["prefill"]["tokens"] = e.prompt;
  }
  if (e.measured) {
    json["measured"] = e.contexts.empty()
                           ? ordered_json{{"run_us", e.measured->run_us}}
                           : ordered_json{{"decode_us", e.measured->decode_us}, {"prefill_us", e.measured->prefill_us}};
    json["measured"]["threads"] = threads();
  }
  return json.dump(2) + "\n";
}

// "; measured 9.1 ms, 0.82 of the bound's speed"
std::string beside(double measured_us, const Bound& bound) {
  char share[32];
  std::snprintf(share, sizeof share, "%.2f", bound.us() / measured_us);
  return "; measured " + format_amount(measured_us, "us") + ", " + share + " of the bound's speed";
}

std::string as_text(const Estimate& e) {
  std::string text = e.outline.name + ": " + std::to_string(e.outline.parameters) + " parameters\n";
  char limits[128];
  std::snprintf(limits, sizeof limits, ": %.4g GB/s, %.4g GOP/s, ", e.unit.limits.bandwidth_gb_s,
                e.unit.limits.peak_gops);
  text += e.unit.name + limits + e.unit.source + "\n";
  text += "weights " + e.scheme + ": " + format_amount(e.weight_bytes, "B") + ", of which " +
          format_amount(e.streamed_bytes, "B") + " are read for each " + (e.contexts.empty() ? "run" : "token") + "\n";
  if (e.streamed_bytes <= e.unit.cache_bytes)
    text += "they fit into this processor's caches, so the rate of memory is no bound while they stay there\n";
  if (e.contexts.empty()) {
    text += "a run takes at least " + format_amount(e.run.us(), "us") + ", by " + limit_name(e.run) +
            (e.measured ? beside(e.measured->run_us, e.run) : "") + "\n";
    return text;
  }
  for (std::size_t i = 0; i < e.contexts.size(); ++i) {
    const ContextRow& row = e.contexts[i];
    if (row.context > 0)
      text += "context " + std::to_string(row.context) + ": cache " + format_amount(row.cache_fp16, "B") +
              " in fp16, " + format_amount(row.cache_int8, "B") + " in int8; ";
    text += "a token takes at least " + format_amount(row.decode.us(), "us") + " (" + rate(row.decode.us()) +
            " tokens/s), by " + limit_name(row.decode) +
            (i == 0 && e.measured ? beside(e.measured->decode_us, row.decode) : "") + "\n";
  }
  if (e.prompt > 0) {
    text += "a prompt of " + std::to_string(e.prompt) + " tokens takes at least " +
            format_amount(e.prefill.us(), "us") + ", by " + limit_name(e.prefill) +
            (e.measured ? beside(e.measured->prefill_us, e.prefill) : "") + "\n";
  }
  return text;
}

Status run(const Session& session, const Request& request) {
  if (session.threads > 0) set_threads(session.threads);
  CTK_TRY(const Estimate estimate, make_estimate(request));
  print(session.is_json ? as_json(estimate) : as_text(estimate));
  return {};
}

}  // namespace

void add_estimate(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("estimate", "Size, caches and bounds of speed of a model, without running it");
  const auto request = std::make_shared<Request>();
  verb->add_option("model", request->model,
                   "A checkpoint folder (config.json is enough), an .onnx, .gguf or bundle file");
  verb->add_option("--target", request->target,
                   "A device card with bandwidth_gb_s and peak_gops (default: this processor, measured)");
  verb->add_option("--scheme", request->scheme, "Of every layer, like w4a16_g32 (default: as stored)");
  verb->add_option("--context", request->contexts, "Tokens remembered; several with commas")->delimiter(',');
  verb->add_option("--prompt", request->prompt, "Tokens of the prompt (default 512)");
  verb->add_option("--parameters", request->parameters, "Instead of a model: number of weights, like 4e9");
  verb->add_option("--bits", request->bits, "With --parameters: of each weight");
  verb->add_flag("--measure", request->measures, "Also run the model as it is stored on this processor");
  add_json(*verb, session);
  add_threads(*verb, session);
  verb->callback([&session, request] { session.action = [&session, request] { return run(session, *request); }; });
}

}  // namespace ctk::cli

#include "compress/estimate/estimate.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "compress/estimate/machine_limits.h"
#include "compress/generate.h"
#include "compress/model.h"
#include "compress/summary.h"
#include "compress/target.h"
#include "compress/units.h"
#include "core/cpu_isa.h"
#include "core/parallel.h"
#include "core/printable.h"
#include "runtime/generate.h"
#include "runtime/measure.h"

namespace ctk::pipeline::estimate {
namespace {

constexpr std::int64_t kShortContext = 512, kMostContext = std::int64_t{1} << 30;
constexpr double kInt8BytesANumber = 1.0 + 2.0 / 64.0;

Result<Unit> find_unit(const std::string& target) {
  Unit unit;
  if (!target.empty() && target != "cpu") {
    CTK_TRY(const TargetCard card, load_target(target, TargetUse::estimate));
    unit.name = card.name;
    unit.limits = {card.bandwidth_gb_s, card.peak_gops};
    unit.source = "from the card";
    if (unit.limits.bandwidth_gb_s > 0) return unit;  // other kinds have one, or their card was refused
    if (card.threads > 0) set_threads(card.threads);
  }
  if (unit.name.empty()) unit.name = cpu_model();
  CTK_TRY(const Limits measured, measure_limits());
  unit.limits.bandwidth_gb_s = measured.bandwidth_gb_s;
  if (unit.limits.peak_gops <= 0) unit.limits.peak_gops = measured.peak_gops;
  unit.cache_bytes = static_cast<double>(std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE)));
  unit.source = "measured with " + std::to_string(threads()) + (threads() == 1 ? " thread" : " threads");
  return unit;
}

Error refused(const std::string& key, const std::string& expected, const std::string& found, const std::string& fix) {
  return config_error("estimate: " + key + ": expected " + expected + ", found " + found + ". " + fix);
}

Status check(const Request& request) {
  const bool is_plain = request.parameters != 0 || request.bits != 0;
  if (is_plain == !request.model.empty()) {
    return config_error(std::string("estimate: expected either a model or --parameters with --bits, found ") +
                        (is_plain ? "both. Leave one out" : "neither. Name a model"));
  }
  if (is_plain) {
    if (!(request.parameters >= 1) || !std::isfinite(request.parameters))
      return refused("--parameters", "a number of weights from 1 on", to_text(request.parameters),
                     "Give for example 4e9");
    if (!(request.bits > 0 && request.bits <= 64))
      return refused("--bits", "bits of a weight, above 0 and at most 64", to_text(request.bits), "Give for example 4");
    if (!request.scheme.empty() || request.measures || !request.contexts.empty())
      return config_error(
          "estimate: expected a model beside --scheme, --context and --measure, found --parameters. Name a model, or "
          "leave them out");
  }
  for (const std::int64_t context : request.contexts) {
    if (context < 1 || context > kMostContext)
      return refused("--context", "tokens from 1 to " + std::to_string(kMostContext), std::to_string(context),
                     "Correct it");
  }
  if (request.prompt < 1 || request.prompt > kMostContext)
    return refused("--prompt", "tokens from 1 to " + std::to_string(kMostContext), std::to_string(request.prompt),
                   "Correct it");
  if (request.measures && !request.scheme.empty())
    return config_error("estimate: --measure: expected the model as it is stored, found --scheme \"" +
                        printable(request.scheme) +
                        "\". Leave the scheme out, or estimate the bundle that `compress run` writes in it");
  return {};
}

std::vector<std::int64_t> contexts_of(const Request& request, const Outline& outline) {
  std::vector<std::int64_t> contexts = request.contexts;
  if (contexts.empty()) {
    const std::int64_t most = std::max<std::int64_t>(outline.most_context, 1);
    for (std::int64_t c = std::min(kShortContext, most); c < most; c *= 4) contexts.push_back(c);
    contexts.push_back(most);
  }
  std::ranges::sort(contexts);
  contexts.erase(std::ranges::unique(contexts).begin(), contexts.end());
  return contexts;
}

template <class Body>
Result<double> median_seconds(const Body& body, int runs) {
  std::vector<double> times;
  for (int run = 0; run <= runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    CTK_CHECK(body(run));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (run > 0) times.push_back(time.count());  // the first one warms up
  }
  return runtime::median_of(times);
}

Result<Measured> measure_decoder(const Request& request, const Estimate& estimate) {
  constexpr int kTokens = 24, kPrompts = 3;
  CTK_TRY(graph::Graph graph, read_graph(request.model));
  CTK_TRY(const auto passes, graph::run_passes(graph));
  runtime::GenerateOptions options;
  const std::int64_t context = estimate.contexts.front().context;
  options.context = static_cast<std::size_t>(std::max(context + kTokens + 1, request.prompt));
  options.context =
      std::min(options.context, static_cast<std::size_t>(std::max<std::int64_t>(estimate.outline.most_context, 1)));
  auto made = runtime::Generator::create(std::move(graph), options);
  if (!made) return std::move(made).error().with_context(printable(request.model));
  runtime::Generator& generator = **made;
  const auto text = [&](std::int64_t length, std::int64_t first) {
    std::vector<std::int64_t> ids(std::min(static_cast<std::size_t>(length), generator.context()));
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = (first + 37 * static_cast<std::int64_t>(i)) % static_cast<std::int64_t>(generator.vocabulary());
    return ids;
  };
  Measured measured;
  CTK_TRY(const double prefill, median_seconds(
                                    [&](int run) -> Status {
                                      CTK_TRY(const auto logits, generator.read(text(request.prompt, 1 + run)));
                                      return {};
                                    },
                                    kPrompts));
  measured.prefill_us = prefill * 1e6;
  const std::int64_t before =
      std::max<std::int64_t>(1, std::min(context, static_cast<std::int64_t>(generator.context()) - kTokens - 1));
  CTK_TRY(const auto logits, generator.read(text(before, 0)));
  CTK_TRY(const double decode, median_seconds(
                                   [&](int run) -> Status {
                                     CTK_TRY(const auto next, generator.append(run % 7));
                                     return {};
                                   },
                                   kTokens));
  measured.decode_us = decode * 1e6;
  return measured;
}

Result<Measured> measure_network(const Request& request) {
  CTK_TRY(const LoadedModel model, load_model(request.model));
  if (auto sized = require_fixed_samples(model.graph); !sized)
    return std::move(sized).error().with_context(request.model);
  CTK_TRY(auto executor, runtime::CpuExecutor::create(model.graph, batch_shapes(model, 1)));
  runtime::CpuExecutor* const turn[] = {executor.get()};
  CTK_TRY(const auto times, runtime::measure_interleaved(turn, {}));
  Measured measured;
  measured.run_us = times[0].median_us;
  return measured;
}

void fill_bounds(const Request& request, Estimate& estimate) {
  const Outline& o = estimate.outline;
  double macs = 0;
  for (const Matrix& matrix : o.matrices) macs += matrix.macs;
  const double read = estimate.streamed_bytes + o.row_bytes;
  if (!o.is_decoder) {
    estimate.run = bound_of(estimate.unit, read, 2 * macs);
    return;
  }
  for (const std::int64_t context : contexts_of(request, o)) {
    ContextRow row;
    row.context = context;
    const auto tokens = static_cast<double>(context);
    row.cache_fp16 = 2 * o.cache_numbers * tokens;
    row.cache_int8 = kInt8BytesANumber * o.cache_numbers * tokens;
    row.decode = bound_of(estimate.unit, read + row.cache_fp16, 2 * (macs + o.attention_macs * tokens));
    estimate.contexts.push_back(row);
  }
  const auto prompt = static_cast<double>(request.prompt);
  estimate.prompt = request.prompt;
  // Each token looks at those before it and at itself; the head sees the last one.
  const double attention = o.attention_macs * prompt * (prompt + 1) / 2;
  estimate.prefill = bound_of(estimate.unit, estimate.streamed_bytes + prompt * o.row_bytes,
                              2 * ((macs - o.head_macs) * prompt + o.head_macs + attention));
}

}  // namespace

Bound bound_of(const Unit& unit, double bytes, double ops) {
  Bound bound = bound_of(unit.limits, bytes, ops);
  if (bytes <= unit.cache_bytes) bound.memory_us = 0;
  return bound;
}

Result<Estimate> make_estimate(const Request& request) {
  CTK_CHECK(check(request));
  Estimate estimate;
  estimate.scheme = request.scheme.empty() ? "as stored" : request.scheme;
  if (request.model.empty()) {
    CTK_TRY(estimate.unit, find_unit(request.target));
    estimate.scheme = to_text(request.bits) + " bits";
    estimate.weight_bytes = estimate.streamed_bytes = request.parameters * request.bits / 8;
    estimate.outline.name = "weights";
    estimate.outline.parameters = static_cast<std::int64_t>(std::min(request.parameters, 9e18));
    ContextRow row;
    row.decode = bound_of(estimate.unit, estimate.streamed_bytes, 2 * request.parameters);
    estimate.contexts.push_back(row);
    return estimate;
  }
  std::optional<QuantScheme> scheme;
  if (!request.scheme.empty()) {
    CTK_TRY(scheme, parse_scheme(request.scheme));
  }
  CTK_TRY(estimate.outline, outline(request.model));
  CTK_TRY(estimate.unit, find_unit(request.target));
  for (const Matrix& matrix : estimate.outline.matrices) {
    if (matrix.count == 0) continue;
    estimate.streamed_bytes +=
        scheme ? static_cast<double>(coded_bytes(matrix.layer, matrix.count, *scheme)) : matrix.stored_bytes;
  }
  estimate.streamed_bytes += estimate.outline.other_bytes;
  estimate.weight_bytes = estimate.streamed_bytes + estimate.outline.table_bytes;
  fill_bounds(request, estimate);
  if (!request.measures) return estimate;
  if (!request.target.empty() && request.target != "cpu")
    return config_error("estimate: --measure: expected this processor as target, found \"" + printable(request.target) +
                        "\". Leave one of the two out");
  if (estimate.outline.is_decoder) {
    CTK_TRY(estimate.measured, measure_decoder(request, estimate));
  } else {
    CTK_TRY(estimate.measured, measure_network(request));
  }
  return estimate;
}

}  // namespace ctk::pipeline::estimate

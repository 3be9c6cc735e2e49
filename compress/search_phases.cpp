// Times of a language model by phase: what a layer takes of a step of one token behind a text, and of reading that
// text. By the reader that generates (runtime/generate): its plan of one token, and its plan of a chunk as often as the
// text has chunks. What belongs to no layer (attention, norms, the embedding) is the rest of the whole, measured
// without clocks between steps.
#include <algorithm>
#include <chrono>

#include "compress/search_table.h"
#include "graph/layer.h"
#include "runtime/measure.h"

namespace ctk::pipeline::search_table {
namespace {

using runtime::CpuExecutor;
using runtime::Generator;

constexpr std::size_t kChunk = 256;        // tokens at once, as by default when a text is generated
constexpr std::size_t kMostTokens = 2048;  // of the text: longer ones would take most of a search to time
constexpr double kSeconds = 0.3;           // of reading the text, a reader
constexpr int kLeastReads = 2, kMostReads = 20;

std::vector<std::int64_t> text_of(const Generator& reader, std::size_t tokens, int number) {
  std::vector<std::int64_t> ids(tokens);
  // Another first token each time: nothing of the text before is kept.
  for (std::size_t i = 0; i < tokens; ++i)
    ids[i] = (1 + number + 37 * static_cast<std::int64_t>(i)) % static_cast<std::int64_t>(reader.vocabulary());
  return ids;
}

Result<double> read_us(Generator& reader, std::size_t tokens, int number) {
  const std::vector<std::int64_t> ids = text_of(reader, tokens, number);
  const auto start = std::chrono::steady_clock::now();
  CTK_CHECK(reader.read(ids));
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

// Nodes behind those of the graph are the reader's own: positions, the last token's row.
bool is_layer(const graph::Graph& graph, graph::NodeId node) {
  return node.is_valid() && node.index < graph.node_capacity() && graph::layer_of(graph, node).has_value();
}

// Layers' steps, each `times` over; the rest is what remains of the whole.
PhaseTimes split_of(const graph::Graph& graph, std::span<const runtime::StepTime> steps, double whole_us,
                    double times) {
  PhaseTimes found{whole_us, whole_us, {}};
  double sum = 0;
  for (const runtime::StepTime& step : steps) sum += times * step.median_us;
  // Clocks between steps take time of their own, which every step gives back.
  const double share = times * (sum > whole_us && sum > 0 ? whole_us / sum : 1.0);
  for (const runtime::StepTime& step : steps) {
    if (!is_layer(graph, step.node)) continue;
    found.by_layer_us[graph.address(step.node)] += share * step.median_us;
    found.other_us -= share * step.median_us;
  }
  found.other_us = std::max(0.0, found.other_us);
  return found;
}

void add_phase(const PhaseTimes& times, const std::string& scheme, PhaseCosts& costs) {
  for (const auto& [layer, us] : times.by_layer_us) costs.us[{layer, scheme}] += us;
}

}  // namespace

Running running_of(const BudgetConfig& budget) {
  return {budget.latency || budget.peak_memory || budget.minimize == "latency" || budget.minimize == "peak_memory",
          budget.latency_decode || budget.latency_prefill || budget.minimize == "latency.decode" ||
              budget.minimize == "latency.prefill"};
}

std::size_t prompt_tokens(const Session& session) {
  const auto& shapes = session.model.sample_shapes;
  const auto sample = shapes.empty() || shapes[0].size() != 2 ? std::int64_t{0} : shapes[0][1];
  const std::size_t tokens =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::max<std::int64_t>(sample, 2)), 2, kMostTokens);
  return tokens <= kChunk ? tokens : tokens / kChunk * kChunk;
}

Result<std::unique_ptr<Generator>> make_reader(const Session& session, const graph::Graph& graph) {
  const std::size_t tokens = prompt_tokens(session);
  runtime::GenerateOptions options;
  options.context = tokens + 1;
  options.chunk = std::min(kChunk, tokens);
  auto made = Generator::create(graph.clone(), options);
  if (!made)
    return std::move(made).error().with_context(
        "budget.latency: decode and prefill are phases of a language model; give one latency for other models");
  return made;
}

Result<std::vector<ReaderTimes>> measure_readers(std::span<Generator* const> readers,
                                                 std::span<const graph::Graph* const> graphs, std::size_t tokens) {
  std::vector<std::vector<double>> reads(readers.size());
  double spent_us = 0;
  for (int round = 0; round <= kMostReads; ++round) {
    for (std::size_t r = 0; r < readers.size(); ++r) {
      CTK_TRY(const double us, read_us(*readers[r], tokens, round));
      if (round == 0) continue;  // plans are made
      reads[r].push_back(us);
      spent_us += us;
    }
    if (round >= kLeastReads && spent_us > 1e6 * kSeconds * static_cast<double>(readers.size())) break;
  }
  std::vector<CpuExecutor*> ones, chunks;
  for (Generator* reader : readers) ones.push_back(&reader->one_token());
  CTK_TRY(const auto decode, runtime::measure_interleaved(ones, {kSeconds, 10, 2000, 2}));
  CTK_TRY(const auto decode_steps, runtime::measure_steps(ones, {kSeconds, 10, 2000, 1}));
  for (Generator* reader : readers) {
    reader->keep(tokens - reader->chunk());
    chunks.push_back(reader->chunk_reader());
  }
  CTK_TRY(const auto chunk_steps, runtime::measure_steps(chunks, {kSeconds, 3, 200, 1}));
  std::vector<ReaderTimes> found;
  for (std::size_t r = 0; r < readers.size(); ++r) {
    const double count = static_cast<double>(tokens) / static_cast<double>(readers[r]->chunk());
    found.push_back({split_of(*graphs[r], decode_steps[r], decode[r].median_us, 1),
                     split_of(*graphs[r], chunk_steps[r], runtime::median_of(reads[r]), count)});
  }
  return found;
}

Status fill_phases(const Session& session, std::span<const UniformRun> runs, Table& table) {
  std::vector<Generator*> readers;
  std::vector<const graph::Graph*> graphs;
  for (const UniformRun& run : runs) {
    readers.push_back(run.reader.get());
    graphs.push_back(run.graph.get());
  }
  std::unique_ptr<Generator> original;  // what shares are shares of, where a stage has put another in its place
  if (session.original) {
    CTK_TRY(original, make_reader(session, *session.original));
    readers.push_back(original.get());
    graphs.push_back(&*session.original);
  }
  CTK_TRY(const std::vector<ReaderTimes> times, measure_readers(readers, graphs, prompt_tokens(session)));
  std::vector<double> decode_rest, prefill_rest;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    add_phase(times[r].decode, to_string(runs[r].scheme), table.decode);
    add_phase(times[r].prefill, to_string(runs[r].scheme), table.prefill);
    decode_rest.push_back(times[r].decode.other_us);
    prefill_rest.push_back(times[r].prefill.other_us);
  }
  table.decode.base_us = runtime::median_of(decode_rest);
  table.prefill.base_us = runtime::median_of(prefill_rest);
  table.decode.float_us = times[0].decode.us;
  table.prefill.float_us = times[0].prefill.us;
  table.decode.baseline_us = times[original ? runs.size() : 0].decode.us;
  table.prefill.baseline_us = times[original ? runs.size() : 0].prefill.us;
  return {};
}

}  // namespace ctk::pipeline::search_table

// Suite llm: a decoder of SmolLM2-135M's shape with weights of 4 bits, and of other widths, in groups of 32, head and
// embedding included, and random codes, as no file has to be at hand. Times are per token.
//   prefill512: 512 new tokens read at once.
//   decode128:  128 tokens one after the other, from an empty text on.
#include <string>
#include <vector>

#include "compress/bench_suites/suites.h"
#include "compress/bench_suites/timing.h"
#include "compress/generate.h"
#include "core/random.h"
#include "graph/hf/decoder.h"
#include "graph/layer.h"
#include "graph/passes/passes.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kPrompt = 512, kNew = 128;
constexpr int kQuickLayers = 4;

graph::hf::DecoderConfig smollm2_config() {
  graph::hf::DecoderConfig c;
  c.architecture = "LlamaForCausalLM";
  c.hidden_size = 576, c.intermediate_size = 1536, c.vocab_size = 49152, c.layers = 30;
  c.heads = 9, c.kv_heads = 3, c.head_dim = 64, c.max_positions = 8192;
  c.rope.theta = 100000.0;
  c.ties_embeddings = true;
  return c;
}

// Random codes instead of the floats of every layer, and of the embedding, which is the head.
void code_layers(graph::Graph& graph, const QuantScheme& scheme) {
  Random random(0, "bench llm codes");
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    const Shape shape = graph.value(layer.weight).constant->shape();
    QuantTensor coded;
    coded.scheme = scheme;
    coded.method = "random";
    coded.codes = Tensor::zeros(code_dtype(scheme.weight_bits), shape).value();
    auto* words = static_cast<std::uint64_t*>(coded.codes.mutable_data());
    for (std::size_t i = 0; i < coded.codes.bytes() / sizeof(std::uint64_t); ++i) words[i] = random.next();
    coded.scales.assign(static_cast<std::size_t>(layer.channels) * groups_of(shape, 0, scheme), 0.0078125f);
    const graph::ValueId weight = graph.add_value(graph.unique_name(graph.value(layer.weight).name + ".codes"),
                                                  DType::f32, graph::DeclaredShape{{shape[0], ""}, {shape[1], ""}});
    graph.value(weight).quantized = std::make_shared<const QuantTensor>(std::move(coded));
    const std::vector<graph::NodeId> others = graph::other_readers(graph, layer.weight);
    graph.set_input(layer.node, 1, weight);
    for (graph::NodeId reader : others) graph.set_input(reader, 0, weight);  // the embedding: Gather(weight, ids)
    graph.node(layer.node).scheme = scheme;
  }
  graph.remove_dead_values();
}

Result<graph::Graph> coded_decoder(const graph::hf::DecoderConfig& config, const QuantScheme& scheme) {
  // One array of floats serves every weight: only the embedding's and the norms' are read.
  CTK_TRY(Tensor floats, Tensor::zeros(DType::f32, {config.vocab_size * config.hidden_size}));
  Random random(0, "bench llm");
  for (float& x : floats.mutable_values<float>()) x = static_cast<float>(random.uniform() - 0.5);
  const auto held = std::make_shared<Tensor>(std::move(floats));
  const graph::hf::TensorLookup lookup = [&](const std::string&, const Shape& shape) -> Result<Tensor> {
    return Tensor::borrowed(DType::f32, shape, held->data(), held);
  };
  CTK_TRY(graph::Graph graph, graph::hf::build_decoder(config, lookup));
  CTK_TRY(const auto passes, graph::run_passes(graph));
  code_layers(graph, scheme);
  return graph;
}

Status bench_scheme(const BenchOptions& options, const graph::hf::DecoderConfig& config, const std::string& name,
                    const std::string& variant, const EmitRow& emit) {
  CTK_TRY(const QuantScheme scheme, parse_scheme(name));
  CTK_TRY(graph::Graph graph, coded_decoder(config, scheme));
  runtime::GenerateOptions wish;
  wish.context = 1024;
  wish.chunk = kPrompt;
  CTK_TRY(const auto generator, runtime::Generator::create(std::move(graph), wish));
  BenchRow row;
  row.threads = options.threads;
  row.variant = variant;
  Status status;
  std::vector<std::int64_t> prompt(kPrompt);
  std::int64_t turn = 0;
  row.row = "llm.prefill512";
  const auto prefill = [&] {
    // Another first token each time: nothing of the last text is kept.
    for (std::size_t i = 0; i < kPrompt; ++i)
      prompt[i] = (turn + 37 * static_cast<std::int64_t>(i)) % config.vocab_size;
    ++turn;
    if (auto read = generator->read(prompt); !read && status) status = std::move(read).error();
  };
  time_row(options.seconds, kPrompt, prefill, row);
  CTK_CHECK(status);
  emit(row);
  row.row = "llm.decode128";
  row.bytes = static_cast<std::int64_t>(generator->packed_bytes());
  const auto decode = [&] {
    const std::int64_t first = turn++ % config.vocab_size;
    auto logits = generator->read(std::span(&first, 1));
    for (std::size_t i = 1; i < kNew && logits; ++i) {
      logits = generator->append((first + 91 * static_cast<std::int64_t>(i)) % config.vocab_size);
    }
    if (!logits && status) status = std::move(logits).error();
  };
  time_row(options.seconds, kNew, decode, row);
  CTK_CHECK(status);
  emit(row);
  return {};
}

}  // namespace

Status bench_llm(const BenchOptions& options, const EmitRow& emit) {
  graph::hf::DecoderConfig config = smollm2_config();
  if (options.quick) config.layers = kQuickLayers, config.vocab_size = 4096;
  CTK_CHECK(bench_scheme(options, config, "w4a8_g32", "int4-g32-dyn8", emit));
  if (options.quick) return {};
  for (const char* bits : {"4", "8", "6", "5", "3"}) {
    CTK_CHECK(bench_scheme(options, config, std::string("w") + bits + "a16_g32",
                           std::string("int") + bits + "-g32-dyn16", emit));
  }
  return {};
}

}  // namespace ctk::pipeline

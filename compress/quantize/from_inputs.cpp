#include "compress/quantize/from_inputs.h"

#include <algorithm>

#include "compress/quantize/code_store.h"
#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/rank_bytes.h"
#include "compress/quantize/stored_grid.h"
#include "compress/quantize/stream.h"
#include "core/printable.h"
#include "graph/floats.h"

namespace ctk::quantization {
namespace {

using graph::Graph;
using graph::Layer;

bool takes_codes(const QuantScheme& scheme) {
  return scheme.is_integer_weight() && scheme.granularity != Granularity::per_tensor;
}

// Lets `layer` alone read its codes: other readers of the weight go on with the float original.
void set_codes(Graph& coded, const Layer& layer, const QuantTensor& codes) {
  const graph::ValueId own = graph::add_copy(
      coded, coded.unique_name(coded.value(layer.weight).name + "_coded_" + std::to_string(layer.node.index)),
      layer.weight);
  coded.value(own).constant.reset();
  coded.value(own).quantized = std::make_shared<const QuantTensor>(codes);
  coded.set_input(layer.node, 1, own);
}

// One layer under one scheme.
struct Job {
  Layer layer;
  std::string address;
  QuantScheme scheme;
  bool is_own = false;  // the one that later layers are fed by

  std::pair<std::string, std::string> key() const { return {address, to_string(scheme)}; }
};

std::vector<std::string> addresses_of(const Graph& graph, const std::vector<Layer>& layers) {
  std::vector<std::string> addresses;
  for (const Layer& layer : layers) addresses.push_back(graph.address(layer.node));
  return addresses;
}

bool is_mine(std::size_t which, const Ranks& ranks) {
  return which % static_cast<std::size_t>(ranks.size()) == static_cast<std::size_t>(ranks.rank());
}

// What `run` gives for each job, every rank taking its turns.
Result<StoredCodes> by_turns(const std::vector<Job>& jobs, Ranks& ranks,
                             const std::function<Result<WeightOutcome>(const Job&)>& run) {
  std::vector<WeightOutcome> mine;
  const auto work = [&]() -> Result<std::string> {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!is_mine(i, ranks)) continue;
      CTK_TRY(WeightOutcome outcome, run(jobs[i]));
      mine.push_back(std::move(outcome));
    }
    return ranks.is_alone() ? std::string() : encode(mine);
  };
  CTK_TRY(const std::vector<std::string> parts, ranks.gather_results("quantize", work()));
  StoredCodes found;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (!ranks.is_alone()) {
      CTK_TRY(mine, decode(parts[rank]));
    }
    for (std::size_t i = rank, at = 0; i < jobs.size(); i += parts.size(), ++at) {
      if (at >= mine.size()) return internal_error("quantize: expected codes of every layer a rank was given");
      found[jobs[i].key()] = std::move(mine[at]);
    }
  }
  return found;
}

}  // namespace

Result<InputCodes> code_from_inputs(const Graph& graph, const SchemeMap& schemes, const std::string& method,
                                    const data::Split& split, const FromInputsOptions& options) {
  CTK_TRY(const Quantizer* quantizer, find_quantizer(method));
  if (!quantizer->needs_inputs) return config_error("method " + method + " does not look at inputs");
  std::vector<std::string> wanted;
  for (const Layer& layer : graph::layers_of(graph)) {
    const auto scheme = schemes.find(graph.address(layer.node));
    if (!has_rows(graph, layer)) continue;
    const auto more = options.also.find(graph.address(layer.node));
    if ((scheme != schemes.end() && takes_codes(scheme->second)) ||
        (more != options.also.end() && std::ranges::any_of(more->second, takes_codes)))
      wanted.push_back(graph.address(layer.node));
  }
  InputCodes codes;
  Graph coded = graph.clone();
  const CodeStore store(options.store);
  Ranks& ranks = *options.ranks;
  const auto jobs_of = [&](const std::vector<Layer>& layers) {
    std::vector<Job> jobs;
    for (const Layer& layer : layers) {
      const std::string address = graph.address(layer.node);
      const auto add = [&](const QuantScheme& scheme, bool is_own) {
        if (takes_codes(scheme)) jobs.push_back({layer, address, scheme, is_own});
      };
      if (const auto more = options.also.find(address); more != options.also.end()) {
        for (const QuantScheme& scheme : more->second) add(scheme, false);
      }
      if (const auto own = schemes.find(address); own != schemes.end()) add(own->second, true);
    }
    return jobs;
  };
  const auto take = [&](Graph& target, const std::vector<Job>& jobs, StoredCodes found) {
    for (const Job& job : jobs) {
      WeightOutcome& outcome = found.at(job.key());
      if (job.is_own) {
        set_codes(target, job.layer, outcome.tensor);
        codes.given.emplace(job.address, std::move(outcome));
      } else {
        codes.also[job.key()] = std::move(outcome);
      }
    }
  };
  const auto code = [&](Graph& target, const std::vector<Layer>& layers, LayerInputs& inputs) -> Status {
    const std::vector<Job> jobs = jobs_of(layers);
    const auto run = [&](const Job& job, const InputReceipt* judged) -> Result<WeightOutcome> {
      WeightRequest request;
      request.weight = graph::floats_of(graph.value(job.layer.weight));
      request.scheme = job.scheme;
      request.channel_axis = job.layer.channel_axis;
      request.group_count = job.layer.group_count;
      request.reduce_range = options.reduce_range;
      request.inputs = &inputs;
      request.damping = options.damping;
      inputs.judged = judged;
      inputs.judges_only = judged == nullptr && inputs.held_out.rows() > 0;
      auto outcome = keep_or_code(*quantizer, request);
      if (!outcome) return std::move(outcome).error().with_context(printable(job.address));
      return outcome;
    };
    CTK_TRY(StoredCodes found, by_turns(jobs, ranks, [&](const Job& job) { return run(job, nullptr); }));
    // The method has been judged on samples it had not seen: where it won, codes may be fitted to these too.
    const auto won = [&](const Job& job) {
      const auto& receipt = found[job.key()].receipt;
      return receipt && receipt->held_out_rows > 0 && !receipt->fell_back;
    };
    if (std::ranges::any_of(jobs, won)) {
      inputs.add_held_out();
      std::vector<Job> again;
      std::ranges::copy_if(jobs, std::back_inserter(again), won);
      CTK_TRY(StoredCodes refitted, by_turns(again, ranks, [&](const Job& job) {
                const InputReceipt judged = *found[job.key()].receipt;
                return run(job, &judged);
              }));
      for (auto& [key, outcome] : refitted) found[key] = std::move(outcome);
    }
    CTK_TRY(found, store.put(addresses_of(graph, layers), std::move(found)));
    take(target, jobs, std::move(found));
    return {};
  };
  WalkOptions walk;
  walk.hold_out_every = options.hold_out_every;
  walk.progress = options.progress;
  walk.values_in_memory = options.values_in_memory;
  walk.folder = options.folder;
  walk.restore = [&](Graph& target, const std::vector<Layer>& layers) {
    auto found = store.find(addresses_of(graph, layers));
    const std::vector<Job> jobs = jobs_of(layers);
    if (!found || !std::ranges::all_of(jobs, [&](const Job& job) { return found->contains(job.key()); })) return false;
    take(target, jobs, std::move(*found));
    return true;
  };
  walk.ranks = options.ranks;
  CTK_CHECK(walk_layers(graph, coded, wanted, split, walk, code));
  return codes;
}

}  // namespace ctk::quantization

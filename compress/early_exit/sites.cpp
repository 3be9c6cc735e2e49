#include "compress/early_exit/sites.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compress/prune/blocks.h"
#include "core/printable.h"
#include "graph/layer.h"
#include "graph/shapes.h"

namespace ctk::exits {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;

constexpr double kLeastSaved = 0.02;  // of the multiply-adds must lie behind an exit

bool reads_in_one_step(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  return std::ranges::any_of(graph.value(value).consumers, [&](NodeId reader) {
    const NodeId host = graph.node(reader).absorbed_by;
    return host.is_valid() && (host == producer || host == graph.node(producer).absorbed_by);
  });
}

// Every value that a head can read, in order.
Result<std::vector<Site>> all_sites(const pipeline::LoadedModel& model) {
  const Graph& graph = model.graph;
  CTK_TRY(const auto infos, graph::infer_shapes(graph, pipeline::batch_shapes(model, 1), true));
  std::vector<double> done(graph.order().size() + 1);  // multiply-adds before each place
  for (std::size_t at = 0; at < graph.order().size(); ++at)
    done[at + 1] = done[at] + static_cast<double>(pipeline::layer_macs(model, graph.order()[at]));
  std::vector<Site> sites;
  for (const graph::Cut& cut : graph::cuts_of(graph)) {
    const graph::InferredValue& info = infos[cut.value.index];
    const std::size_t rank = info.info.shape.size();
    const double share = done[cut.place] / std::max(1.0, done.back());
    const bool is_known = info.known && info.info.dtype == DType::f32 && rank >= 2 && rank <= 4;
    if (!is_known || graph.is_output(cut.value) || share <= 0 || share > 1 - kLeastSaved) continue;
    if (sites.empty() || sites.back().feature != cut.value) sites.push_back({cut.value, share});
  }
  return sites;
}

Result<std::vector<Site>> block_ends(const pipeline::LoadedModel& model, const std::vector<Site>& all) {
  CTK_TRY(const auto blocks, pruning::whole_blocks(model.graph, pipeline::batch_shapes(model, 1)));
  std::set<ValueId> ends;
  for (const pruning::WholeBlock& block : blocks) ends.insert({block.from.value, block.to.value});
  std::vector<Site> sites;
  for (const Site& site : all) {
    const bool is_end = ends.empty() ? !reads_in_one_step(model.graph, site.feature) : ends.contains(site.feature);
    if (is_end) sites.push_back(site);
  }
  return sites;
}

Result<std::vector<Site>> named_sites(const Graph& graph, const std::vector<Site>& all,
                                      const std::vector<std::string>& names, const std::string& key) {
  std::set<std::size_t> chosen;
  for (const std::string& name : names) {
    const auto is_named = [&](const Site& site) {
      return graph.value(site.feature).name == name || graph.address(graph.value(site.feature).producer) == name;
    };
    const auto site = std::ranges::find_if(all, is_named);
    if (site == all.end()) {
      const bool is_there = graph.find_value(name).has_value() ||
                            std::ranges::any_of(graph.order(), [&](NodeId id) { return graph.address(id) == name; });
      return config_error(key +
                          ".at: expected a value that the whole network narrows to, behind a layer and before the " +
                          "last one, found \"" + printable(name) + "\", which is " +
                          (is_there ? "another" : "no value or node of the model") +
                          ". `compress graph show` lists them; leave `at` out to have them found");
    }
    chosen.insert(static_cast<std::size_t>(site - all.begin()));
  }
  std::vector<Site> sites;
  for (std::size_t i : chosen) sites.push_back(all[i]);
  return sites;
}

}  // namespace

Result<std::vector<Site>> find_sites(const pipeline::LoadedModel& model, const pipeline::EarlyExitKeys& keys,
                                     const std::string& key) {
  CTK_TRY(const std::vector<Site> all, all_sites(model));
  std::vector<Site> sites;
  if (!keys.at.empty()) {
    CTK_TRY(sites, named_sites(model.graph, all, keys.at, key));
  } else {
    CTK_TRY(const std::vector<Site> ends, block_ends(model, all));
    if (keys.every > 0) {
      for (auto i = static_cast<std::size_t>(keys.every); i <= ends.size(); i += static_cast<std::size_t>(keys.every))
        sites.push_back(ends[i - 1]);
    } else {
      std::set<std::size_t> chosen;
      for (const double aim : {0.25, 0.5, 0.75}) {
        const auto nearest =
            std::ranges::min_element(ends, {}, [&](const Site& site) { return std::abs(site.share - aim); });
        if (nearest != ends.end()) chosen.insert(static_cast<std::size_t>(nearest - ends.begin()));
      }
      for (std::size_t i : chosen) sites.push_back(ends[i]);
    }
  }
  if (!sites.empty() && sites.size() <= kMostExits) return sites;
  return config_error(key + ": expected from 1 to " + std::to_string(kMostExits) + " places for a head, found " +
                      std::to_string(sites.size()) +
                      (sites.empty() ? ". Name values under `at`, or leave the stage out"
                                     : ". Name fewer under `at`, or raise `every`"));
}

}  // namespace ctk::exits

#include "compress/search_borders.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compress/summary.h"
#include "graph/layer.h"
#include "runtime/measure.h"

namespace ctk::pipeline::search_table {
namespace {

using graph::Graph;
using runtime::Plan;
using Members = std::map<std::string, std::size_t>;  // group by a layer's address

Members members_of(const std::vector<Group>& groups) {
  Members members;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& layer : groups[g].layers) members[layer] = g;
  }
  return members;
}

bool is_conversion(const runtime::Step& step) {
  return step.label == "quantize" || step.label == "dequantize" || step.label == "to_channels_last" ||
         step.label == "to_channels_first";
}

// Follows buffers from a conversion to the layers it stands between, through steps that belong to no layer.
class Trace {
 public:
  Trace(const Graph& graph, const Plan& plan, const Members& members) : graph_(graph), plan_(plan), members_(members) {}

  // The group that wrote what step `at` reads.
  std::optional<std::size_t> before(std::size_t at) const {
    std::vector<int> wanted = roots(plan_.steps[at]->reads);
    for (std::size_t s = at; s-- > 0;) {
      const runtime::Step& step = *plan_.steps[s];
      if (!meets(step.writes, wanted)) continue;
      if (const auto group = group_at(step)) return group;
      wanted = roots(step.reads);
    }
    return std::nullopt;
  }

  // The first group that reads what step `at` writes.
  std::optional<std::size_t> behind(std::size_t at) const {
    std::vector<int> wanted = roots(plan_.steps[at]->writes);
    for (std::size_t s = at + 1; s < plan_.steps.size(); ++s) {
      const runtime::Step& step = *plan_.steps[s];
      if (!meets(step.reads, wanted)) continue;
      if (const auto group = group_at(step)) return group;
      for (const int slot : roots(step.writes)) wanted.push_back(slot);
    }
    return std::nullopt;
  }

 private:
  int root(int slot) const {
    while (plan_.slots[static_cast<std::size_t>(slot)].alias_of >= 0)
      slot = plan_.slots[static_cast<std::size_t>(slot)].alias_of;
    return slot;
  }
  std::vector<int> roots(std::vector<int> slots) const {
    for (int& slot : slots) slot = root(slot);
    return slots;
  }
  bool meets(const std::vector<int>& slots, const std::vector<int>& wanted) const {
    return std::ranges::any_of(slots, [&](int slot) { return std::ranges::count(wanted, root(slot)) != 0; });
  }
  std::optional<std::size_t> group_at(const runtime::Step& step) const {
    if (!step.node.is_valid() || !graph::layer_of(graph_, step.node)) return std::nullopt;
    const auto found = members_.find(graph_.address(step.node));
    return found == members_.end() ? std::nullopt : std::optional(found->second);
  }

  const Graph& graph_;
  const Plan& plan_;
  const Members& members_;
};

// A network whose groups take codes or floats as wished, where they have such a choice.
struct MixedRun {
  UniformRun run;
  std::vector<bool> on_codes;
};

Result<MixedRun> mixed_run(const Session& session, const Table& table, const std::vector<bool>& wished) {
  MixedRun mixed{{{}, std::make_unique<Graph>(session.model.graph.clone()), nullptr}, wished};
  quantization::SchemeMap assigned;
  for (std::size_t g = 0; g < table.groups.size(); ++g) {
    const auto& choices = table.groups[g].choices;
    const auto fit =
        std::ranges::find_if(choices, [&](const QuantScheme& s) { return s.is_integer_activation() == wished[g]; });
    const QuantScheme& scheme = fit == choices.end() ? choices[0] : *fit;
    mixed.on_codes[g] = scheme.is_integer_activation();
    for (const std::string& layer : table.groups[g].layers) assigned[layer] = scheme;
  }
  CTK_TRY(const auto applied,
          quantization::apply_schemes(*mixed.run.graph, assigned, session.ranges, session.plain_options()));
  CTK_TRY(mixed.run.executor, runtime::CpuExecutor::create(*mixed.run.graph, batch_shapes(session.model, 1)));
  return mixed;
}

bool mixes_forms(const Table& table) {
  bool codes = false, floats = false;
  for (const Group& group : table.groups) {
    for (const QuantScheme& scheme : group.choices) (scheme.is_integer_activation() ? codes : floats) = true;
  }
  return codes && floats;
}

}  // namespace

std::vector<Border> borders_in(const Graph& graph, const Plan& plan, std::span<const double> us,
                               const std::vector<Group>& groups, const std::vector<bool>& on_codes) {
  const Members members = members_of(groups);
  const Trace trace(graph, plan, members);
  std::map<std::pair<std::size_t, std::size_t>, Border> found;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (!is_conversion(*plan.steps[s])) continue;
    const auto from = trace.before(s), to = trace.behind(s);
    if (!from || !to || on_codes[*from] == on_codes[*to]) continue;
    Border& border = found[{*from, *to}];
    border.first = groups[*from].layers[0];
    border.second = groups[*to].layers[0];
    (on_codes[*from] ? border.to_floats_us : border.to_codes_us) += us[s];
  }
  std::vector<Border> borders;
  for (auto& [key, border] : found) borders.push_back(std::move(border));
  return borders;
}

Status fill_borders(const Session& session, const UniformRun& reference, Table& table) {
  table.borders.clear();
  if (!mixes_forms(table)) return {};
  struct Sum {
    double us = 0;
    int times = 0;
    double mean() const { return times == 0 ? 0.0 : us / times; }
  };
  std::map<std::pair<std::string, std::string>, std::pair<Sum, Sum>> sums;
  for (std::size_t pattern = 0; pattern < 4; ++pattern) {
    std::vector<bool> wished(table.groups.size());
    for (std::size_t g = 0; g < wished.size(); ++g) wished[g] = ((g >> (pattern / 2)) + pattern) % 2 == 0;
    CTK_TRY(const MixedRun mixed, mixed_run(session, table, wished));
    runtime::CpuExecutor* const turn[] = {mixed.run.executor.get(), reference.executor.get()};
    CTK_TRY(const auto whole, runtime::measure_interleaved(turn, {0.1, 10, 1000, 2}));
    CTK_TRY(const auto steps, runtime::measure_steps(turn, {0.1, 10, 1000, 2}));
    // The rate at which the table's times were taken, and clocks between steps given back, as for layers.
    const double drift = whole[1].median_us > 0 ? table.float_us / whole[1].median_us : 1.0;
    const double share = drift * clock_share(whole[0].median_us, steps[0]);
    std::vector<double> us;
    for (const runtime::StepTime& step : steps[0]) us.push_back(share * step.median_us);
    for (const Border& border :
         borders_in(*mixed.run.graph, mixed.run.executor->plan(), us, table.groups, mixed.on_codes)) {
      auto& [to_floats, to_codes] = sums[{border.first, border.second}];
      if (border.to_floats_us > 0) to_floats = {to_floats.us + border.to_floats_us, to_floats.times + 1};
      if (border.to_codes_us > 0) to_codes = {to_codes.us + border.to_codes_us, to_codes.times + 1};
    }
  }
  for (const auto& [groups, directions] : sums)
    table.borders.push_back({groups.first, groups.second, directions.first.mean(), directions.second.mean()});
  return {};
}

}  // namespace ctk::pipeline::search_table

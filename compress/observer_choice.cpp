// The range of each activation out of several observers' proposals.
// Minimises, value by value: 1/2 mean over samples of sum over elements of (g dx)^2 / rows, g the gradient of
// -log p(label) with labels drawn from the network's softmax, dx the rounding that a range causes: KL to second order,
// errors of elements taken as independent, as sensitivity metric fisher counts activations.
// In: the float network, ranges [observers][values]. Out: a range a value. Cost: a forward and a backward pass over at
// most kMostSamples samples, and one pass over the elements of each value and observer. What runs afterwards costs the
// same with any range.
// Source: the criterion of the file compress/sensitivity/fisher.cpp; the observers are those of calibrate/observers.
#include "compress/observer_choice.h"

#include <algorithm>
#include <cstdio>

#include "calibrate/reverse/reverse.h"
#include "compress/sensitivity/change.h"
#include "compress/sensitivity/forward.h"
#include "compress/sensitivity/label_gradient.h"
#include "core/quant_tensor.h"
#include "core/random.h"

namespace ctk::pipeline {
namespace {

using calibrate::Range;

constexpr std::size_t kMostSamples = 64;

std::string digits(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace

Result<std::vector<Range>> choose_observers(const Session& session, std::span<const std::vector<Range>> by_observer) {
  const graph::Graph& graph = session.model.graph;
  std::vector<Range> chosen = by_observer[0];
  std::map<graph::ValueId, std::size_t> places;
  std::map<std::string, std::size_t> by_name;
  for (std::size_t v = 0; v < chosen.size(); ++v) by_name[chosen[v].value] = v;
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const graph::ValueId id{static_cast<std::uint32_t>(i)};
    if (graph.value(id).is_removed) continue;
    if (const auto found = by_name.find(graph.value(id).name); found != by_name.end()) places[id] = found->second;
  }
  data::Split split = session.splits.score ? *session.splits.score : *session.splits.calibrate;
  split.indices.resize(std::min(split.indices.size(), kMostSamples));
  std::vector<std::vector<double>> losses(chosen.size(), std::vector<double>(by_observer.size(), 0.0));
  std::optional<calibrate::ReversePass> pass;
  Random random(session.config.seed, "observer labels");
  std::size_t samples = 0;
  const auto prepare = [&](std::span<const Shape> shapes) -> Result<std::vector<graph::ValueId>> {
    std::vector<graph::ValueId> targets;
    for (const auto& [id, place] : places) targets.push_back(id);
    auto made = calibrate::ReversePass::create(graph, shapes, targets);
    if (!made)
      return std::move(made).error().with_context(
          "stages.calibrate.method: auto weighs ranges by gradients; name an observer such as mse instead");
    pass = std::move(*made);
    std::set<graph::ValueId> keep(pass->keep().begin(), pass->keep().end());
    keep.insert(targets.begin(), targets.end());
    return std::vector<graph::ValueId>(keep.begin(), keep.end());
  };
  const auto each = [&](const std::vector<Tensor>&, const calibrate::Values& values, const Tensor& output) -> Status {
    CTK_TRY(const LabelGradient labels, draw_label_gradient(output, random));
    calibrate::GradientVisitor visitor;
    visitor.target = [&](graph::ValueId id, const Tensor& gradient) -> Status {
      const std::size_t v = places.at(id);
      const auto x = values.at(id).values<float>(), g = gradient.values<float>();
      for (std::size_t o = 0; o < by_observer.size(); ++o) {
        const Range& range = by_observer[o][v];
        const bool is_known =
            o > 0 && range.low == by_observer[o - 1][v].low && range.high == by_observer[o - 1][v].high;
        losses[v][o] += is_known ? 0
                                 : 0.5 / static_cast<double>(labels.rows) *
                                       weighted_rounding(x, g, activation_quant_from_range(range.low, range.high));
      }
      return {};
    };
    ++samples;
    return pass->run(values, labels.gradient, visitor);
  };
  CTK_CHECK(for_each_sample(graph, split, prepare, each));
  for (std::size_t v = 0; v < chosen.size(); ++v) {
    std::string told;
    std::size_t best = 0;
    for (std::size_t o = 0; o < by_observer.size(); ++o) {
      const Range& range = by_observer[o][v];
      const bool is_known = o > 0 && range.low == by_observer[o - 1][v].low && range.high == by_observer[o - 1][v].high;
      if (is_known) losses[v][o] = losses[v][o - 1];
      if (losses[v][o] < losses[v][best]) best = o;
      told += (told.empty() ? "" : ", ") + range.method + " " +
              digits(losses[v][o] / static_cast<double>(std::max<std::size_t>(1, samples)));
    }
    const std::string note = by_observer[best][v].note;
    chosen[v] = by_observer[best][v];
    chosen[v].note = chosen[v].method + " by its loss in nats: " + told + (note.empty() ? "" : "; " + note);
  }
  return chosen;
}

}  // namespace ctk::pipeline

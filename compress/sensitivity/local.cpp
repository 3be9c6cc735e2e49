// Metrics that look at one layer alone: at its weight, or at its weight and what it is fed in the float network.
// Activations are taken as floats. Cost: weights none; the others one forward pass, and for each layer one product a
// scheme and one more, of the size of its own.
#include <cmath>
#include <map>
#include <set>

#include "calibrate/reverse/matrix.h"
#include "calibrate/reverse/weight_gradient.h"
#include "compress/quantize/layer_inputs.h"
#include "compress/sensitivity/change.h"
#include "compress/sensitivity/forward.h"
#include "graph/floats.h"

namespace ctk::pipeline {
namespace {

double sum_of_products(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Of one sample: y = W x over its rows, d = dW x.
struct Energies {
  double signal = 0, noise = 0, both = 0;  // sum of y^2, d^2, y d
};

// Rows of a layer's input, group after group: [groups][rows, K].
struct Rows {
  std::size_t groups = 1, count = 0, k = 0;
  std::vector<float> values;
};

std::vector<float> product(const Rows& rows, std::span<const float> weight) {
  const std::size_t channels = weight.size() / rows.k / rows.groups;  // of a group
  std::vector<float> y(rows.groups * rows.count * channels, 0.0f);
  for (std::size_t g = 0; g < rows.groups; ++g) {
    calibrate::add_product(rows.values.data() + g * rows.count * rows.k, weight.data() + g * channels * rows.k,
                           rows.count, channels, rows.k, y.data() + g * rows.count * channels);
  }
  return y;
}

using Loss = double (*)(const Energies&);

Result<std::vector<Score>> score_layers(const ScoreTask& task, Loss loss) {
  const graph::Graph& graph = task.session.model.graph;
  const data::Split& split = *task.session.splits.score;
  std::map<graph::NodeId, std::vector<std::size_t>> by_layer;
  std::set<graph::ValueId> read;
  std::vector<WeightError> errors;
  std::map<graph::NodeId, std::vector<float>> weights;
  for (std::size_t i = 0; i < task.candidates.size(); ++i) {
    const graph::Layer& layer = task.candidates[i].layer;
    CTK_TRY(Change change, change_of(task.session, task.candidates[i]));
    errors.push_back(std::move(change.weight));
    by_layer[layer.node].push_back(i);
    read.insert(layer.input);
    if (!weights.contains(layer.node)) {
      weights[layer.node] = quantization::weight_rows(layer, graph::floats_of(graph.value(layer.weight)));
    }
  }
  std::vector<MeanOfSamples> means(task.candidates.size());
  std::int64_t done = 0;
  const auto add = [&](const std::vector<Tensor>&, const calibrate::Values& values, const Tensor&) -> Status {
    for (const auto& [node, who] : by_layer) {
      const graph::Layer& layer = task.candidates[who[0]].layer;
      Rows rows;
      CTK_TRY(rows.values, calibrate::layer_rows(graph, layer, values.at(layer.input)));
      rows.k = static_cast<std::size_t>(layer.reduction);
      if (graph.node(node).op == graph::Op::Conv) {
        rows.groups = static_cast<std::size_t>(graph.node(node).attributes.get_int("group", 1));
      }
      rows.count = rows.values.size() / rows.k / rows.groups;
      const std::vector<float> y = product(rows, weights.at(node));
      const double signal = sum_of_products(y, y);
      for (std::size_t i : who) {
        const std::vector<float> d = product(rows, errors[i].all());
        means[i].add(loss({signal, sum_of_products(d, d), sum_of_products(y, d)}));
      }
    }
    task.session.advance(static_cast<std::int64_t>(task.candidates.size()) * ++done /
                         static_cast<std::int64_t>(split.count()));
    return {};
  };
  CTK_CHECK(for_each_sample(
      graph, split, [&](std::span<const Shape>) { return std::vector<graph::ValueId>(read.begin(), read.end()); },
      add));
  std::vector<Score> scores;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const Candidate& candidate = task.candidates[i];
    scores.push_back({candidate.address, to_string(candidate.scheme), means[i].mean(), means[i].standard_error()});
  }
  return scores;
}

}  // namespace

Result<std::vector<Score>> score_hessian_mse(const ScoreTask& task) {
  return score_layers(task, [](const Energies& e) { return e.noise; });
}

// A layer that gives 0 everywhere has no noise either: 0.
Result<std::vector<Score>> score_sqnr(const ScoreTask& task) {
  return score_layers(task, [](const Energies& e) { return e.signal > 0 ? e.noise / e.signal : 0.0; });
}

Result<std::vector<Score>> score_cosine(const ScoreTask& task) {
  return score_layers(task, [](const Energies& e) {
    const double coded = e.signal + 2 * e.both + e.noise;  // |y + d|^2
    if (e.signal <= 0) return 0.0;
    return coded > 0 ? std::max(0.0, 1.0 - (e.signal + e.both) / std::sqrt(e.signal * coded)) : 1.0;
  });
}

Result<std::vector<Score>> score_weights(const ScoreTask& task) {
  std::vector<Score> scores;
  for (const Candidate& candidate : task.candidates) {
    task.session.advance(static_cast<std::int64_t>(scores.size() + 1));
    CTK_TRY(const Change change, change_of(task.session, candidate));
    const Tensor floats = graph::floats_of(task.session.model.graph.value(candidate.layer.weight));
    const auto weight = floats.values<float>();
    const std::vector<float> error = change.weight.all();
    const double energy = sum_of_products(weight, weight);
    const double loss = energy > 0 ? sum_of_products(error, error) / energy : 0.0;
    scores.push_back({candidate.address, to_string(candidate.scheme), loss, 0.0});
  }
  return scores;
}

}  // namespace ctk::pipeline

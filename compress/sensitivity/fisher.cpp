// fisher: the KL divergence that a layer's error causes, to second order, from gradients of the float network alone.
// KL(float || changed) of a sample = 1/2 E[(sum over tokens g' dy)^2] / rows, g the gradient of -log p(label) at the
// layer's output with labels drawn from the network's own softmax, one a row of the output (the true Fisher
// information), dy = dW x + W dx. With G = sum over tokens g x', the gradient of the weight, the weight's part is
// (sum over channels n of dW_n G_n)^2: one product for all schemes.
// With kManyLabels drawn or more, that is averaged as it stands. One draw is one number, though, off by a factor: with
// fewer, errors of different channels are taken as independent and their squares summed, sum over n of (dW_n G_n)^2,
// and a draw tells as much as there are channels. Errors of different elements of an input are always taken so: sum
// over inputs i of (g_i dx_i)^2. Cost: for each sample a forward pass, and for each draw a backward pass, one product a
// layer, and one multiply-add a weight and scheme. Memory: a byte a weight and scheme, the values of one sample.
// Source: Martens, New insights and perspectives on the natural gradient method, 2020, section 5; Dong et al., HAWQ-V2,
// 2020, weighs by the trace of the Hessian instead. Differs: the errors themselves, not their norms, meet the gradient.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "calibrate/reverse/reverse.h"
#include "calibrate/reverse/weight_gradient.h"
#include "compress/sensitivity/change.h"
#include "compress/sensitivity/forward.h"
#include "compress/sensitivity/label_gradient.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/printable.h"

namespace ctk::pipeline {
namespace {

using calibrate::GradientVisitor;
using calibrate::ReversePass;
using calibrate::Values;
using graph::Graph;
using graph::ValueId;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kManyLabels = 256;  // samples times draws; a score is then off by some 9%, sqrt(2 / 256)

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Fisher {
 public:
  Fisher(const ScoreTask& task, bool channels_apart)
      : task_(task),
        channels_apart_(channels_apart),
        graph_(task.session.model.graph),
        means_(task.candidates.size()),
        weights_(means_),
        activations_(means_) {}

  Status prepare() {
    for (const Candidate& candidate : task_.candidates) {
      CTK_TRY(Change change, change_of(task_.session, candidate));
      changes_.push_back(std::move(change));
    }
    for (std::size_t i = 0; i < task_.candidates.size(); ++i) {
      const graph::Layer& layer = task_.candidates[i].layer;
      by_output_[graph_.node(layer.node).outputs[0]].push_back(i);
      read_.insert(layer.input);
      for (const auto& [id, quant] : changes_[i].noted) {
        by_value_[id].push_back({i, quant});
        read_.insert(id);
      }
      for (graph::NodeId node : changes_[i].embeddings) {
        if (ids_of(node)) {
          by_embedding_[graph_.node(node).outputs[0]].push_back(i);
        } else {
          log_warning(printable(graph_.address(node)) + ": its ids are no input of the model, so what " +
                      to_string(task_.candidates[i].scheme) + " does to it is not in the score of " +
                      printable(task_.candidates[i].address));
        }
      }
      if (changes_[i].input_group != 0) by_group_[layer.node].push_back(i);
    }
    return {};
  }

  Result<std::vector<ValueId>> prepare_shapes(std::span<const Shape> shapes) {
    std::vector<ValueId> targets;
    for (const auto& [id, who] : by_output_) targets.push_back(id);
    for (const auto& [id, who] : by_value_) targets.push_back(id);
    for (const auto& [id, who] : by_embedding_) targets.push_back(id);
    for (const auto& [node, who] : by_group_) targets.push_back(graph_.node(node).inputs[0]);
    CTK_TRY(pass_, ReversePass::create(graph_, shapes, targets));
    std::set<ValueId> keep(pass_->keep().begin(), pass_->keep().end());
    keep.insert(read_.begin(), read_.end());
    return std::vector<ValueId>(keep.begin(), keep.end());
  }

  // inputs: of the graph. Losses of one sample are the means over `draws` draws of its labels.
  Status add(const std::vector<Tensor>& inputs, const Values& values, const Tensor& output, std::size_t draws) {
    Sums sums{std::vector<double>(changes_.size(), 0.0), std::vector<double>(changes_.size(), 0.0)};
    GradientVisitor visitor;
    visitor.target = [&](ValueId id, const Tensor& gradient) { return add_target(inputs, values, id, gradient, sums); };
    if (!by_group_.empty()) {
      visitor.contribution = [&](graph::NodeId node, const Tensor& gradient) -> Status {
        const auto who = by_group_.find(node);
        if (who == by_group_.end()) return {};
        for (std::size_t i : who->second) {
          const graph::Layer& layer = task_.candidates[i].layer;
          sums.activations[i] +=
              weighted_group_rounding(values.at(layer.input).values<float>(), gradient.values<float>(),
                                      static_cast<std::size_t>(layer.reduction), changes_[i].input_group);
        }
        return {};
      };
    }
    double rows = 1;
    for (std::size_t draw = 0; draw < draws; ++draw) {
      CTK_TRY(const LabelGradient labels, draw_label_gradient(output, random_));
      rows = static_cast<double>(labels.rows);
      const auto start = Clock::now();
      CTK_CHECK(pass_->run(values, labels.gradient, visitor));
      seconds_back_ += seconds_since(start);
    }
    const double each = 0.5 / rows / static_cast<double>(draws);
    for (std::size_t i = 0; i < means_.size(); ++i) {
      means_[i].add(each * (sums.weights[i] + sums.activations[i]));
      weights_[i].add(each * sums.weights[i]);
      activations_[i].add(each * sums.activations[i]);
    }
    return {};
  }

  std::vector<Score> scores() const {
    std::vector<Score> scores;
    for (std::size_t i = 0; i < means_.size(); ++i) {
      const Candidate& candidate = task_.candidates[i];
      scores.push_back({candidate.address, to_string(candidate.scheme), means_[i].mean(), means_[i].standard_error(),
                        weights_[i].mean(), activations_[i].mean()});
    }
    return scores;
  }

  // Backward passes without what scores add to them.
  double seconds_backward() const { return seconds_back_ - seconds_scoring_; }
  double seconds_scoring() const { return seconds_scoring_; }

 private:
  // Of one sample, by candidate.
  struct Sums {
    std::vector<double> weights, activations;
  };

  Status add_target(const std::vector<Tensor>& inputs, const Values& values, ValueId id, const Tensor& gradient,
                    Sums& sums) {
    const auto start = Clock::now();
    if (const auto who = by_output_.find(id); who != by_output_.end()) {
      const graph::Layer& layer = task_.candidates[who->second[0]].layer;
      CTK_TRY(const std::vector<float> g, calibrate::weight_gradient(graph_, layer, values.at(layer.input), gradient));
      for (std::size_t i : who->second) sums.weights[i] += squared(changes_[i].weight, g);
    }
    if (const auto who = by_value_.find(id); who != by_value_.end()) {
      std::vector<std::pair<ActivationQuant, double>> known;  // schemes of a layer mostly round alike
      for (const auto& [i, quant] : who->second) {
        auto same = std::ranges::find(known, quant, [](const auto& entry) { return entry.first; });
        if (same == known.end()) {
          known.emplace_back(quant, weighted_rounding(values.at(id).values<float>(), gradient.values<float>(), quant));
          same = known.end() - 1;
        }
        sums.activations[i] += same->second;
      }
    }
    if (const auto who = by_embedding_.find(id); who != by_embedding_.end()) {
      const graph::NodeId node = graph_.value(id).producer;
      const Tensor& ids = inputs[*ids_of(node)];
      for (std::size_t i : who->second) sums.weights[i] += squared_by_token(changes_[i].weight, ids, gradient);
    }
    seconds_scoring_ += seconds_since(start);
    return {};
  }

  // The graph input that holds the ids an embedding reads, under whatever shape.
  std::optional<std::size_t> ids_of(graph::NodeId embedding) const {
    ValueId id = graph_.node(embedding).inputs[1];
    while (graph_.value(id).producer.is_valid()) {
      const graph::Node& node = graph_.node(graph_.value(id).producer);
      const bool keeps_order = node.op == graph::Op::Reshape || node.op == graph::Op::Squeeze ||
                               node.op == graph::Op::Unsqueeze || node.op == graph::Op::Flatten ||
                               node.op == graph::Op::Identity;
      if (!keeps_order) return std::nullopt;
      id = node.inputs[0];
    }
    const auto found = std::ranges::find(graph_.inputs(), id);
    if (found == graph_.inputs().end()) return std::nullopt;
    return static_cast<std::size_t>(found - graph_.inputs().begin());
  }

  // The embedding's part of a shared weight: its gradient's row n is the sum over the places where token n stands.
  static double squared_by_token(const WeightError& error, const Tensor& ids, const Tensor& gradient) {
    std::map<std::int64_t, std::vector<float>> rows;
    const auto tokens = ids.values<std::int64_t>();
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const std::int64_t token = tokens[t] < 0 ? tokens[t] + static_cast<std::int64_t>(error.channels) : tokens[t];
      std::vector<float>& row = rows[token];
      row.resize(error.reduction, 0.0f);
      const float* g = gradient.values<float>().data() + t * error.reduction;
      for (std::size_t i = 0; i < error.reduction; ++i) row[i] += g[i];
    }
    double sum = 0;
    for (const auto& [token, row] : rows) {
      const double change = dot_error(error, static_cast<std::size_t>(token), row.data());
      sum += change * change;
    }
    return sum;
  }

  double squared(const WeightError& error, const std::vector<float>& g) const {
    std::vector<double> changes(error.channels);
    parallel_for(error.channels, 8, [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n) changes[n] = dot_error(error, n, g.data() + n * error.reduction);
    });
    double sum = 0, squares = 0;
    for (double change : changes) {
      sum += change;
      squares += change * change;
    }
    return channels_apart_ ? squares : sum * sum;
  }

  const ScoreTask& task_;
  const bool channels_apart_;
  const Graph& graph_;
  std::vector<Change> changes_;                            // by candidate
  std::map<ValueId, std::vector<std::size_t>> by_output_;  // candidates whose layer writes it
  std::map<ValueId, std::vector<std::pair<std::size_t, ActivationQuant>>> by_value_;
  std::map<graph::NodeId, std::vector<std::size_t>> by_group_;  // candidates that round the node's input in groups
  std::map<ValueId, std::vector<std::size_t>> by_embedding_;    // candidates whose weight gives its rows
  std::set<ValueId> read_;
  std::optional<ReversePass> pass_;
  Random random_{0, "fisher labels"};
  std::vector<MeanOfSamples> means_, weights_, activations_;  // the last two: parts of the first
  double seconds_back_ = 0, seconds_scoring_ = 0;
};

}  // namespace

Result<std::vector<Score>> score_fisher(const ScoreTask& task) {
  const data::Split& split = *task.session.splits.score;
  const auto start = Clock::now();
  const graph::Graph& graph = task.session.model.graph;
  const auto& declared = graph.value(graph.outputs()[0]).shape;
  // One label a sample tells little; many rows tell more than a second draw of the few.
  const std::size_t draws = declared && declared->size() == 2 ? 2 : 1;
  Fisher fisher(task, split.count() * draws < kManyLabels);
  CTK_CHECK(fisher.prepare());
  const double seconds_errors = seconds_since(start);
  const auto total = static_cast<std::int64_t>(task.candidates.size());
  std::int64_t done = 0;
  const auto pass_start = Clock::now();
  CTK_CHECK(for_each_sample(
      task.session.model.graph, split, [&](std::span<const Shape> shapes) { return fisher.prepare_shapes(shapes); },
      [&](const std::vector<Tensor>& inputs, const Values& values, const Tensor& output) -> Status {
        CTK_CHECK(fisher.add(inputs, values, output, draws));
        task.session.advance(total * ++done / static_cast<std::int64_t>(split.count()));
        return {};
      }));
  const double seconds = seconds_since(pass_start);
  char text[200];
  std::snprintf(
      text, sizeof text,
      "fisher: %zu scores in %.1f s: errors of weights %.1f s, forward %.1f s, backward %.1f s, products %.1f s",
      task.candidates.size(), seconds_errors + seconds, seconds_errors,
      seconds - fisher.seconds_backward() - fisher.seconds_scoring(), fisher.seconds_backward(),
      fisher.seconds_scoring());
  log_info(text);
  return fisher.scores();
}

}  // namespace ctk::pipeline

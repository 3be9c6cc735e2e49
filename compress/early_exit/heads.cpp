// Training of heads: T^2 KL to the network's own output and cross entropy to the labels, by Adam, on fixed features.
// In:  a graph with an output [batch, classes], features, samples.
// Out: weight [classes, features] and bias [classes] of each head.
// Cost: one run of the network over the samples; features and logits of all of them in memory.
// Source: Zhang et al., Be Your Own Teacher, 2019 (self-distillation of shallow classifiers). Differs: the network does
//         not learn along, heads are linear, and features have mean 0 and variance 1 while they are trained, which is
//         folded into weight and bias behind it.
#include "compress/early_exit/heads.h"

#include <cmath>

#include "compress/early_exit/thresholds.h"
#include "compress/evaluate.h"

namespace ctk::exits {
namespace {

using graph::Graph;
using graph::ValueId;

constexpr double kLeastVariance = 1e-12;  // of a feature that is the same for all samples: it stays as it is

struct Rows {
  std::vector<float> values;
  std::size_t width = 0;

  std::span<const float> row(std::size_t i) const { return std::span(values).subspan(i * width, width); }
  std::size_t count() const { return width == 0 ? 0 : values.size() / width; }
  void add(const Tensor& tensor) {
    const auto more = tensor.values<float>();
    values.insert(values.end(), more.begin(), more.end());
    width = static_cast<std::size_t>(tensor.shape().back());
  }
  Tensor take(std::span<const std::size_t> samples) const {
    Tensor taken =
        Tensor::zeros(DType::f32, {static_cast<std::int64_t>(samples.size()), static_cast<std::int64_t>(width)})
            .value();
    float* to = taken.mutable_values<float>().data();
    for (std::size_t sample : samples) to = std::ranges::copy(row(sample), to).out;
    return taken;
  }
};

struct Learned {
  std::vector<Rows> features;  // of each head, one row a sample
  Rows logits;
  std::vector<std::int64_t> labels;  // empty: none
};

Result<Learned> run_network(const Graph& graph, const std::vector<ValueId>& features,
                            const std::vector<graph::InferredValue>& infos, const data::Split& split) {
  Graph probe = graph.clone();
  for (std::size_t i = 0; i < features.size(); ++i)
    probe.add_output(add_mean(probe, features[i], infos, "probe_" + std::to_string(i)));
  Learned learned;
  learned.features.resize(features.size());
  CTK_CHECK(pipeline::for_each_batch(
      probe, split, {}, {}, [&](const std::vector<Tensor>& outputs, const data::Batch& batch, std::size_t) -> Status {
        learned.logits.add(outputs[0]);
        const std::size_t first = outputs.size() - features.size();
        for (std::size_t i = 0; i < features.size(); ++i) learned.features[i].add(outputs[first + i]);
        learned.labels.insert(learned.labels.end(), batch.labels.begin(), batch.labels.end());
        return {};
      }));
  return learned;
}

struct Scaling {
  std::vector<double> mean, deviation;  // [features]
};

Scaling standardize(Rows& rows) {
  Scaling scaling{std::vector<double>(rows.width), std::vector<double>(rows.width)};
  const auto count = static_cast<double>(rows.count());
  for (std::size_t i = 0; i < rows.values.size(); ++i)
    scaling.mean[i % rows.width] += static_cast<double>(rows.values[i]);
  for (double& mean : scaling.mean) mean /= count;
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    const double miss = static_cast<double>(rows.values[i]) - scaling.mean[i % rows.width];
    scaling.deviation[i % rows.width] += miss * miss / count;
  }
  for (double& variance : scaling.deviation) variance = variance > kLeastVariance ? std::sqrt(variance) : 1;
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    const std::size_t column = i % rows.width;
    rows.values[i] =
        static_cast<float>((static_cast<double>(rows.values[i]) - scaling.mean[column]) / scaling.deviation[column]);
  }
  return scaling;
}

class FeatureFeed final : public train::Feed {
 public:
  FeatureFeed(const Rows& features, const Rows& logits, const std::vector<std::int64_t>& labels)
      : features_(features), logits_(logits), labels_(labels) {}
  std::size_t count() const override { return features_.count(); }
  Result<Batch> read(std::span<const std::size_t> samples, std::int64_t) override {
    Batch batch;
    batch.inputs = {features_.take(samples)};
    batch.teacher = logits_.take(samples);
    if (labels_.size() == count()) {
      for (std::size_t sample : samples) batch.labels.push_back(labels_[sample]);
    }
    return batch;
  }

 private:
  const Rows& features_;
  const Rows& logits_;
  const std::vector<std::int64_t>& labels_;
};

// x [batch, features] -> logits [batch, classes], all weights 0.
Result<Graph> linear(std::int64_t features, std::int64_t classes) {
  Graph graph;
  const ValueId x = graph.add_value("x", DType::f32, graph::DeclaredShape{{-1, "N"}, {features, ""}});
  graph.add_input(x);
  CTK_TRY(Tensor weight, Tensor::zeros(DType::f32, {classes, features}));
  CTK_TRY(Tensor bias, Tensor::zeros(DType::f32, {classes}));
  graph::Node node;
  node.name = "head";
  node.op_type = "Gemm";
  node.inputs = {x, graph.add_constant("weight", std::move(weight)), graph.add_constant("bias", std::move(bias))};
  node.outputs = {graph.add_value("y", DType::f32)};
  node.attributes.set("transB", std::int64_t{1});
  graph.add_output(node.outputs[0]);
  graph.add_node(std::move(node));
  return graph;
}

// weight * (x - mean) / deviation + bias as a head of x itself.
Head unscaled(const Graph& trained, const Scaling& scaling, ValueId feature) {
  Head head{feature, trained.value(*trained.find_value("weight")).constant->clone(),
            trained.value(*trained.find_value("bias")).constant->clone(), kNobody};
  const auto weight = head.weight.mutable_values<float>(), bias = head.bias.mutable_values<float>();
  const std::size_t width = scaling.mean.size();
  for (std::size_t c = 0; c < bias.size(); ++c) {
    double shift = 0;
    for (std::size_t f = 0; f < width; ++f) {
      const double w = static_cast<double>(weight[c * width + f]) / scaling.deviation[f];
      weight[c * width + f] = static_cast<float>(w);
      shift += w * scaling.mean[f];
    }
    bias[c] = static_cast<float>(static_cast<double>(bias[c]) - shift);
  }
  return head;
}

}  // namespace

Result<std::vector<Head>> train_heads(const Graph& graph, const std::vector<ValueId>& features,
                                      const std::vector<graph::InferredValue>& infos, const data::Split& split,
                                      train::Trainer& trainer, const HeadOptions& options) {
  CTK_TRY(Learned learned, run_network(graph, features, infos, split));
  std::vector<Head> heads;
  std::int64_t done = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    Rows& rows = learned.features[i];
    const Scaling scaling = standardize(rows);
    CTK_TRY(const Graph start,
            linear(static_cast<std::int64_t>(rows.width), static_cast<std::int64_t>(learned.logits.width)));
    FeatureFeed feed(rows, learned.logits, learned.labels);
    train::FitTask task;
    task.student = &start;
    task.feed = &feed;
    task.options.loss.temperature = options.temperature;
    task.options.loss.alpha = options.alpha;
    task.options.optimizer = train::Optimizer::adam;
    task.options.learning_rate = options.learning_rate;
    task.options.epochs = options.epochs;
    task.options.batch_size = options.batch_size;
    task.options.batch_norm = false;
    task.options.seed = options.seed;
    task.options.threads = options.threads;
    std::int64_t steps = 0;
    task.on_step = [&](const train::Progress& progress) -> Status {
      steps = progress.steps;
      return options.on_step ? options.on_step(done + progress.step) : Status{};
    };
    auto fitted = trainer.fit(task);
    if (!fitted) return std::move(fitted).error().with_context("head " + std::to_string(i + 1));
    done += steps;
    heads.push_back(unscaled(fitted->graph, scaling, features[i]));
  }
  return heads;
}

}  // namespace ctk::exits

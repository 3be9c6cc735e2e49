#include "compress/quantize/tune_blocks.h"

#include <algorithm>
#include <set>

#include "compress/quantize/stream.h"
#include "core/printable.h"
#include "graph/blocks.h"
#include "graph/subgraph.h"

namespace ctk::quantization {
namespace {

using graph::Graph;
using graph::Layer;
using graph::NodeId;
using graph::ValueId;

constexpr std::size_t kHoldOutEvery = 8;

bool has_codes(const Graph& graph, ValueId weight) {
  const auto& quantized = graph.value(weight).quantized;
  return quantized && quantized->scheme.is_integer_weight();
}

struct Block {
  std::size_t first = 0, last = 0;  // places of the order
  std::vector<Layer> layers;        // whose codes nobody outside reads
};

std::vector<Block> blocks_of(const Graph& coded) {
  std::vector<std::size_t> ends;
  for (const graph::Cut& cut : graph::cuts_of(coded)) ends.push_back(cut.place);
  std::vector<Block> blocks;
  const std::vector<NodeId>& order = coded.order();
  Block block;
  const auto close = [&](std::size_t place) {
    block.last = place;
    const std::set<NodeId> inside(order.begin() + static_cast<std::ptrdiff_t>(block.first),
                                  order.begin() + static_cast<std::ptrdiff_t>(place));
    std::erase_if(block.layers, [&](const Layer& layer) {
      return !std::ranges::all_of(coded.value(layer.weight).consumers,
                                  [&](NodeId reader) { return inside.contains(reader); });
    });
    if (!block.layers.empty()) blocks.push_back(block);
    block = {place, place, {}};
  };
  for (std::size_t place = 0; place <= order.size(); ++place) {
    const bool is_cut = std::ranges::binary_search(ends, place);
    if (place == order.size() || (is_cut && block.layers.size() >= kLeastLayers)) close(place);
    if (place == order.size()) break;
    const auto layer = graph::layer_of(coded, order[place]);
    if (layer && has_codes(coded, layer->weight)) block.layers.push_back(*layer);
  }
  return blocks;
}

// Whether the same nodes do for samples of both shapes: numbers that were known from the shapes are equal.
bool is_same(const graph::Subgraph& a, const graph::Subgraph& b) {
  if (a.inputs != b.inputs || a.graph.value_capacity() != b.graph.value_capacity()) return false;
  for (std::uint32_t i = 0; i < a.graph.value_capacity(); ++i) {
    const auto &x = a.graph.value(ValueId{i}).constant, &y = b.graph.value(ValueId{i}).constant;
    if (x.has_value() != y.has_value()) return false;
    if (!x || x->data() == y->data()) continue;
    if (x->shape() != y->shape() || !std::ranges::equal(x->raw(), y->raw())) return false;
  }
  return true;
}

class BlockTuner {
 public:
  BlockTuner(const Graph& original, const Graph& coded, const GivenCodes& start, const BlockTuningOptions& options)
      : original_(original), tuned_(coded.clone()), options_(options), before_(original), after_(tuned_) {
    codes_.given = start;
  }

  Result<TunedCodes> run(const data::Split& split) {
    blocks_ = blocks_of(tuned_);
    if (blocks_.empty()) return std::move(codes_);
    if (split.count() < 2 * options_.batch) return too_few(split.count() / options_.batch);
    for (std::size_t i = 0; i + options_.batch <= split.count(); i += options_.batch) {
      CTK_TRY(const data::Batch batch, split.read(i, i + options_.batch));
      CTK_CHECK(before_.begin(batch.inputs));
      CTK_CHECK(after_.begin(batch.inputs));
      std::vector<Shape>& shapes = shapes_.emplace_back();
      for (const Tensor& input : batch.inputs) shapes.push_back(input.shape());
      if (!infos_.contains(shapes)) {
        CTK_TRY(infos_[shapes], graph::infer_shapes(tuned_, shapes));
      }
    }
    open_tables();
    for (std::size_t b = 0; b < blocks_.size(); ++b) CTK_CHECK(tune(b));
    return std::move(codes_);
  }

 private:
  Status tune(std::size_t at) {
    const Block& block = blocks_[at];
    CTK_CHECK(before_.advance(block.first));
    CTK_CHECK(after_.advance(block.first));
    CTK_TRY(const graph::Subgraph part, part_for(block));
    CTK_TRY(const std::vector<std::size_t> batches, batches_for(block, part));
    const std::size_t held_out = std::max<std::size_t>(1, batches.size() / kHoldOutEvery);
    if (batches.size() <= held_out) return too_few(batches.size());
    train::BlockTask task;
    for (std::size_t i : batches) {
      std::vector<Tensor>& inputs = task.inputs.emplace_back();
      for (ValueId id : part.inputs) inputs.push_back(after_.value(i, id));
    }
    CTK_CHECK(before_.advance(block.last));
    for (std::size_t o = 0; o < part.outputs.size(); ++o) {
      const ValueId id = part.outputs[o];
      if (before_.has(0, id) && before_.value(0, id).dtype() == DType::f32) task.compared.push_back(o);
    }
    for (std::size_t i : batches) {
      std::vector<Tensor>& targets = task.targets.emplace_back();
      for (std::size_t o : task.compared) targets.push_back(before_.value(i, part.outputs[o]));
    }
    task.block = &part.graph;
    task.floats = &original_;
    for (const Layer& layer : block.layers) task.weights.push_back(tuned_.value(layer.weight).name);
    task.held_out = held_out;
    task.per_step = options_.per_step;
    task.steps = options_.steps;
    task.seed = options_.seed + at;
    task.threads = options_.threads;
    task.on_step = [&](std::int64_t step) -> Status {
      if (!options_.on_step) return {};
      const auto steps = static_cast<std::size_t>(options_.steps);
      return options_.on_step(at * steps + static_cast<std::size_t>(step), blocks_.size() * steps);
    };
    auto found = options_.trainer->tune_block(task);
    if (!found) {
      return std::move(found).error().with_context(printable(tuned_.address(block.layers[0].node)) + " and its block");
    }
    keep(block, *found, held_out, batches.size() - held_out);
    return {};
  }

  // Numbers that follow from the samples' shape would be constants of a block. Those that differ in length from shape
  // to shape, such as tables of positions, become inputs of it, so that samples of all shapes can share it.
  void open_tables() {
    const auto length = [](const graph::InferredValue& info) {
      return info.known && info.info.constant ? info.info.constant->shape() : Shape{-1};
    };
    const auto& first = infos_.begin()->second;
    for (std::uint32_t v = 0; v < first.size(); ++v) {
      const bool is_table =
          std::ranges::any_of(infos_, [&](const auto& entry) { return length(entry.second[v]) != length(first[v]); });
      if (!is_table || tuned_.value(ValueId{v}).is_constant()) continue;
      for (auto& [shapes, infos] : infos_) infos[v].info.constant.reset();
    }
  }

  Error too_few(std::size_t found) const {
    return input_error("signround: expected at least 2 batches of " + std::to_string(options_.batch) +
                       " samples in data.calibrate, one of them to judge blocks on, found " + std::to_string(found) +
                       ". Give more samples, of one shape");
  }

  // The block as samples of the shape that most have see it.
  Result<graph::Subgraph> part_for(const Block& block) const {
    const std::vector<Shape>* most = &shapes_.front();
    for (const auto& shapes : shapes_) {
      if (std::ranges::count(shapes_, shapes) > std::ranges::count(shapes_, *most)) most = &shapes;
    }
    return graph::extract(tuned_, block.first, block.last, infos_.at(*most));
  }

  Result<std::vector<std::size_t>> batches_for(const Block& block, const graph::Subgraph& part) const {
    std::map<std::vector<Shape>, bool> fits;
    for (const auto& [shapes, infos] : infos_) {
      CTK_TRY(const graph::Subgraph other, graph::extract(tuned_, block.first, block.last, infos));
      fits[shapes] = is_same(part, other);
    }
    std::vector<std::size_t> batches;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const bool is_there = std::ranges::all_of(part.inputs, [&](ValueId id) { return after_.has(i, id); });
      if (fits.at(shapes_[i]) && is_there) batches.push_back(i);
    }
    return batches;
  }

  // The block's codes as they are now, into the network and among those given.
  void keep(const Block& block, const train::BlockResult& found, std::size_t held_out, std::size_t trained) {
    TunedBlock row;
    row.held_out = static_cast<std::int64_t>(held_out * options_.batch);
    row.samples = static_cast<std::int64_t>(trained * options_.batch);
    row.error_before = found.error_before;
    row.error = found.error;
    row.is_kept = found.best_step > 0;
    std::map<ValueId, std::shared_ptr<const QuantTensor>> moved;  // of weights that several layers read, once
    for (const Layer& layer : block.layers) {
      const std::string address = tuned_.address(layer.node);
      row.layers.push_back(address);
      graph::Value& weight = tuned_.value(layer.weight);
      auto& codes = moved[layer.weight];
      if (codes == nullptr) {
        QuantTensor copy =
            row.is_kept ? *found.block.value(*found.block.find_value(weight.name)).quantized : *weight.quantized;
        if (row.is_kept) copy.method = "signround";
        codes = std::make_shared<const QuantTensor>(std::move(copy));
      }
      if (!row.is_kept) {
        if (const auto given = codes_.given.find(address); given != codes_.given.end())
          given->second.receipt = receipt_of(row);
        continue;
      }
      WeightOutcome& outcome = codes_.given[address];
      outcome.tensor = *codes;
      outcome.receipt = receipt_of(row);
      outcome.squared_error = squared_error(layer, outcome.tensor);
    }
    for (const auto& [id, codes] : moved) tuned_.value(id).quantized = codes;
    codes_.blocks.push_back(std::move(row));
  }

  double squared_error(const Layer& layer, const QuantTensor& codes) const {
    const Tensor found = dequantize(codes);
    const auto& original = original_.value(original_.node(layer.node).inputs[1]).constant;
    double error = 0;
    for (std::size_t i = 0; i < found.size() && original; ++i) {
      const double miss =
          static_cast<double>(found.values<float>()[i]) - static_cast<double>(original->values<float>()[i]);
      error += miss * miss;
    }
    return error;
  }

  static InputReceipt receipt_of(const TunedBlock& row) {
    InputReceipt receipt;
    receipt.rows = row.samples;
    receipt.held_out_rows = row.held_out;
    receipt.error_rounding = row.error_before;
    receipt.error = row.error;
    receipt.fell_back = !row.is_kept;
    return receipt;
  }

  const Graph& original_;
  Graph tuned_;
  const BlockTuningOptions& options_;
  Stream before_, after_;
  std::vector<Block> blocks_;
  std::vector<std::vector<Shape>> shapes_;  // [batch][input]
  std::map<std::vector<Shape>, std::vector<graph::InferredValue>> infos_;
  TunedCodes codes_;
};

}  // namespace

bool tunes_blocks(std::string_view method) {
  return method == "signround";
}

Result<TunedCodes> tune_blocks(const Graph& original, const Graph& coded, const GivenCodes& start,
                               const data::Split& split, const BlockTuningOptions& options) {
  return BlockTuner(original, coded, start, options).run(split);
}

}  // namespace ctk::quantization

#include "compress/channel_means.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph/layer.h"

namespace ctk::pipeline {

using nlohmann::json;

std::size_t SampleBlocks::count() const {
  return std::min(kMost, (samples + batch - 1) / batch);
}

std::size_t SampleBlocks::begin(std::size_t block) const {
  const std::size_t batches = (samples + batch - 1) / batch;
  return batches == 0 ? 0 : std::min(samples, block * batches / count() * batch);
}

std::size_t SampleBlocks::of(std::size_t sample) const {
  std::size_t block = 0;
  while (block + 1 < count() && begin(block + 1) <= sample) ++block;
  return block;
}

ChannelMeans::ChannelMeans(const graph::Graph& graph, bool is_shared) : graph_(&graph), is_shared_(is_shared) {
  for (const graph::Layer& layer : graph::layers_of(graph)) wanted_.insert(layer.input);
}

void ChannelMeans::observe(graph::ValueId id, const TensorView& data, bool channels_last, std::size_t block) {
  if (!wanted_.contains(id) || data.shape.size() < 2) return;
  const auto channels = static_cast<std::size_t>(channels_last ? data.shape.back() : data.shape[1]);
  Sums& sums = sums_[graph_->value(id).name];
  if (sums.blocks.empty() || sums.block != block) {
    if (!is_shared_ && sums.blocks.size() == 2) {
      for (std::size_t c = 0; c < channels; ++c) sums.blocks[0][c] += sums.blocks[1][c];
      sums.blocks.pop_back();
    }
    sums.blocks.emplace_back(channels, 0.0);
  }
  sums.block = block;
  std::vector<double>& sum = sums.blocks.back();
  const auto values = data.values<float>();
  std::size_t inner = 1;
  if (!channels_last) {
    for (std::size_t d = 2; d < data.shape.size(); ++d) inner *= static_cast<std::size_t>(data.shape[d]);
  }
  for (std::size_t i = 0; i < values.size(); ++i) sum[i / inner % channels] += static_cast<double>(values[i]);
  sums.count += values.size() / std::max<std::size_t>(channels, 1);
}

std::string ChannelMeans::seen() const {
  json rows = json::object();
  for (const auto& [name, sums] : sums_) rows[name] = {{"blocks", sums.blocks}, {"count", sums.count}};
  const std::vector<std::uint8_t> bytes = json::to_cbor(rows);  // doubles as they are
  return {bytes.begin(), bytes.end()};
}

Status ChannelMeans::take(std::span<const std::string> parts) {
  sums_.clear();
  for (const std::string& part : parts) {
    const json rows = json::from_cbor(part, true, false);
    if (rows.is_discarded()) return internal_error("calibrate: expected means of channels from every rank");
    for (const auto& [name, row] : rows.items()) {
      Sums& sums = sums_[name];
      for (const json& block : row["blocks"]) sums.blocks.push_back(block.get<std::vector<double>>());
      sums.count += row["count"].get<std::uint64_t>();
    }
  }
  return {};
}

json ChannelMeans::to_json() const {
  json means = json::object();
  for (const auto& [name, sums] : sums_) {
    std::vector<double> mean(sums.blocks[0].size(), 0.0);
    for (const std::vector<double>& block : sums.blocks) {
      for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += block[c];
    }
    for (double& m : mean) m /= static_cast<double>(std::max<std::uint64_t>(sums.count, 1));
    means[name] = mean;
  }
  return means;
}

}  // namespace ctk::pipeline

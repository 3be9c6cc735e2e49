#include "compress/low_rank_layers.h"

#include "compress/interrupt.h"
#include "compress/quantize/coordinate_descent.h"
#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/low_rank.h"
#include "compress/quantize/stream.h"
#include "compress/transform/input_samples.h"
#include "core/printable.h"
#include "graph/floats.h"

namespace ctk::pipeline {
namespace {

using exporter::TransformRow;
using graph::Graph;
using graph::Layer;
using transform::InputGroup;

TransformRow correct(const Graph& original, const Layer& layer, std::span<const float> hessian, std::size_t rank,
                     Graph& coded) {
  const std::vector<float> weights = quantization::weight_rows(layer, graph::floats_of(original.value(layer.weight)));
  const Layer there = *graph::layer_of(coded, layer.node);
  std::vector<float> error = quantization::weight_rows(layer, dequantize(*coded.value(there.weight).quantized));
  for (std::size_t i = 0; i < error.size(); ++i) error[i] = weights[i] - error[i];
  const auto rows = static_cast<std::size_t>(layer.channels), columns = static_cast<std::size_t>(layer.reduction);
  const auto found = quantization::fit_low_rank(error, rows, columns, hessian, rank);
  const double energy = quantization::output_error(weights, rows, hessian, columns);
  const double share = energy > 0 ? 1 / energy : 1;
  TransformRow row{
      "low_rank", original.address(layer.node), "", {}, found.error_before * share, found.error_before * share, ""};
  if (!(found.error < found.error_before)) {
    row.reason = "no product of that rank is better than none";
    return row;
  }
  row.where = std::string(quantization::is_product(original, layer) ? "two MatMuls" : "two Convs") + " of rank " +
              std::to_string(found.rank);
  row.error_after = found.error * share;
  quantization::add_low_rank(coded, there, found);
  return row;
}

}  // namespace

Result<std::vector<TransformRow>> correct_layers(const Session& session, Graph& coded) {
  const Graph& original = session.model.graph;
  std::vector<TransformRow> rows;
  std::set<std::string> wanted;
  for (const Layer& layer : graph::layers_of(original)) {
    const auto there = graph::layer_of(coded, layer.node);
    const bool is_coded =
        there && coded.value(there->weight).quantized != nullptr && coded.node(layer.node).scheme.is_integer_weight();
    if (!is_coded) continue;
    const std::string address = original.address(layer.node);
    if (quantization::has_rows(original, layer)) {
      wanted.insert(address);
    } else {
      rows.push_back({"low_rank",
                      address,
                      "",
                      {},
                      {},
                      {},
                      "only matrix products and convolutions of one group and up to two dimensions take a correction"});
    }
  }
  const std::vector<InputGroup> groups = transform::input_groups(original, wanted);
  std::size_t done = 0;
  while (done < groups.size()) {
    const auto rest = std::span(groups).subspan(done);
    const std::size_t count = transform::groups_at_once(rest);
    CTK_TRY(auto samples, transform::read_samples(original, rest.first(count), *session.splits.calibrate, {0, true}));
    for (std::size_t i = 0; i < count; ++i, ++done) {
      CTK_CHECK(check_interrupt());
      const InputGroup& group = groups[done];
      const auto hessian = samples[i].moment->finish();
      for (std::size_t l = 0; l < group.layers.size(); ++l) {
        if (!group.is_wanted[l]) continue;
        const auto rank = static_cast<std::size_t>(session.config.quantize->low_rank);
        rows.push_back(correct(original, group.layers[l], hessian, rank, coded));
      }
    }
  }
  CTK_CHECK(coded.sort());
  CTK_CHECK(graph::verify(coded));
  return rows;
}

}  // namespace ctk::pipeline

#include "compress/transform/scaling.h"

#include "compress/interrupt.h"
#include "compress/quantize/layer_inputs.h"
#include "core/printable.h"

namespace ctk::transform {
namespace {

using graph::Graph;

std::string names_of(const Graph& graph, const InputGroup& group) {
  std::string names;
  for (std::size_t i = 0; i < group.layers.size(); ++i) {
    if (group.is_wanted[i]) names += (names.empty() ? "" : ", ") + graph.address(group.layers[i].node);
  }
  return names;
}

std::vector<CodedLayer> wanted_layers(const Request& request, const InputGroup& group) {
  std::vector<CodedLayer> layers;
  for (std::size_t i = 0; i < group.layers.size(); ++i) {
    const graph::Layer& layer = group.layers[i];
    if (!group.is_wanted[i] || layer.reduction != group.sampled().reduction) continue;
    layers.push_back({quantization::weight_rows(layer, *request.graph.value(layer.weight).constant),
                      static_cast<std::size_t>(layer.channels), request.schemes.at(request.graph.address(layer.node))});
  }
  return layers;
}

}  // namespace

Result<Transformed> scale_groups(const Request& request, const ScalingOptions& options, const ChooseFactors& choose) {
  Transformed result{request.graph.clone(), {}};
  std::set<std::string> wanted;
  for (const auto& [address, scheme] : request.schemes) {
    if (options.takes(scheme))
      wanted.insert(address);
    else
      result.rows.push_back({options.method, address, "", {}, {}, {}, options.why_not});
  }
  CTK_TRY(const auto infos, graph::infer_shapes(request.graph, request.sample_shapes, true));
  std::vector<InputGroup> groups = input_groups(request.graph, wanted);
  std::vector<Fold> folds;
  for (const InputGroup& group : groups) folds.push_back(find_fold(request.graph, group, infos));
  // Groups that are out of the question are listed and not watched.
  std::vector<InputGroup> open;
  std::vector<Fold> open_folds;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const bool is_closed = !groups[g].reason.empty();
    if (is_closed || (folds[g].edits.empty() && !request.insert_mul)) {
      result.rows.push_back({options.method,
                             names_of(request.graph, groups[g]),
                             "",
                             {},
                             {},
                             {},
                             is_closed ? groups[g].reason : folds[g].reason + "; no Mul may be put in"});
      continue;
    }
    open.push_back(std::move(groups[g]));
    open_folds.push_back(std::move(folds[g]));
  }
  std::size_t done = 0;
  while (done < open.size()) {
    const auto rest = std::span(open).subspan(done);
    const std::size_t count = options.samples.has_moments ? groups_at_once(rest) : rest.size();
    CTK_TRY(auto samples, read_samples(request.graph, rest.first(count), *request.samples, options.samples));
    for (std::size_t i = 0; i < count; ++i, ++done) {
      CTK_CHECK(check_interrupt());
      const InputGroup& group = open[done];
      const Fold& fold = open_folds[done];
      const std::string names = names_of(request.graph, group);
      auto factors = choose(group, wanted_layers(request, group), samples[i], fold.class_of);
      if (!factors) return std::move(factors).error().with_context(printable(names));
      exporter::TransformRow row{options.method,        names, "", factors->strength, factors->error_before,
                                 factors->error_before, ""};
      const bool has_own_mul = fold.edits.empty();
      if (factors->values.empty()) {
        row.reason = "no factors are better than 1";
      } else if (has_own_mul && !(factors->error_after < (1 - kLeastGain) * factors->error_before)) {
        row.reason = fold.reason + "; a Mul of its own would gain too little";
      } else {
        row.error_after = factors->error_after;
        row.where = has_own_mul ? "a Mul of its own" : fold.where;
        if (has_own_mul) row.reason = fold.reason;
        scale_inputs(result.graph, group, fold, factors->values);
      }
      result.rows.push_back(std::move(row));
      if (request.progress) request.progress(done + 1, open.size());
    }
  }
  CTK_CHECK(graph::verify(result.graph));
  return result;
}

}  // namespace ctk::transform

#include "compress/sized_model.h"

namespace ctk::pipeline {

Result<LoadedModel> load_sized_model(const std::string& path, std::int64_t size) {
  CTK_TRY(LoadedModel model, load_model(path));
  if (size == 0) {
    auto fixed = require_fixed_samples(model.graph);
    if (!fixed) return std::move(fixed).error().with_context(path);
    return model;
  }
  CTK_CHECK(require_known_ranks(model.graph));
  const auto inputs = model.graph.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& dims = *model.graph.value(inputs[i]).shape;
    for (std::size_t d = 1; d < dims.size(); ++d) {
      if (dims[d].size < 0) model.sample_shapes[i][d] = size;
    }
  }
  return model;
}

}  // namespace ctk::pipeline

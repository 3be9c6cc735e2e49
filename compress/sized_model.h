// A model for work without data: every dimension has a size.
#pragma once

#include <cstdint>
#include <string>

#include "compress/model.h"

namespace ctk::pipeline {

// load_model() with dimensions beyond the leading one that the model leaves open set to `size` (of a decoder, the
// tokens of a text); 0: there must be none. Errors: input: as load_model(); names the open dimensions.
Result<LoadedModel> load_sized_model(const std::string& path, std::int64_t size);

}  // namespace ctk::pipeline

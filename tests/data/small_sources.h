// What tests of sources begin from: two kinds of input, a spec that names a file only, the numbers of a batch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/source.h"

namespace ctk::data::test {

inline const std::vector<InputInfo> kImage = {{"x", DType::f32, {3, 8, 8}}};
inline const std::vector<InputInfo> kRow4 = {{"x", DType::f32, {4}}};

inline Result<std::unique_ptr<Source>> open(const SourceSpec& spec, const std::vector<InputInfo>& inputs) {
  return open_source(spec, inputs);
}

inline SourceSpec spec_of(const std::string& path) {
  SourceSpec spec;
  spec.path = path;
  return spec;
}

inline std::vector<float> floats_of(const Batch& batch, std::size_t input = 0) {
  const auto values = batch.inputs[input].values<float>();
  return {values.begin(), values.end()};
}

}  // namespace ctk::data::test

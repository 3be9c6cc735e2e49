// Conversion of one stored sample to what a model input wants. The formula stands in data/source.h.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/tensor.h"
#include "data/source.h"

namespace ctk::data {

// True when the spec says how integers become floats.
bool has_conversion(const SourceSpec& spec);
// Errors: config (scale 0, std not above 0, numbers that are not finite, negative skip, samples, resize or crop).
Status check_numbers(const SourceSpec& spec);
// Errors: input (dtype or shape that the model input cannot take; names input, expected and found). `origin` says where
// the sample comes from.
Status check_sample(const SourceSpec& spec, const InputInfo& input, const Tensor& stored, const std::string& origin);
// Index of the first NaN or Inf of a float tensor.
std::optional<std::size_t> find_not_finite(const Tensor& tensor);
// Writes stored.size() elements of the model's dtype to `out`. The sample must have passed check_sample().
// Errors: input (a value that is not finite, before or after conversion; names the element).
Status convert_sample(const SourceSpec& spec, const InputInfo& input, const Tensor& stored, void* out);

}  // namespace ctk::data

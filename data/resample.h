// Resizing and cropping of 8-bit images.
#pragma once

#include "core/result.h"
#include "data/image.h"

namespace ctk::data {

// Bilinear with antialiasing, shorter side to `side`, the longer one to floor(side * longer / shorter).
// Errors: input (the result would be too large).
Result<Image> resize_shorter(const Image& image, std::int64_t side, const std::string& where);
// The square of side `side` in the middle; an odd rest of r pixels leaves r/2 before it, halves to even.
// Errors: input (image smaller than the square).
Result<Image> crop_centre(const Image& image, std::int64_t side, const std::string& where);

}  // namespace ctk::data

// Shapes: concrete dimension lists with overflow-safe arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/result.h"

namespace ctk {

using Shape = std::vector<std::int64_t>;  // every entry >= 0; empty = scalar

// Product of the dimensions (1 for a scalar). Errors: input (negative dimension, or product past 2^48).
Result<std::size_t> element_count(const Shape& shape);
// Same for shapes our own code has made; aborts on a negative dimension.
std::size_t elements(const Shape& shape);
// Bytes of a dense tensor; 4-bit types round up to whole bytes.
std::size_t byte_size(DType dtype, std::size_t count);
// "[1,3,32,32]"
std::string to_string(const Shape& shape);
// Numpy broadcasting of two shapes. Errors: input (names both shapes).
Result<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace ctk

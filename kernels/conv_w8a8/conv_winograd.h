// The path of conv_int through kernels/winograd_w8a8: the same functions as in conv_w8a8.h.
#pragma once

#include "kernels/conv_w8a8/conv_w8a8.h"

namespace ctk::kernels {

// Whether conv_int takes this path; a function of row and shape alone, for it decides the packed layout.
bool takes_winograd(const GemmIntRow& row, const ConvShape& shape);

std::size_t conv_winograd_packed_bytes(const GemmIntRow& row, const ConvShape& shape);
void conv_winograd_pack(const GemmIntRow& row, const ConvShape& shape, const std::int8_t* codes, void* packed);
std::size_t conv_winograd_scratch_bytes(const GemmIntRow& row, const ConvShape& shape);  // per thread
void conv_winograd(const GemmIntRow& row, const ConvShape& shape, const void* packed, const std::uint8_t* x,
                   std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch);

}  // namespace ctk::kernels

// lookup: y[i] = table[x[i]] for uint8 codes; any unary operator on codes is one of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"

namespace ctk::kernels {

struct LookupRow {
  Isa isa;
  const char* name;
  void (*u8)(const std::uint8_t* table /*[256]*/, const std::uint8_t* x, std::uint8_t* y, std::size_t count);
};

#define CTK_KERNEL(symbol) extern const LookupRow symbol;
#include "kernels/lookup/kernels.def"
#undef CTK_KERNEL

std::span<const LookupRow> lookup_rows();

}  // namespace ctk::kernels

// lookup: scalar reference and table of rows.
#include "kernels/lookup/lookup.h"

namespace ctk::kernels {
namespace {

void lookup(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = table[x[i]];
}

}  // namespace

const LookupRow lookup_scalar = {Isa::scalar, "lookup_scalar", lookup};

std::span<const LookupRow> lookup_rows() {
  static const LookupRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/lookup/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

}  // namespace ctk::kernels

// Picks the row of a kernel kind: the last allowed one in the kind's table (tables stand in order of preference).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/cpu_isa.h"

namespace ctk::kernels {

template <class Row>
const Row& select(std::span<const Row> rows, std::span<const Isa> allowed) {
  const Row* best = &rows.front();  // scalar stands first and always runs
  for (const Row& row : rows) {
    for (Isa isa : allowed) {
      if (row.isa == isa) best = &row;
    }
  }
  return *best;
}

// One line per kind and row for `compress kernels` and `compress list kernels`.
struct KernelInfo {
  std::string kind;
  Isa isa;
  std::string name;  // "gemm_w8a8_6x16_x86_avx2"
};
std::vector<KernelInfo> all_kernels();  // kernels/table.cpp: walks every kind's table
// The rows of the other families of processors: named in the tables, not in this build.
std::vector<KernelInfo> foreign_kernels();

}  // namespace ctk::kernels

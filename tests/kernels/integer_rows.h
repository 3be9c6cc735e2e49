// Which rows a test runs: those this host can, then those emulated instruction by instruction, so that their logic is
// checked on every host.
#pragma once

#include <span>
#include <string>

#include "kernels/depthwise_w8a8/depthwise_w8a8.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"

namespace ctk::kernels::test {

// emulated_x86_*_test.cpp; null where the emulation's headers (libsimde-dev) are missing, and on ARM.
const GemmIntRow* emulated_avxvnni();
const GemmIntRow* emulated_avx512vnni();
const DepthwiseIntRow* emulated_depthwise_avx512vnni();

template <class Row, class Body>
void for_each_native_row(std::span<const Row> rows, Body&& body) {
  for (const Row& row : rows) {
    if (host_supports(row.isa)) body(row, std::string(row.name));
  }
}

template <class Body>
void for_each_gemm_row(std::span<const GemmIntRow> rows, Body&& body) {
  for_each_native_row(rows, body);
  for (const GemmIntRow* row : {emulated_avxvnni(), emulated_avx512vnni()}) {
    if (row != nullptr) body(*row, std::string(row->name) + " (emulated)");
  }
}

template <class Body>
void for_each_depthwise_row(Body&& body) {
  for_each_native_row(depthwise_w8a8_rows(), body);
  const DepthwiseIntRow* row = emulated_depthwise_avx512vnni();
  if (row != nullptr) body(*row, std::string(row->name) + " (emulated)");
}

}  // namespace ctk::kernels::test

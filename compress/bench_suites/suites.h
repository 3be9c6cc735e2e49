// The suites of `compress bench --suite`: kernels on fixed shapes, under the row names every peer is measured with.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "compress/bench.h"

namespace ctk::pipeline {

using EmitRow = std::function<void(const BenchRow&)>;

struct BenchSuite {
  std::string_view name;
  std::string_view what;
  Status (*run)(const BenchOptions& options, const EmitRow& emit);
};

std::span<const BenchSuite> bench_suites();

Status bench_w4(const BenchOptions& options, const EmitRow& emit);
Status bench_attn(const BenchOptions& options, const EmitRow& emit);
Status bench_int8(const BenchOptions& options, const EmitRow& emit);
Status bench_llm(const BenchOptions& options, const EmitRow& emit);
Status bench_quant(const BenchOptions& options, const EmitRow& emit);

}  // namespace ctk::pipeline

// Which kernel row runs what, and why not another: of this machine, and of each step of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace ctk::pipeline {

struct RowChoice {
  std::string kind, isa, name;  // "gemm_wg", "x86_avx2", "gemm_wg_6x16_x86_avx2"
  bool is_chosen = false;
  std::string why = {};
};

// Every row of every kind, those of other processors and of the simulated NPU last. Errors: config (CTK_ISA).
Result<std::vector<RowChoice>> row_choices();

// One step of a model's plan.
struct StepRow {
  std::string layer;                   // address of the node; "between layers" for conversions
  std::string step, kind, row;         // "conv_w8a8", "gemm_w8a8", its row; kind and row "" where no kernel runs it
  std::string why = {};                // "" where nothing better was to be had
  std::vector<RowChoice> others = {};  // the kind's rows that were not taken
};

// The plan of the model at `path` for one sample. size: of dimensions the model leaves open (tokens of a text); 0:
// there must be none. Errors: input (as load_model; open dimensions, by name), config (CTK_ISA).
Result<std::vector<StepRow>> step_rows(const std::string& path, std::int64_t size);

}  // namespace ctk::pipeline

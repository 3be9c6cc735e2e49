#include "compress/kernel_choice.h"

#include <algorithm>
#include <map>

#include "compress/sized_model.h"
#include "core/cpu_isa.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/npu/compile.h"
#include "kernels/select.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"
#include "runtime/cpu_executor.h"

namespace ctk::pipeline {
namespace {

// Winograd has no choice of its own: it comes with a row of gemm_w8a8, for the convolutions that fit it.
void add_winograd(std::vector<RowChoice>& list) {
  std::vector<RowChoice> rows;
  for (const kernels::GemmIntRow& row : kernels::gemm_w8a8_rows()) {
    if (row.winograd == nullptr) continue;
    RowChoice choice{"winograd_w8a8", std::string(name_of(row.isa)), row.winograd->name};
    for (const RowChoice& product : list) {
      if (product.name == row.name) choice.is_chosen = product.is_chosen;
    }
    choice.why = choice.is_chosen ? std::string("for 3x3 convolutions of stride 1, beside ") + row.name
                                  : std::string("comes with ") + row.name + ", which was not taken";
    rows.push_back(std::move(choice));
  }
  list.insert(list.end(), rows.begin(), rows.end());
}

// Why a step that no kernel row runs has none.
std::string why_no_row(const runtime::Step& step) {
  return step.label.starts_with("reference_")
             ? "no kernel has this form: the operator's float evaluation, on one thread"
             : "loops of its step, no kernel row";
}

}  // namespace

// Tables stand in order of preference, so the last row that may run is the one that is taken.
Result<std::vector<RowChoice>> row_choices() {
  CTK_TRY(const std::vector<Isa> allowed, allowed_isas());
  const auto is_allowed = [&](Isa isa) { return std::ranges::find(allowed, isa) != allowed.end(); };
  const std::vector<kernels::KernelInfo> all = kernels::all_kernels();
  std::map<std::string, std::string> chosen;  // kind to name
  for (const kernels::KernelInfo& info : all) {
    if (is_allowed(info.isa)) chosen[info.kind] = info.name;
  }
  std::vector<RowChoice> list;
  for (const kernels::KernelInfo& info : all) {
    RowChoice choice{info.kind, std::string(name_of(info.isa)), info.name};
    choice.is_chosen = chosen[info.kind] == info.name;
    choice.why = choice.is_chosen           ? "the last row this machine may run"
                 : !host_supports(info.isa) ? "this processor has no " + choice.isa
                 : !is_allowed(info.isa)    ? "CTK_ISA forces another"
                                            : "a later row is faster here";
    list.push_back(std::move(choice));
  }
  add_winograd(list);
  for (const kernels::KernelInfo& info : kernels::foreign_kernels()) {
    const std::string isa(name_of(info.isa));
    list.push_back({info.kind, isa, info.name, false, "for another family of processors: " + isa});
  }
  for (const kernels::npu::Row& row : kernels::npu::rows()) {
    list.push_back({std::string(row.kind), "npu_sim", row.name, false,
                    "for an NPU that a device card describes: compress bench MODEL --target CARD"});
  }
  return list;
}

Result<std::vector<StepRow>> step_rows(const std::string& path, std::int64_t size) {
  CTK_TRY(const std::vector<RowChoice> choices, row_choices());
  CTK_TRY(const LoadedModel model, load_sized_model(path, size));
  CTK_TRY(const auto executor, runtime::CpuExecutor::create(model.graph, batch_shapes(model, 1)));
  std::vector<StepRow> rows;
  for (const auto& step : executor->plan().steps) {
    StepRow row{step->node.is_valid() ? model.graph.address(step->node) : "between layers", step->label, "", step->row};
    const auto taken = std::ranges::find(choices, step->row, &RowChoice::name);
    if (taken == choices.end()) {
      row.why = step->why.empty() ? why_no_row(*step) : step->why;
    } else {
      row.kind = taken->kind;
      row.why = step->why;
      for (const RowChoice& other : choices) {
        if (other.kind == row.kind && other.name != row.row) row.others.push_back(other);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace ctk::pipeline

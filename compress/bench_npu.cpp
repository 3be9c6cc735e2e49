// A model with its integer layers on the NPU of a device card: cycles and bytes counted, the rest measured here.
#include "compress/bench.h"
#include "compress/sized_model.h"
#include "compress/two_units.h"

namespace ctk::pipeline {

Status bench_on_npu(const BenchOptions& options, const std::function<void(const BenchRow&)>& emit) {
  CTK_TRY(const TargetCard card, load_target(options.target, TargetUse::partition));
  if (auto whole = require_machine(card); !whole) return std::move(whole).error().with_context(options.target);
  CTK_TRY(const LoadedModel model, load_sized_model(options.model, options.size));
  CTK_TRY(const TwoUnits run, run_on_two_units(model, card, std::nullopt, options.seconds));
  const runtime::NpuReport& report = run.report;
  const auto counted = [&](const std::string& row, const std::string& variant, const kernels::npu::Counts& counts) {
    const double us = kernels::npu::microseconds(*card.machine, counts.cycles);
    BenchRow out{row,
                 "ours",
                 variant,
                 options.threads,
                 us,
                 us,
                 1,
                 static_cast<std::int64_t>(counts.bytes_constants + counts.bytes_in + counts.bytes_out),
                 static_cast<std::int64_t>(2 * counts.macs)};
    out.counts = counts;
    emit(out);
  };
  for (const runtime::NpuLayer& layer : report.layers)
    counted("npu." + model.graph.address(layer.node), layer.row, layer.counts);

  double cpu_us = 0, cpu_least_us = 0;
  for (const runtime::NpuFallback& fallback : report.fallbacks) {
    const runtime::StepTime& time = run.times[fallback.step];
    cpu_us += time.median_us;
    cpu_least_us += time.least_us;
    BenchRow out{"cpu." + (fallback.node.is_valid() ? model.graph.address(fallback.node) : "between layers"),
                 "ours",
                 fallback.label,
                 options.threads,
                 time.least_us,
                 time.median_us,
                 1};
    out.reason = fallback.reason;
    emit(out);
  }
  double transfer_us = 0;
  std::int64_t transfer_bytes = 0;
  for (const runtime::NpuTransfer& transfer : report.transfers) {
    const double us = card.transfer_us(static_cast<double>(transfer.bytes));
    transfer_us += us;
    transfer_bytes += static_cast<std::int64_t>(transfer.bytes);
    emit({"transfer." + model.graph.value(transfer.value).name, "ours", transfer.to_npu ? "to npu" : "to cpu",
          options.threads, us, us, 1, static_cast<std::int64_t>(transfer.bytes)});
  }
  const double launch_us = static_cast<double>(report.launches) * card.launch_us;
  emit({"total.transfer", "ours", card.name, options.threads, transfer_us, transfer_us,
        static_cast<std::int64_t>(report.transfers.size()), transfer_bytes});
  emit({"total.launch", "ours", card.name, options.threads, launch_us, launch_us,
        static_cast<std::int64_t>(report.launches)});
  emit({"total.cpu", "ours", "measured", options.threads, cpu_least_us, cpu_us,
        static_cast<std::int64_t>(report.fallbacks.size())});
  counted("total.npu", card.name, report.total);
  return {};
}

}  // namespace ctk::pipeline

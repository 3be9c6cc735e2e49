// compress partition: segments, transfers and fallbacks of a model over the processor and other units.
#include "compress/partition.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "search/problem.h"

namespace ctk::cli {
namespace {

using nlohmann::ordered_json;
using search::format_amount;
using namespace search::partition;

std::string time_text(double us) {
  return format_amount(us, "us");
}

ordered_json cost_json(const Cost& cost) {
  return {{"total_us", cost.total_us},     {"compute_us", cost.compute_us}, {"transfer_us", cost.transfer_us},
          {"convert_us", cost.convert_us}, {"launch_us", cost.launch_us},   {"makespan_us", cost.makespan_us}};
}

std::string as_json(const pipeline::Partition& found) {
  const Task& task = found.task;
  const Plan& plan = found.plan;
  ordered_json units = ordered_json::array(), nodes = ordered_json::array(), segments = ordered_json::array();
  ordered_json transfers = ordered_json::array(), fallbacks = ordered_json::array(), others = ordered_json::object();
  for (std::size_t u = 0; u < task.units.size(); ++u)
    units.push_back({{"name", task.units[u].name}, {"kind", task.units[u].kind}, {"times", found.sources[u]}});
  for (std::size_t i = 0; i < task.nodes.size(); ++i) {
    ordered_json times = ordered_json::object();
    for (std::size_t u = 0; u < task.units.size(); ++u) {
      const NodeTime& time = task.nodes[i].on[u];
      times[task.units[u].name] = time.us == kCannotRun ? ordered_json{{"reason", time.reason}}
                                                        : ordered_json{{"us", time.us}, {"source", time.source}};
    }
    nodes.push_back({{"name", task.nodes[i].name},
                     {"op", task.nodes[i].op},
                     {"unit", task.units[plan.unit_of[i]].name},
                     {"times", std::move(times)}});
  }
  for (const Segment& segment : segments_of(task, plan.unit_of)) {
    segments.push_back({{"unit", task.units[segment.unit].name},
                        {"first", task.nodes[segment.begin].name},
                        {"last", task.nodes[segment.end - 1].name},
                        {"nodes", segment.end - segment.begin},
                        {"compute_us", segment.compute_us},
                        {"launch_us", segment.launch_us}});
  }
  for (const Transfer& transfer : transfers_of(task, plan.unit_of)) {
    transfers.push_back({{"value", task.values[transfer.value].name},
                         {"bytes", task.values[transfer.value].bytes},
                         {"from", task.units[transfer.from].name},
                         {"to", task.units[transfer.to].name},
                         {"us", transfer.us}});
  }
  for (const Fallback& fallback : fallbacks_of(task, plan.unit_of)) {
    fallbacks.push_back({{"node", task.nodes[fallback.node].name},
                         {"op", task.nodes[fallback.node].op},
                         {"from", task.units[fallback.from].name},
                         {"to", task.units[fallback.to].name},
                         {"reason", fallback.reason},
                         {"cost_us", fallback.cost_us}});
  }
  for (const auto& [name, other] : found.others) others[name] = cost_json(other.cost);
  ordered_json all{{"units", units},
                   {"cost", cost_json(plan.cost)},
                   {"proved_optimal", plan.proved_optimal},
                   {"bound_us", plan.bound_us},
                   {"gap_us", plan.gap_us},
                   {"cpu_us", found.cpu_us},
                   {"between_us", found.between_us},
                   {"segments", segments},
                   {"transfers", transfers},
                   {"fallbacks", fallbacks},
                   {"nodes", nodes},
                   {"solvers", others}};
  ordered_json runs = ordered_json::array();
  for (const pipeline::PlacementRun& run : found.runs) {
    runs.push_back({{"on_npu", run.on_npu},
                    {"same_outputs", run.same_outputs},
                    {"predicted", cost_json(run.plan.cost)},
                    {"counted", cost_json(run.counted)}});
  }
  if (!found.runs.empty()) {
    all["runs"] = std::move(runs);
    all["corrections"] = found.notes;
  }
  return all.dump(2) + "\n";
}

std::string as_text(const pipeline::Partition& found) {
  constexpr std::size_t kTransfersShown = 20;
  const Task& task = found.task;
  const Plan& plan = found.plan;
  std::string text;
  for (std::size_t u = 0; u < task.units.size(); ++u) text += task.units[u].name + ": " + found.sources[u] + "\n";
  text += "\nsegments\n";
  for (const Segment& segment : segments_of(task, plan.unit_of)) {
    const std::size_t count = segment.end - segment.begin;
    text += "  " + task.units[segment.unit].name + "  " + task.nodes[segment.begin].name +
            (count == 1 ? "" : " .. " + task.nodes[segment.end - 1].name) + " (" + std::to_string(count) +
            (count == 1 ? " node): " : " nodes): ") + time_text(segment.compute_us) +
            (segment.launch_us > 0 ? ", launch " + time_text(segment.launch_us) : "") + "\n";
  }
  const auto transfers = transfers_of(task, plan.unit_of);
  if (!transfers.empty()) text += "transfers\n";
  for (std::size_t k = 0; k < std::min(kTransfersShown, transfers.size()); ++k) {
    const Transfer& transfer = transfers[k];
    text += "  " + task.values[transfer.value].name + " " + format_amount(task.values[transfer.value].bytes, "B") +
            " from " + task.units[transfer.from].name + " to " + task.units[transfer.to].name + ": " +
            time_text(transfer.us) + "\n";
  }
  if (transfers.size() > kTransfersShown)
    text += "  and " + std::to_string(transfers.size() - kTransfersShown) + " more (--json lists all)\n";
  const auto fallbacks = fallbacks_of(task, plan.unit_of);
  if (!fallbacks.empty()) text += "fell back\n";
  for (const Fallback& fallback : fallbacks) {
    text += "  " + task.nodes[fallback.node].name + " (" + task.nodes[fallback.node].op + ") to " +
            task.units[fallback.to].name + ": " + fallback.reason + "; costs " + time_text(fallback.cost_us) + "\n";
  }
  text += "\ntotal " + time_text(plan.cost.total_us) + ": compute " + time_text(plan.cost.compute_us) + ", transfers " +
          time_text(plan.cost.transfer_us) + ", conversions " + time_text(plan.cost.convert_us) + ", launches " +
          time_text(plan.cost.launch_us) + "; side by side " + time_text(plan.cost.makespan_us) + "\n";
  text += plan.proved_optimal ? "no placement takes less\n" : "gap to the bound " + time_text(plan.gap_us) + "\n";
  text += "cpu alone " + time_text(found.cpu_us) + ", of which " + time_text(found.between_us) +
          " between nodes (in no placement's time)\n";
  for (const pipeline::PlacementRun& run : found.runs) {
    text += "ran with " + std::to_string(run.on_npu) + " layers on the npu, outputs as on the cpu alone: predicted " +
            time_text(run.plan.cost.total_us) + ", counted " + time_text(run.counted.total_us) + " (compute " +
            time_text(run.counted.compute_us) + ", transfers " + time_text(run.counted.transfer_us) + ", conversions " +
            time_text(run.counted.convert_us) + ", launches " + time_text(run.counted.launch_us) + ")\n";
  }
  for (const std::string& note : found.notes) text += "  corrected: " + note + "\n";
  for (const auto& [name, other] : found.others) text += "  by " + name + ": " + time_text(other.cost.total_us) + "\n";
  return text;
}

Status partition(const Session& session, pipeline::PartitionOptions options) {
  options.threads = session.threads > 0 ? session.threads : 1;
  CTK_TRY(const pipeline::Partition found, pipeline::partition_model(options));
  print(session.is_json ? as_json(found) : as_text(found));
  return {};
}

}  // namespace

void add_partition(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("partition", "Place the nodes of a model on the processor, a GPU and an NPU");
  const auto options = std::make_shared<pipeline::PartitionOptions>();
  verb->add_option("model", options->model, "An .onnx file, a checkpoint folder or a bundle")->required();
  verb->add_option("--target", options->targets, "Device cards of units beside the processor")->required();
  verb->add_option("--solver", options->solver, "exact, rules, greedy, annealing or genetic");
  verb->add_option("--seed", options->seed, "Of annealing and genetic");
  verb->add_flag("--makespan", options->for_makespan, "Units side by side, not one after the other");
  verb->add_flag("--run", options->runs,
                 "Run the placement on the processor and the simulated npu, correct, place again");
  verb->add_option("--seconds", options->seconds, "Time of measuring the processor")->check(CLI::Range(0.001, 600.0));
  add_json(*verb, session);
  add_threads(*verb, session);
  verb->callback(
      [&session, options] { session.action = [&session, options] { return partition(session, *options); }; });
}

}  // namespace ctk::cli

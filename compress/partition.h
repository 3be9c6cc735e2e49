// compress partition: which unit runs which node of a model. The processor's times are measured here; those of an npu
// whose card says what is inside are counted by simulating it (kernels/npu), all others are the card's.
#pragma once

#include <string>
#include <vector>

#include "compress/model.h"
#include "compress/target.h"
#include "search/partition/auto_tune.h"
#include "search/partition/explain.h"

namespace ctk::pipeline {

struct PartitionOptions {
  std::string model;                 // an .onnx file, a checkpoint folder or a bundle
  std::vector<std::string> targets;  // device cards beside the processor, at least one
  std::string solver = "exact";      // a row of search/partition/solvers.h
  std::uint64_t seed = 0;
  bool for_makespan = false;
  int threads = 1;
  double seconds = 0.5;  // of measuring
  bool runs = false;     // also run the placement, correct the costs that were wrong where it matters, place again
};

// A placement as it was planned and as it ran.
struct PlacementRun {
  search::partition::Plan plan;     // its cost: predicted
  search::partition::Cost counted;  // NPU counted, CPU measured, transfers of the bytes that crossed, by the card
  std::size_t on_npu = 0;           // layers
  bool same_outputs = false;        // to the bit those of the processor alone; anything else is an error
};

struct Partition {
  search::partition::Task task;  // units[0] is the processor
  search::partition::Plan plan;
  double cpu_us = 0;      // the whole network on the processor, measured
  double between_us = 0;  // measured steps that belong to no node (changes of layout and form): in no placement's time
  std::vector<std::string> sources;  // [units], where its times come from
  // Every row of the table, for comparison: name and plan.
  std::vector<std::pair<std::string, search::partition::Plan>> others;
  // With PartitionOptions::runs: each placement that was run, outputs the bits of the processor alone. `plan` is the
  // quickest of them, `task` holds what was corrected, `notes` say what that was.
  std::vector<PlacementRun> runs;
  std::vector<std::string> notes;
};

// What a card says of one node: time, form and, where it cannot run, the reason.
struct Work {
  std::string op;
  double ops = 0;          // 2 a multiply-add
  double weights = 0;      // elements
  double activations = 0;  // elements read and written
  bool is_layer = false;
};
search::partition::NodeTime time_on_card(const TargetCard& card, const Work& work);

// Runs a placement on the processor and the npu, which is unit 1 of the task: what each node and each value took.
Result<search::partition::Profile> run_placement(const LoadedModel& model, const TargetCard& card,
                                                 const search::partition::Task& task,
                                                 const search::partition::Plan& plan, double seconds,
                                                 PlacementRun& into);

// With `runs` a node that the npu has no commands for cannot run there, whatever the card lists.
// A node of the task is a graph node with those it absorbs. Values that a reader takes from outside its node move with
// the bytes the network holds them in (codes 1, floats 4 each element).
// Errors: config (cards, solver, a scratchpad too small for a layer, `runs` without exactly one npu that is simulated),
// input (the model, free sizes, a node no unit can run), internal (a placement that changes a bit of the outputs).
Result<Partition> partition_model(const PartitionOptions& options);

}  // namespace ctk::pipeline

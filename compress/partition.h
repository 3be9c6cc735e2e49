// compress partition: which unit runs which node of a model. The processor's times are measured here; those of a gpu or
// npu come from its device card until something measures or simulates them.
#pragma once

#include <string>
#include <vector>

#include "compress/model.h"
#include "compress/target.h"
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
};

struct Partition {
  search::partition::Task task;  // units[0] is the processor
  search::partition::Plan plan;
  double cpu_us = 0;      // the whole network on the processor, measured
  double between_us = 0;  // measured steps that belong to no node (changes of layout and form): in no placement's time
  std::vector<std::string> sources;  // [units], where its times come from
  // Every row of the table, for comparison: name and plan.
  std::vector<std::pair<std::string, search::partition::Plan>> others;
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

// A node of the task is a graph node with those it absorbs. Values that a reader takes from outside its node move with
// the bytes the network holds them in (codes 1, floats 4 each element).
// Errors: config (cards, solver), input (the model, free sizes, a node no unit can run).
Result<Partition> partition_model(const PartitionOptions& options);

}  // namespace ctk::pipeline

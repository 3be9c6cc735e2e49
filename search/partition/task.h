// A network over several units: what each operator takes where, and what moving values between units costs. Numbers in,
// numbers out; whoever builds a Task has measured, simulated or looked up the times.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "core/result.h"

namespace ctk::search::partition {

constexpr double kCannotRun = std::numeric_limits<double>::infinity();
constexpr std::size_t kOutside = static_cast<std::size_t>(-1);  // in place of a producer: comes from the caller

struct Unit {
  std::string name;      // "cpu", "npu0"
  std::string kind;      // cpu, gpu or npu: what the rule table goes by
  double launch_us = 0;  // for each segment that starts on it
};

// From one unit to another.
struct Link {
  double start_us = 0;
  double bytes_per_us = 1e3;      // 1e3 = 1 GB/s
  double flush_us = 0;            // to make caches agree
  bool is_shared_memory = false;  // a pointer is passed: no bytes move
};

struct NodeTime {
  double us = kCannotRun;
  std::string form = {};    // of the activations it works on: "float", "int8"
  std::string reason = {};  // why it cannot run there
  std::string source = {};  // "measured", "simulated" or "from the card"
};

struct Node {
  std::string name, op;
  std::vector<NodeTime> on;  // [units]
};

// A tensor on its way: moved at most once to each unit that reads it.
struct Value {
  std::string name;
  std::size_t producer = kOutside;
  std::vector<std::size_t> consumers;  // each once
  double bytes = 0;
  bool is_output = false;     // goes back to the caller
  double transfer_scale = 1;  // measured over predicted, from auto_tune.h
};

struct Task {
  std::vector<Unit> units;  // the caller's values lie on the first
  std::vector<Node> nodes;  // in the order they run in, which must be topological
  std::vector<Value> values;
  std::vector<std::vector<Link>> links;  // [units][units], the diagonal is not read
  // Where a reader's form differs from the producer's: each reader converts for itself, and so does the caller.
  double convert_start_us = 0, convert_bytes_per_us = 1e3;
  std::string outside_form = {};  // of the caller's values; "": any
};

// Errors: input: no unit, a time or cost that is NaN or negative, a value that names unknown nodes or one twice, a
// reader before its producer, a node that no unit can run (with every unit's reason).
Status check_task(const Task& task);

// Brings nodes into an order in which producers come first, earlier nodes as early as they can. Errors: input (a
// cycle).
Status sort_nodes(Task& task);

double transfer_us(const Task& task, const Value& value, std::size_t from, std::size_t to);
double convert_us(const Task& task, const Value& value, std::size_t unit, std::size_t consumer, std::size_t its_unit);
// What an output's conversion for the caller takes, made on `unit`.
double return_convert_us(const Task& task, const Value& value, std::size_t unit);

struct Cost {
  double compute_us = 0, transfer_us = 0, convert_us = 0, launch_us = 0;
  double total_us = 0;     // one thing after the other
  double makespan_us = 0;  // units side by side, each running its nodes in order, transfers waited for by the reader
};
// unit_of: [nodes], units that can run them.
Cost cost_of(const Task& task, const std::vector<std::size_t>& unit_of);

}  // namespace ctk::search::partition

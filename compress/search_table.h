// What the search stage decides on: layers that go together, and what each scheme costs them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compress/session.h"
#include "runtime/cpu_executor.h"
#include "runtime/generate.h"
#include "runtime/measure.h"

namespace ctk::pipeline::search_table {

// Layers that take one scheme: alone, those that share a weight, and, with `groups: auto`, products of one input.
struct Group {
  std::vector<std::string> layers;
  std::vector<QuantScheme> choices;
  std::string tie;  // "share its weight", "read the same input"; empty: one layer
};

using Costs = std::map<std::pair<std::string, std::string>, double>;  // by (layer, scheme)

// What two groups, each under one scheme, lose together beyond the sum of both; groups by their first layer.
struct PairLoss {
  std::string first, first_scheme, second, second_scheme;
  double sum = 0, together = 0;  // KL of the score split, nats
  double loss() const { return together - sum; }
};

// What going from one group to the next takes where one computes on codes and the other on floats; groups by their
// first layer. Once from `first` on codes to `second` on floats, once the other way.
struct Border {
  std::string first, second;
  double to_floats_us = 0, to_codes_us = 0;
};

// Of a language model: reading one token behind a text, and reading that text.
struct PhaseCosts {
  Costs us;                              // by (layer, scheme)
  double base_us = 0;                    // steps that belong to no layer
  double float_us = 0, baseline_us = 0;  // as for whole networks
};

struct Table {
  std::vector<Group> groups;
  std::vector<PairLoss> pairs;
  std::vector<Border> borders;
  PhaseCosts decode, prefill;
  Costs loss, bytes, latency_us, packed;  // packed: bytes of weights in kernel layout
  Costs loss_error;                       // standard errors of the losses
  Costs bits;                             // of a group's weights over all weights of layers: sums are the average
  double base_bytes = 0;                  // fixed part of the file
  double base_us = 0;                     // steps that belong to no layer
  double base_peak = 0;                   // activations and scratch
  double float_us = 0, float_peak = 0;
  double baseline_us = 0, baseline_peak = 0;  // of the network as read, where a stage has changed it since
};

// The network with one scheme wherever layers may take it, ready to run.
struct UniformRun {
  QuantScheme scheme;
  std::unique_ptr<graph::Graph> graph;
  std::unique_ptr<runtime::CpuExecutor> executor;   // null where only phases are asked for
  std::unique_ptr<runtime::Generator> reader = {};  // null where no phase is
};
// What budgets ask to be measured.
struct Running {
  bool whole = false, phases = false;
  bool any() const { return whole || phases; }
};
Running running_of(const BudgetConfig& budget);

// Groups of this run's layers; schemes a layer cannot take go to report.skipped.
// Errors: config (patterns that match nothing).
Result<std::vector<Group>> make_groups(Session& session);

// Bytes of the written file, a group and scheme at a time, under the group's first layer. Asked from the exporter once
// for each form of layer, since groups whose weights alone are coded add as much as others of their form.
// Errors: those of quantizing and writing.
Status fill_bytes(const Session& session, Table& table);

// Average bits of a weight, a group and scheme at a time, under the group's first layer.
void fill_bits(const graph::Graph& graph, Table& table);

// One for each scheme of the stage, float first. Errors: those of quantizing and planning.
Result<std::vector<UniformRun>> uniform_runs(const Session& session, const std::vector<Group>& groups,
                                             const std::map<std::string, calibrate::Range>& ranges, Running running);
// Memory of a network as it runs, a layer and scheme at a time.
void fill_peak(std::span<const UniformRun> runs, Table& table);
// Timing each step adds the clock's own time; whole runs say how much. The factor by which every step gives it back.
double clock_share(double whole_us, std::span<const runtime::StepTime> steps);
// Times, measured now. Errors: those of running.
Status fill_times(std::span<const UniformRun> runs, Table& table);

// A network as a reader of texts as long as a sample, and what one of them takes to read, apart from the layers: the
// rest of a step of one token, the rest of the prompt. Errors: input (no language model), those of running.
Result<std::unique_ptr<runtime::Generator>> make_reader(const Session& session, const graph::Graph& graph);
struct PhaseTimes {
  double us = 0, other_us = 0;                // whole; without its layers
  std::map<std::string, double> by_layer_us;  // by address
};
struct ReaderTimes {
  PhaseTimes decode, prefill;
};
// Readers in turn; one each. `graphs` name the steps' layers.
Result<std::vector<ReaderTimes>> measure_readers(std::span<runtime::Generator* const> readers,
                                                 std::span<const graph::Graph* const> graphs, std::size_t tokens);
// Tokens of the text that readers read.
std::size_t prompt_tokens(const Session& session);
// Times of reading, measured now. Errors: those of running.
Status fill_phases(const Session& session, std::span<const UniformRun> runs, Table& table);

// What shares of the float model are shares of; after fill_peak() and fill_times(). Errors: those of running.
Status fill_baseline(const Session& session, Table& table);

// Activations, scratch and packed weights.
double peak_bytes(const runtime::CpuExecutor& executor);

// Of one scheme for a group: summed over its layers, or of the first, which stands for a shared weight.
double group_cost(const Costs& costs, const Group& group, const QuantScheme& scheme, bool all_layers);

}  // namespace ctk::pipeline::search_table

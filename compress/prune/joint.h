// Widths and bits in one programme (stages.prune.ratios: joint): budget.size and budget.latency are spent on channels
// and on schemes at once, so that a layer may keep its channels at few bits where that loses less than the reverse.
//
// The programme: an item is a group of channels with all layers that make or read them, and its choices are a width and
// a scheme for each of the layers; layers that no cut touches are items of schemes alone. Loss of a choice: the width's
// point on its curve (repaired), plus what rounding each layer's whole weight to its scheme does to the outputs alone.
// Costs: bytes as the exporter writes the layers of this width, times of the layers in networks cut to it everywhere.
// Bytes are exact where a layer touches one group that may be cut; a group that shares a layer with one taken before
// stays whole. What activations lose, and what tuning gives back, is not known here: behind the cut the search scores
// and solves again, so that the schemes of this programme are not binding, and its widths are.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "compress/prune/widths.h"
#include "compress/session.h"

namespace ctk::pruning {

struct JointAnswer {
  Widths widths;
  std::map<std::string, std::string> schemes;  // by layer: those the widths were chosen with
  double loss = 0, size = 0, latency = 0;      // predicted; latency 0 where no budget asks for it
  // The sequential way in the same numbers: widths for the share of the multiply-adds that suits best, by their curves
  // alone, then the best schemes for what is left of the budgets. nullopt: none of the shares keeps them.
  std::optional<double> sequential_loss, sequential_macs;
};
nlohmann::json to_json(const JointAnswer& answer);
// What it says, in a sentence, from that.
std::string told(const nlohmann::json& answer);

// Errors: budget_infeasible (names the budget and what widths and schemes reach together), those of quantizing, writing
// and running.
Result<JointAnswer> joint_widths(pipeline::Session& session, const WidthTask& task, const Curves& curves);

// What a programme of that kind is made of: numbers alone.
struct JointLayer {
  std::string name;
  std::optional<std::size_t> group;  // of channels; nullopt: its width is what it is
  // [levels][schemes]; a layer without a group has one level.
  std::vector<std::vector<double>> size, latency;
  std::vector<double> loss;               // [schemes]
  std::vector<std::string> schemes;       // their names
  std::vector<std::string> members = {};  // addresses of the layers that take one scheme
};
struct JointProgramme {
  std::vector<std::vector<CurvePoint>> levels;  // [groups]: widths, widest first; one point: it stays whole
  std::vector<JointLayer> layers;
  double fixed_size = 0, fixed_latency = 0, size_limit = 0, latency_limit = 0;  // limits: infinity for none
};
struct JointChoice {
  std::vector<std::size_t> levels;   // [groups]
  std::vector<std::size_t> schemes;  // [layers]
  double loss = 0, size = 0, latency = 0;
};
// `only`: levels that are given, [groups]; empty: all are free. Errors: budget_infeasible.
Result<JointChoice> solve_joint(const JointProgramme& programme, const std::vector<std::size_t>& only = {});

}  // namespace ctk::pruning

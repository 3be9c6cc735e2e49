// Layers given back precision where the coded network is below the floor.
//
// Each layer has a ladder of schemes, each with less loss than the one before: the choices of the search, or float
// where one scheme was asked for. All layers climb together until the floor holds; then, of the last steps, the least
// that will do are kept: ordered by measured benefit (KL that a step alone saves, nats) for each byte it adds, as many
// as a bisection over that order finds, and of these the ones taken back whose absence the floor does not notice.
// Layers beyond half of the evaluations are ranked by their scores instead, or by the weight error of their codes.
// Cost: `revert` evaluations of the select split at most.
#pragma once

#include "compress/contest.h"
#include "compress/floor.h"

namespace ctk::pipeline {

struct Reverted {
  CodedNetwork network;
  quantization::SchemeMap schemes;
  exporter::FloorPart part;
};

// None where the network holds the floor as it is, or nothing may be measured (stages.quantize.revert: 0).
// Errors: gate_refused (not even the most precise schemes hold it, by more than two standard errors, or the evaluations
// ran out first); budget_infeasible (they do, but break budget.size, bits or peak_memory); those of coding and running.
Result<std::optional<Reverted>> revert_to_floor(const Session& session, Floor& floor, const Contest& contest);

}  // namespace ctk::pipeline

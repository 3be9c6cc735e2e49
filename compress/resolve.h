// `compress search`: another budget from the files that a run's search stage left, without the model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "export/report.h"

namespace ctk::pipeline {

// In the output folder of a run; all may be edited and shared.
//   scores.json             losses by layer and scheme. A layer without a line stays float, a scheme without one is
//                           not chosen.
//   search/costs.json       groups of layers with their choices, bytes of each, fixed parts, the run's limits
//   search/times.json       times by layer and scheme with the processor they were taken on; where a budget asked
//   search/pairs.json       what neighbours lose together; where stages.search.pairs asked
//   search/corrections.json what coded networks put losses right by; where stages.search.corrections asked
struct ResolveRequest {
  std::string run;                   // the output folder
  std::vector<std::string> budgets;  // "size=60 kB", "bits=4.5", "loss=0.02"; those of the run where none is given
  std::string minimize;              // a budget to make small instead of the loss, which then needs a limit
  std::string solver = "ilp";
  std::string
      assignment;  // a file like search/assignment.json to price instead of solving; layers it leaves out: float
  bool allow_other_machine = false;
};

struct FrontRequest {
  ResolveRequest of;              // its run, and the limits of budgets that are no axes
  std::vector<std::string> over;  // one budget or two; size, and latency where layers were timed
  std::size_t points = 12;
};
struct FrontAnswer {
  exporter::FrontRow row;
  std::map<std::string, std::string> schemes;  // by layer
};
struct ResolvedFront {
  std::vector<std::string> over;
  std::vector<FrontAnswer> points;
  std::vector<std::string> warnings;
};

struct ResolvedLayer {
  std::string layer, scheme, reason;
};
struct ResolvedBudget {
  std::string name, unit;  // "size", "B"
  double limit = 0;        // infinity: none
  double predicted = 0;
  double price = 0;  // nats saved for each unit more
  bool is_objective = false;
};
struct Resolved {
  std::vector<ResolvedLayer> layers;
  std::vector<ResolvedBudget> budgets;
  double loss = 0, bound = 0, gap = 0;
  bool is_proved = false;
  std::vector<std::string> warnings;
};

// Errors: config (a budget or a solver that is none), input (files missing or damaged: names file, layer and what is
// wrong; times of another processor, unless allowed), budget_infeasible.
Result<Resolved> resolve(const ResolveRequest& request);
// Answers that no other one beats. Errors: as resolve(), config (axes).
Result<ResolvedFront> resolve_front(const FrontRequest& request);

}  // namespace ctk::pipeline

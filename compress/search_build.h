// Answers of the programme as networks: what sums over layers miss is found by building them, and solved again.
#pragma once

#include "compress/search_plan.h"

namespace ctk::pipeline::search_table {

// The answer as it will really be: bytes by the exporter, memory by its plan, times of layers from the table and of all
// other steps measured. Times are of the minute in which the table was made: the float network, run in turn with the
// answer, says how much slower or faster the machine has become since.
struct Built {
  double bytes = 0, peak = 0, bits = 0;
  double latency_us = 0;  // sum over layers and other steps: the prediction
  double whole_us = 0;    // the whole network, measured
  // The same of the phases of a language model.
  double decode_us = 0, whole_decode_us = 0, prefill_us = 0, whole_prefill_us = 0;
};
// reference: the float network; null when nothing asks about running. Errors: those of quantizing and running.
Result<Built> build(const Session& session, const Table& table, const UniformRun* reference,
                    const quantization::SchemeMap& schemes);

// What the sums missed for this answer becomes a fixed cost of the next one. True: some limit is broken.
bool add_missed(const Built& built, const search::Assignment& answer, const Limits& limit, Limits& extra);

struct Solution {
  search::Assignment answer;
  quantization::SchemeMap schemes;
  Built built;
  int corrections = 0;
};
// The best answer within `limit` whose network, as built, keeps `held` (usually the same). Where the sum counts more
// bytes than are written (text of a file deflates better where layers are alike), that room is given back as far as
// what is built then still keeps the limits. `extra`: what sums were found to miss, in and out; bytes of either sign.
// Errors: budget_infeasible, those of build().
Result<Solution> solve_and_build(const Session& session, const Table& table, const UniformRun* reference,
                                 const search::Solver& solver, const Limits& limit, const Limits& held, Limits& extra);

}  // namespace ctk::pipeline::search_table

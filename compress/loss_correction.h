// Losses scored layer by layer, put right by networks that were coded and measured as a whole, and solved again.
#pragma once

#include <functional>
#include <vector>

#include "compress/search_plan.h"

namespace ctk::pipeline::search_table {

struct Correction {
  double scale = 1;  // of all losses
  Costs gains;       // by (layer, scheme): output error of the codes used over rounding's, on held-out rows, 0.25 to 1
};

// Losses times gain and scale. A scheme of a layer that was not coded gains what the layer's others do in the mean, a
// layer that was not, what all do; without any, 1. What pairs add goes by the root of both gains.
Table corrected(const Table& table, const Correction& correction);

// What coding and measuring a network found, on the select split.
struct MeasuredLoss {
  double kl = 0, standard_error = 0;  // nats
  Costs gains;
};
using CodeAndMeasure = std::function<Result<MeasuredLoss>(const Finalist& network)>;

struct LossRounds {
  std::vector<Finalist> finalists;  // beyond the first, in order
  std::vector<exporter::LossRoundRow> rows;
  Correction correction;
};
// From the first network on: losses are scaled so that their sum is what was measured, the programme of the run's
// search files is solved again, and its answer coded and measured, until predicted and measured agree within a tenth
// (or two standard errors), the same schemes come again, or `most` networks were coded. Errors: those of the files, of
// solving and of `code`.
Result<LossRounds> correct_losses(const Session& session, const Finalist& first, const MeasuredLoss& measured,
                                  std::size_t most, const CodeAndMeasure& code);

}  // namespace ctk::pipeline::search_table

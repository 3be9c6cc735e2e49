// `compress explain`: why a finished run ended with this answer, from its output folder, without the model.
#pragma once

#include <string>
#include <vector>

#include "export/report.h"

namespace ctk::pipeline {

// What a layer (with those that go with it) could have become.
struct ExplainedChoice {
  std::string scheme;
  exporter::Figure loss, loss_error;  // nats; of one layer alone where none go with it
  double bytes = 0;
  exporter::Figure latency_us, packed_bytes;
  bool is_chosen = false;
};
struct ExplainedRun {
  exporter::Report report;               // report.layers: all, or the one asked for
  std::vector<std::string> mates;        // of the layer asked for: layers that take one scheme with it
  std::string tie;                       // "share their weight": why
  std::vector<ExplainedChoice> choices;  // of the layer asked for, cheapest first; empty where nothing was searched
};

// The report of a finished run: its output folder, or the file itself. Errors: input (none there, or damaged).
Result<exporter::Report> read_run_report(const std::string& run);

// `layer` empty: the whole run. Errors: input (no report there, or damaged; no such layer, with the nearest name).
Result<ExplainedRun> explain_run(const std::string& folder, const std::string& layer);

}  // namespace ctk::pipeline

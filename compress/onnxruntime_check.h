// Runs written ONNX files in ONNX Runtime (a Python process of its own) and compares outputs with ours.
#pragma once

#include <string>
#include <vector>

#include "compress/session.h"

namespace ctk::pipeline {

// For every ONNX file of this run: arg-max agreement and largest error relative to the largest output, on up to 512
// test samples, twice: the nodes run as written (what the file means), and with the peer's fused int8 kernels (what a
// user of it gets on this machine). Where the first differs, the peer is also held against itself with its float sums
// in another order: a network that turns one flipped rounding into another class does so there too, and the warning
// says which of the two it is. Rows of report.checks. Where ONNX Runtime is absent the row says "not run" with the
// reason, and a warning is added: never silent. Errors: input (the file does not load there: its message).
Status check_against_onnxruntime(Session& session);

// Runs `model` in ONNX Runtime on one input batch. Used by the check above and by `compress eval --against`.
struct PeerRun {
  std::vector<Tensor> outputs;
  double median_us = 0, p95_us = 0, least_us = 0;  // of single-sample runs, when timing was asked for
};
enum class PeerMode {
  as_written,  // every node as it stands: Q/DQ in float
  reordered,   // float too, but with its optimizer's kernels, which sum in another order
  fused,       // Q/DQ fused into its own int8 kernels: what it does when nobody asks
};
struct PeerOptions {
  int threads = 1;
  double timing_seconds = 0;  // 0: no timing
  PeerMode mode = PeerMode::fused;
};
// A Python that has onnxruntime: CTK_PYTHON, the one beside this program, python3. Empty when there is none.
std::string find_onnxruntime_python(std::string* reason);
Result<PeerRun> run_in_onnxruntime(const std::string& python, const std::string& model,
                                   const std::vector<std::string>& names, const std::vector<Tensor>& inputs,
                                   const std::string& scratch, const PeerOptions& options);

}  // namespace ctk::pipeline

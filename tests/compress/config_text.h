// Pipeline files as text, and what is said of bad ones.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compress/config.h"

namespace ctk::pipeline::test {

inline constexpr const char* kGood =
    "model: net.onnx\n"                                                       // 1
    "output: out\n"                                                           // 2
    "data:\n"                                                                 // 3
    "  calibrate: {path: a.npz, samples: 16}\n"                               // 4
    "  evaluate: {path: b.npz, labels: y, metric: top1}\n"                    // 5
    "budget: {size: 60 kB, latency: 0.20 ms, metric_drop: 1.0 pt}\n"          // 6
    "stages:\n"                                                               // 7
    "  - calibrate: {method: mse}\n"                                          // 8
    "  - sensitivity: {metric: kl}\n"                                         // 9
    "  - search: {schemes: [w8a8_c, w4a8_c, fp16], solver: ilp}\n"            // 10
    "  - quantize: {method: rtn}\n"                                           // 11
    "  - export: {formats: [onnx_qdq, bundle]}\n"                             // 12
    "  - validate: {against: [onnxruntime], gate: {metric_drop: 1.0 pt}}\n";  // 13

// A pipeline whose only oddity is `quantize`, which stands on line 6.
inline std::string with_quantize(const std::string& body) {
  return "model: net.onnx\noutput: out\ndata: {calibrate: {path: a.npz}}\nstages:\n  - calibrate: {method: mse}\n"
         "  - quantize: " +
         body + "\n";
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

inline Result<PipelineConfig> parsed(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_config_text(text, "edge.yaml", "/work", overrides);
}

// The message of a pipeline that must be refused as a configuration error.
inline std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto config = parsed(text, overrides);
  if (config) return "(accepted)";
  EXPECT_EQ(config.error().code, ErrorCode::config);
  return config.error().message;
}

#define EXPECT_SAYS(message, words) EXPECT_NE((message).find(words), std::string::npos) << (message)

}  // namespace ctk::pipeline::test

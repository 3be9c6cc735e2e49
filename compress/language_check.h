// Runs written language models in other people's runtimes and compares their logits with ours.
#pragma once

#include <string>

#include "compress/session.h"

namespace ctk::pipeline {

// against: "llama.cpp" (the GGUF file), "transformers" (the checkpoint folder), "onnxruntime" (the ONNX file with
// MatMulNBits). The first windows of the test text: share of positions at which both find the same token most likely,
// and the largest difference relative to the largest logit, as a row of report.checks. Where the file was not written,
// the model is none of language, or the peer is absent, the row says "not run" with the reason, and a warning is added.
// Errors: input (the file does not load there: its message), config (an unknown name).
Status check_language_model(Session& session, const std::string& against);

}  // namespace ctk::pipeline

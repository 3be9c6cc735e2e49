// The tokenizer that a model brings: a folder's tokenizer.json, or the vocabulary inside a GGUF file.
#pragma once

#include <memory>
#include <string>

#include "compress/config.h"
#include "core/result.h"
#include "data/text/tokenizer.h"

namespace ctk::pipeline {

// Whether there is a file that begins as GGUF does.
bool is_gguf_file(const std::string& path);

// `path`: a checkpoint folder, a tokenizer.json, or a .gguf file (keys tokenizer.ggml.* of its metadata).
// Errors: input (no tokenizer there; damaged; kinds that are not known).
Result<std::shared_ptr<const data::Tokenizer>> open_model_tokenizer(const std::string& path);

// The source as the data layer opens it: texts beside a GGUF model take the vocabulary inside it unless they name a
// tokenizer. Errors: those of open_model_tokenizer().
Result<data::SourceSpec> with_tokenizer(const data::SourceSpec& spec);

}  // namespace ctk::pipeline

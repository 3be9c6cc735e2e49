// Decoders of Llama's family from GGUF: metadata -> DecoderConfig, tensors -> Hugging Face's names and row order.
#pragma once

#include <string>

#include "graph/gguf/container.h"
#include "graph/hf/decoder.h"

namespace ctk::graph::gguf {

// The file as a graph, the same that graph/hf builds from the checkpoint the file was made of. F32 tensors whose rows
// need no turning stay mapped; all others are dequantized. What was decided stands in reader_notes. The weights'
// numbers are not looked at.
// Errors: input (path, key or tensor, expected, found): a container that lies, an architecture we do not know (lists
// the known), a key that would change the function and is not understood, a tensor missing, of another shape or of no
// use, a vocabulary of another size than the embedding.
Result<Graph> read_gguf(const std::string& path);
Result<Graph> read_decoder(const File& file);

Result<hf::DecoderConfig> decoder_config(const File& file);

}  // namespace ctk::graph::gguf

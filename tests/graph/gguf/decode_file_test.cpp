// Writes the float32 numbers of every tensor of the file in CTK_GGUF_FILE to CTK_GGUF_FLOATS, one after another: what
// test_blocks_against_gguf.py compares with the `gguf` package. Skipped without them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/file.h"
#include "graph/gguf/container.h"

namespace ctk::graph::gguf {
namespace {

TEST(GgufDecodeFile, WritesFloats) {
  const char *source = std::getenv("CTK_GGUF_FILE"), *target = std::getenv("CTK_GGUF_FLOATS");
  if (source == nullptr || target == nullptr) GTEST_SKIP() << "CTK_GGUF_FILE and CTK_GGUF_FLOATS are not set";
  const auto file = File::open(source);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  auto writer = FileWriter::create(target);
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  for (const TensorInfo& tensor : file->tensors()) {
    const auto floats = file->floats(tensor);
    ASSERT_TRUE(floats.has_value()) << floats.error().message;
    ASSERT_TRUE(writer->append(floats->raw()).has_value());
  }
  ASSERT_TRUE(writer->commit().has_value());
}

}  // namespace
}  // namespace ctk::graph::gguf

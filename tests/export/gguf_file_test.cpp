// For test_gguf_files.py: reads the model CTK_GGUF_MODEL (a checkpoint folder or GGUF file), rounds its linear weights
// to CTK_GGUF_SCHEME where that is given and their rows are whole blocks, and writes CTK_GGUF_OUT with the metadata of
// CTK_GGUF_SOURCE. Beside it: "<out>.floats", the numbers of every weight in the graph, and "<out>.index", a line
// "name elements" for each. Skipped without them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/file.h"
#include "export/gguf.h"
#include "graph/gguf/llama.h"
#include "graph/hf/read.h"
#include "tests/export/round_weights.h"

namespace ctk::exporter {
namespace {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

TEST(GgufFile, WritesTheModelOfTheEnvironment) {
  const std::string model = setting("CTK_GGUF_MODEL"), out = setting("CTK_GGUF_OUT"),
                    scheme = setting("CTK_GGUF_SCHEME");
  if (model.empty() || out.empty()) GTEST_SKIP() << "CTK_GGUF_MODEL and CTK_GGUF_OUT are not set";
  auto graph = std::filesystem::is_directory(model) ? graph::hf::read_hf(model) : graph::gguf::read_gguf(model);
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  for (graph::NodeId id : graph->order()) {
    const graph::Node& node = graph->node(id);
    if (scheme.empty() || node.op_type != "Gemm" || node.name == "lm_head") continue;
    graph::Value& weight = graph->value(node.inputs[1]);
    if (weight.constant->shape()[1] % 32 != 0) continue;
    weight.quantized =
        std::make_shared<const QuantTensor>(test::round_weights(*weight.constant, *parse_scheme(scheme)));
    weight.constant.reset();
  }
  const std::string source = setting("CTK_GGUF_SOURCE");
  const auto written = write_gguf(*graph, source.empty() ? model : source, out);
  ASSERT_TRUE(written.has_value()) << written.error().message;
  auto floats = FileWriter::create(out + ".floats");
  ASSERT_TRUE(floats.has_value());
  std::string index;
  for (std::size_t i = 0; i < graph->value_capacity(); ++i) {
    const graph::Value& value = graph->value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (!value.is_constant() || !value.name.ends_with(".weight")) continue;
    const Tensor tensor = value.quantized != nullptr ? dequantize(*value.quantized) : *value.constant;
    ASSERT_TRUE(floats->append(tensor.raw()).has_value());
    index += value.name + " " + std::to_string(tensor.size()) + "\n";
  }
  ASSERT_TRUE(floats->commit().has_value());
  ASSERT_TRUE(write_file(out + ".index", index).has_value());
}

}  // namespace
}  // namespace ctk::exporter

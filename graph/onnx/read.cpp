#include "graph/onnx/read.h"

#include <google/protobuf/io/coded_stream.h>
#include <onnx.pb.h>

#include <filesystem>
#include <limits>

#include "core/file.h"
#include "graph/onnx/build_graph.h"
#include "graph/onnx/wire.h"

namespace ctk::graph::onnx {
namespace {

Error no_model(const std::string& found) {
  return input_error("expected an ONNX model, found: " + found);
}

Result<Graph> read_bytes(std::span<const std::byte> bytes, const std::string& folder, const ReadOptions& options,
                         std::vector<std::string>* data_files) {
  if (bytes.empty()) return no_model("an empty file");
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return no_model("a file of " + std::to_string(bytes.size()) +
                    " bytes; more than 2147483647 need external data "
                    "(onnx.save with save_as_external_data)");
  }
  ::onnx::ModelProto model;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  stream.SetRecursionLimit(kMaxNesting);
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return no_model(explain_parse_failure(bytes));
  }
  // Random bytes and other protobuf files often parse: a model has at least
  // these.
  if (!model.has_graph() || !model.has_ir_version()) return no_model("no graph or no IR version in the file");
  ExternalData external(folder);
  CTK_TRY(Graph graph, build_graph(model, external, options));
  if (data_files != nullptr) *data_files = external.paths();
  return graph;
}

}  // namespace

Result<Graph> read_model(const std::string& path, const ReadOptions& options, std::vector<std::string>* data_files) {
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  auto graph = read_bytes(file.bytes(), folder.empty() ? "." : folder, options, data_files);
  if (!graph) return std::move(graph).error().with_context(path);
  return graph;
}

Result<Graph> read_model_bytes(std::span<const std::byte> bytes, const std::string& folder_for_external_data,
                               const ReadOptions& options) {
  return read_bytes(bytes, folder_for_external_data, options, nullptr);
}

}  // namespace ctk::graph::onnx

// AttributeProto <-> Attribute. Internal to graph/onnx.
#pragma once

#include <onnx.pb.h>

#include <string>

#include "graph/graph.h"
#include "graph/onnx/external_data.h"

namespace ctk::graph::onnx {

// Scalars, lists and tensors become typed attributes. Subgraphs, types, sparse, string and float8 tensors become
// OpaqueAttribute: the serialized AttributeProto, with external tensors inside it made inline.
// Errors: input (attribute name; the caller adds the node).
Result<Attribute> attribute_from_proto(::onnx::AttributeProto& proto, ExternalData& external);

// Errors: internal (opaque bytes that are no AttributeProto).
Status attribute_to_proto(const std::string& name, const Attribute& attribute, ::onnx::AttributeProto& proto);

}  // namespace ctk::graph::onnx

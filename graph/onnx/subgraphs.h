// What must be known of subgraphs (bodies of If, Loop, Scan and custom operators) that are carried unread.
// Depth is bounded by the parser, which refuses messages nested deeper than 100. Internal to graph/onnx.
#pragma once

#include <onnx.pb.h>

#include <set>
#include <string>
#include <vector>

#include "graph/onnx/external_data.h"

namespace ctk::graph::onnx {

// Names an attribute's subgraphs read but do not define, at any depth: they belong to the graph around. In order of
// first use, without repeats. `inner` receives every name the subgraphs define.
std::vector<std::string> outer_names(const ::onnx::AttributeProto& attribute, std::set<std::string>& inner);

// Loads every external tensor inside the attribute into it, since its location would be lost on writing elsewhere.
Status make_inline(::onnx::AttributeProto& attribute, ExternalData& external);

}  // namespace ctk::graph::onnx

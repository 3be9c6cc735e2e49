// TensorProto <-> Tensor. Internal to graph/onnx.
#pragma once

#include <onnx.pb.h>

#include <optional>
#include <string>

#include "core/tensor.h"
#include "graph/onnx/external_data.h"

namespace ctk::graph::onnx {

// Our element type for an ONNX type number; nullopt for what we do not hold (float8, complex, unknown numbers).
std::optional<DType> dtype_from_onnx(int number);
int onnx_number_of(DType dtype);
// "FLOAT8E4M3FN (17)", "unknown (99)".
std::string describe_onnx_type(int number);

// Checks every claim (dims, sizes, ranges) and copies, or maps external data. Frees the proto's bytes as it goes.
// String tensors are refused: callers carry them apart. Errors: input (tensor name, expected, found).
Result<Tensor> tensor_from_proto(::onnx::TensorProto& proto, ExternalData& external);

// Loads external data into raw_data and drops the reference; nothing happens to other tensors.
Status make_inline(::onnx::TensorProto& proto, ExternalData& external);

// dims, data_type and name; the bytes go to raw_data unless `with_data` is false.
void tensor_to_proto(const Tensor& tensor, const std::string& name, bool with_data, ::onnx::TensorProto& proto);

}  // namespace ctk::graph::onnx

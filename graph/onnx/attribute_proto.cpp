#include "graph/onnx/attribute_proto.h"

#include "graph/onnx/subgraphs.h"
#include "graph/onnx/tensor_proto.h"

namespace ctk::graph::onnx {
namespace {

using Proto = ::onnx::AttributeProto;

// Old writers left the type out: the field that is set tells.
Proto::AttributeType type_of(const Proto& proto) {
  if (proto.type() != Proto::UNDEFINED) return proto.type();
  if (proto.has_i()) return Proto::INT;
  if (proto.has_f()) return Proto::FLOAT;
  if (proto.has_s()) return Proto::STRING;
  if (proto.has_t()) return Proto::TENSOR;
  if (proto.has_g()) return Proto::GRAPH;
  if (proto.ints_size() != 0) return Proto::INTS;
  if (proto.floats_size() != 0) return Proto::FLOATS;
  if (proto.strings_size() != 0) return Proto::STRINGS;
  return Proto::UNDEFINED;
}

Result<Attribute> opaque(Proto& proto, ExternalData& external) {
  CTK_CHECK(make_inline(proto, external));
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) return internal_error("cannot serialize attribute \"" + proto.name() + "\"");
  return Attribute(OpaqueAttribute{std::move(bytes)});
}

}  // namespace

Result<Attribute> attribute_from_proto(Proto& proto, ExternalData& external) {
  if (!proto.ref_attr_name().empty()) {
    return input_error("attribute \"" + proto.name() + "\" refers to a function's attribute outside of a function");
  }
  switch (type_of(proto)) {
    case Proto::INT:
      return Attribute(static_cast<std::int64_t>(proto.i()));
    case Proto::FLOAT:
      return Attribute(proto.f());
    case Proto::STRING:
      return Attribute(proto.s());
    case Proto::INTS:
      return Attribute(std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end()));
    case Proto::FLOATS:
      return Attribute(std::vector<float>(proto.floats().begin(), proto.floats().end()));
    case Proto::STRINGS:
      return Attribute(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case Proto::TENSOR: {
      const std::optional<DType> dtype = dtype_from_onnx(proto.t().data_type());
      if (!dtype || *dtype == DType::string) return opaque(proto, external);
      auto tensor = tensor_from_proto(*proto.mutable_t(), external);
      if (!tensor) return std::move(tensor).error().with_context("attribute \"" + proto.name() + "\"");
      return Attribute(std::move(*tensor));
    }
    case Proto::GRAPH:
    case Proto::GRAPHS:
    case Proto::TENSORS:
    case Proto::SPARSE_TENSOR:
    case Proto::SPARSE_TENSORS:
    case Proto::TYPE_PROTO:
    case Proto::TYPE_PROTOS:
      return opaque(proto, external);
    default:
      return input_error("attribute \"" + proto.name() + "\" has no type");
  }
}

Status attribute_to_proto(const std::string& name, const Attribute& attribute, Proto& proto) {
  if (const auto* bytes = std::get_if<OpaqueAttribute>(&attribute)) {
    if (!proto.ParseFromString(bytes->bytes)) {
      return internal_error("attribute \"" + name + "\" does not hold an ONNX attribute");
    }
    return {};
  }
  proto.set_name(name);
  if (const auto* value = std::get_if<std::int64_t>(&attribute)) {
    proto.set_type(Proto::INT);
    proto.set_i(*value);
  } else if (const auto* real = std::get_if<float>(&attribute)) {
    proto.set_type(Proto::FLOAT);
    proto.set_f(*real);
  } else if (const auto* text = std::get_if<std::string>(&attribute)) {
    proto.set_type(Proto::STRING);
    proto.set_s(*text);
  } else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&attribute)) {
    proto.set_type(Proto::INTS);
    for (std::int64_t entry : *ints) proto.add_ints(entry);
  } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute)) {
    proto.set_type(Proto::FLOATS);
    for (float entry : *reals) proto.add_floats(entry);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute)) {
    proto.set_type(Proto::STRINGS);
    for (const std::string& entry : *texts) proto.add_strings(entry);
  } else {
    proto.set_type(Proto::TENSOR);
    tensor_to_proto(std::get<Tensor>(attribute), "", true, *proto.mutable_t());
  }
  return {};
}

}  // namespace ctk::graph::onnx

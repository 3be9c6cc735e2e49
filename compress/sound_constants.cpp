#include "compress/sound_constants.h"

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "graph/floats.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::ValueId;

// What a reader's input may hold.
enum class Need { any, no_nan, finite, not_zero, positive };

Need need_of(const Graph& graph, const Node& node, std::size_t input) {
  switch (node.op) {
    case Op::unknown:
      return Need::any;
    case Op::QuantizeLinear:
    case Op::DequantizeLinear: {
      if (input != 1) return Need::no_nan;
      // Scales of weights may be negative: their codes then reach further up.
      const bool is_weight = node.op == Op::DequantizeLinear && graph.value(node.inputs[0]).is_constant();
      return is_weight ? Need::not_zero : Need::positive;
    }
    case Op::Conv:
    case Op::ConvTranspose:
    case Op::Gemm:
    case Op::MatMul:
    case Op::BatchNormalization:
    case Op::LayerNormalization:
    case Op::RMSNormalization:
    case Op::PRelu:
    case Op::Mul:
      return Need::finite;
    default:
      return Need::no_nan;
  }
}

std::string place_of(const Shape& shape, std::size_t flat) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % static_cast<std::size_t>(shape[d]);
    flat /= static_cast<std::size_t>(shape[d]);
  }
  std::string text = "[";
  for (std::size_t d = 0; d < index.size(); ++d) text += (d == 0 ? "" : ",") + std::to_string(index[d]);
  return text + "]";
}

struct Bad {
  std::size_t count = 0, first = 0;
  double value = 0;  // the first
};

template <class IsBad>
Bad count_bad(const graph::Value& value, const IsBad& is_bad) {
  Bad bad;
  const auto walk = [&](auto values, std::size_t start) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!is_bad(static_cast<double>(values[i]))) continue;
      if (bad.count++ == 0) {
        bad.first = start + i;
        bad.value = static_cast<double>(values[i]);
      }
    }
    return true;
  };
  if (value.constant->dtype() == DType::f64) {
    walk(value.constant->values<double>(), 0);
  } else {
    graph::visit_floats(value, walk);
  }
  return bad;
}

// "x" of 3 values: at [0,2] -> ", found 3 NaN or infinite, the first at [0,2]".
std::string found_text(const Bad& bad, const std::string& what, const Shape& shape) {
  return ", found " + std::to_string(bad.count) + " " + what + ", the first at " + place_of(shape, bad.first);
}

Status check_value(const graph::Value& value, Need need) {
  const Tensor& tensor = *value.constant;
  const auto is_bad = [need](double v) {
    if (need == Need::positive) return !(std::isfinite(v) && v > 0.0);
    if (need == Need::not_zero) return !(std::isfinite(v) && v != 0.0);
    return need == Need::finite ? !std::isfinite(v) : std::isnan(v);
  };
  const Bad bad = count_bad(value, is_bad);
  if (bad.count == 0) return {};
  const std::string name = "\"" + value.name + "\"";
  if (need == Need::positive || need == Need::not_zero) {
    const bool is_signed = need == Need::not_zero;
    return input_error(
        "scale " + name + ": expected finite numbers " + (is_signed ? "other than 0" : "above 0") +
        found_text(bad, is_signed ? "NaN, infinite or 0" : "NaN, infinite, 0 or negative", tensor.shape()) + " (" +
        std::to_string(bad.value) + "). Quantize the model again");
  }
  return input_error((need == Need::finite ? "weight " : "constant ") + name + ": expected finite numbers" +
                     found_text(bad, need == Need::finite ? "NaN or infinite" : "NaN", tensor.shape()) +
                     ". Repair the checkpoint");
}

Status check_variance(const Graph& graph, NodeId id, std::vector<std::string>* notes) {
  const Node& node = graph.node(id);
  if (node.op != Op::BatchNormalization || node.inputs.size() < 5 || !node.inputs[4].is_valid()) return {};
  const graph::Value& value = graph.value(node.inputs[4]);
  if (!value.constant || !is_float(value.constant->dtype())) return {};
  const float epsilon = node.attributes.get_float("epsilon", 1e-5f);
  const auto is_lost = [epsilon](double v) { return !(v + static_cast<double>(epsilon) > 0.0); };
  const Shape& shape = value.constant->shape();
  if (const Bad bad = count_bad(value, is_lost); bad.count > 0) {
    return input_error(printable(graph.address(id)) + " (BatchNormalization): variance \"" + value.name +
                       "\": expected numbers above -epsilon (" + std::to_string(-epsilon) + ")" +
                       found_text(bad, "at or below it", shape) + " (" + std::to_string(bad.value) +
                       "). Repair the checkpoint");
  }
  const Bad negative = count_bad(value, [](double v) { return v < 0.0; });
  if (negative.count > 0 && notes != nullptr) {
    notes->push_back(printable(graph.address(id)) + " (BatchNormalization): variance \"" + value.name +
                     "\" is negative in places" + found_text(negative, "such numbers", shape) +
                     "; epsilon makes up for them");
  }
  return {};
}

}  // namespace

Status require_sound_constants(const Graph& graph, std::vector<std::string>* notes) {
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const ValueId id{static_cast<std::uint32_t>(i)};
    const graph::Value& value = graph.value(id);
    if (value.is_removed || !value.constant || !is_float(value.constant->dtype())) continue;
    Need need = Need::any;
    for (NodeId reader : value.consumers) {
      const Node& node = graph.node(reader);
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.inputs[k] == id) need = std::max(need, need_of(graph, node, k));
      }
    }
    if (need != Need::any) CTK_CHECK(check_value(value, need));
  }
  for (NodeId id : graph.order()) CTK_CHECK(check_variance(graph, id, notes));
  return {};
}

}  // namespace ctk::pipeline

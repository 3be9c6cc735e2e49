// Activation notes: which values are stored as uint8 codes once layers have their schemes, and with which range.
//
// Layers ask for codes at their input. The wish travels backwards through operators that can compute on codes (Add and
// Mul of equal shapes, pools, Resize, data movement, unary tables) as long as what they read comes from integer layers;
// there it ends. Data movement, MaxPool and Resize to the nearest hand codes through, so their output bears their
// input's note. A Concat whose operands differ in range by more than kMaxJoinRatio stays float and is reported: one
// scale would wipe out the small operand.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "calibrate/calibration.h"
#include "graph/graph.h"

namespace ctk::quantization {

inline constexpr double kMaxJoinRatio = 16.0;

struct NoteOutcome {
  int noted = 0;
  std::vector<std::string> warnings;
};

// Reads Node::scheme, writes Value::activation_quant. `ranges` by value name. Removes notes that stood there before.
// `input_shapes`: one sample of each graph input; operators on codes are told from float ones by shapes.
// Errors: internal (a value that must be coded has no range), input (shapes that do not fit the graph).
Result<NoteOutcome> place_activation_notes(graph::Graph& graph, const std::map<std::string, calibrate::Range>& ranges,
                                           std::span<const Shape> input_shapes);

// Values a calibration must observe so that any assignment of schemes can be noted: graph inputs and float32 outputs of
// nodes, in graph order. Errors: input (shapes that do not fit the graph).
Result<std::vector<graph::ValueId>> values_to_observe(const graph::Graph& graph, std::span<const Shape> input_shapes);

}  // namespace ctk::quantization

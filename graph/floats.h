// Float weights held in the 16 bits that their file has: Value::dtype says f32, constant->dtype() f16 or bf16. The
// numbers are those of the file, so widening is exact; it is done where a weight is used, one at a time, and what was
// read of a mapped file is let go. Readers of checkpoints make such values for matrices; all else is f32.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "graph/graph.h"

namespace ctk::graph {

bool is_narrow(const Value& value);

// The numbers of a float constant as f32: shared where it is held so, else a copy. `value.constant` must be there.
Tensor floats_of(const Value& value);
// The same numbers in pieces of at most 65536, for what looks at each of them once; stops where `visit` returns false.
void visit_floats(const Value& value,
                  const std::function<bool(std::span<const float> piece, std::size_t first)>& visit);
// Row `row` of a narrow matrix, as f32, to out [columns].
void widen_row(const Tensor& matrix, std::size_t row, float* out);

// A further constant with the same numbers, held the same way. `name` must be unused.
ValueId add_copy(Graph& graph, std::string name, ValueId of);
// Every narrow constant as f32: for work that changes weights, or writes them all at once.
void widen_constants(Graph& graph);

}  // namespace ctk::graph

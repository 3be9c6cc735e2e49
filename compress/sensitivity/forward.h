// Values of the float network, sample after sample.
#pragma once

#include <functional>
#include <vector>

#include "calibrate/reverse/reverse.h"
#include "data/splits.h"

namespace ctk::pipeline {

// Runs the samples of `split` one by one (so many at a time as the model's batch is fixed to). `prepare` is called
// before the first sample and whenever the shapes of the inputs change, and says which values to keep. `each` gets the
// sample, the kept values in ONNX layout, graph inputs among them if asked for, and the first output.
// Errors: input (names the sample), interrupted, those of the two.
using PrepareShapes = std::function<Result<std::vector<graph::ValueId>>(std::span<const Shape> shapes)>;
using EachSample =
    std::function<Status(const std::vector<Tensor>& inputs, const calibrate::Values& values, const Tensor& output)>;
Status for_each_sample(const graph::Graph& graph, const data::Split& split, const PrepareShapes& prepare,
                       const EachSample& each);

}  // namespace ctk::pipeline

// What widths take to run: a group's layers beside others of its widths, by the plans that run them. Rows of kernels
// come in steps, so that a narrower layer is now and then no quicker, or slower, than a wider one.
#pragma once

#include <span>

#include "compress/prune/widths.h"

namespace ctk::pruning {

// us of the network with the group alone cut to each width of its curve, at the rate of one moment: the whole network
// runs in turn. At most 16 widths a group stay in the curves, spread evenly. Errors: those of planning and running.
Status time_curves(const WidthTask& task, std::span<const Shape> input_shapes, Curves& curves);

// Without widths that take as long as a wider one, or longer. The whole group stays.
void drop_slow_widths(Curves& curves);

// Least summed loss with summed savings of time down to `share` of the whole network's time; with curves that are
// timed. Savings of layers cut on both sides are less than their sum: the network found is measured by who asks.
// Errors: budget_infeasible.
Result<Widths> widths_within_time(const WidthTask& task, const Curves& curves, double share);

}  // namespace ctk::pruning

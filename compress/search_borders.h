// What it takes to go from codes to floats and back between two layers: conversions that the plan puts between them.
// Layers' times are those of networks of one scheme, in which there are none; a programme that sums layers alone would
// think every change of precision free.
#pragma once

#include <span>
#include <vector>

#include "compress/search_table.h"

namespace ctk::pipeline::search_table {

// Conversions of a plan that stand between a group on codes and one on floats. us: a time for each step of the plan.
// on_codes: whether a group's activations are codes in this network. A conversion that several groups read counts
// for the first of them; one in front of the first layer or behind the last belongs to no border. Borders by their
// groups' order, each with times of the directions met.
std::vector<Border> borders_in(const graph::Graph& graph, const runtime::Plan& plan, std::span<const double> us,
                               const std::vector<Group>& groups, const std::vector<bool>& on_codes);

// Measures them: four networks in which groups up to three apart differ, each run in turn with the float one, which
// tells the machine's drift. Nothing where choices do not mix codes and floats. Errors: those of quantizing and
// running.
Status fill_borders(const Session& session, const UniformRun& reference, Table& table);

}  // namespace ctk::pipeline::search_table

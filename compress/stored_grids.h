// Tells of layers whose weights were rounded to few bits before they came to us.
#pragma once

#include "compress/session.h"

namespace ctk::pipeline {

// A warning a kind of grid (`stored_grid`): how many layers, the first of them, and what becomes of them under the
// schemes that the pipeline may give them. For pipelines that quantize; nothing where weights lie on no grid.
void tell_of_stored_grids(Session& session);

}  // namespace ctk::pipeline

// Walks a kernel kind's table: every row this host can run.
#pragma once

#include <gtest/gtest.h>

#include <span>

#include "core/cpu_isa.h"

namespace ctk::test {

// Calls body(row) for each; a failure inside names the row.
template <class Row, class Body>
void for_each_row(std::span<const Row> rows, Body&& body) {
  for (const Row& row : rows) {
    if (!host_supports(row.isa)) continue;
    SCOPED_TRACE(row.name);
    body(row);
  }
}

}  // namespace ctk::test

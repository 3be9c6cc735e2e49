// The door between our code and libctk_cbc.so: plain C types, so that nothing of COIN-OR is seen outside.
#pragma once

extern "C" {

// min objective . x, row_lower <= A x <= row_upper, x >= 0; column-major A.
struct CtkCbcProblem {
  int columns;
  int rows;
  const int* starts;        // [columns + 1]
  const int* row_indices;   // [starts[columns]]
  const double* values;     // [starts[columns]]
  const double* objective;  // [columns]
  const double* row_lower;  // [rows], -1e30: none
  const double* row_upper;  // [rows],  1e30: none
  int max_nodes;            // of the branch and bound
  int binary_columns;       // the first so many are 0 or 1, the others between
};

enum CtkCbcStatus { ctk_cbc_optimal = 0, ctk_cbc_infeasible = 1, ctk_cbc_stopped = 2, ctk_cbc_failed = 3 };

// The linear relaxation by dual simplex. Out: duals [rows].
int ctk_cbc_solve_lp(const CtkCbcProblem* problem, double* duals);
// Columns between 0 and 1, the first `binary_columns` of them either. Out: x [columns], *bound. With ctk_cbc_stopped, x
// is feasible when *has_solution is 1. Silent, one thread, fixed seeds; one call at a time in a process (calls queue
// up).
int ctk_cbc_solve_binary(const CtkCbcProblem* problem, double* x, double* bound, int* has_solution);
}

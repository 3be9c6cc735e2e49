// Opens libctk_cbc.so, once, when the first solve asks for it: loading COIN-OR costs more than starting our program
// may.
#pragma once

#include "core/result.h"
#include "search/solvers/cbc/cbc_module.h"

namespace ctk::search {

struct Cbc {
  decltype(&ctk_cbc_solve_lp) solve_lp = nullptr;
  decltype(&ctk_cbc_solve_binary) solve_binary = nullptr;
};

// Looked for beside the file this code lives in (program or Python module), beside the program, in ../lib of both, then
// where the system looks. Errors: config (says where it looked and what the system said).
Result<Cbc> load_cbc();

}  // namespace ctk::search

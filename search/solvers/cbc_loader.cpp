#include "search/solvers/cbc_loader.h"

#include "core/module.h"

namespace ctk::search {
namespace {

Result<Cbc> open_cbc() {
  constexpr const char* kSymbols[] = {"ctk_cbc_solve_lp", "ctk_cbc_solve_binary"};
  auto found = open_module("libctk_cbc.so", kSymbols);
  if (!found) {
    return config_error("search.solver: ilp needs libctk_cbc.so beside the program, found none that loads (" +
                        found.error().message + "). Install coinor-libcbc3 and build again, or choose another solver");
  }
  Cbc cbc;
  cbc.solve_lp = reinterpret_cast<decltype(cbc.solve_lp)>((*found)[0]);
  cbc.solve_binary = reinterpret_cast<decltype(cbc.solve_binary)>((*found)[1]);
  return cbc;
}

}  // namespace

Result<Cbc> load_cbc() {
  static const Result<Cbc> cbc = open_cbc();
  return cbc;
}

}  // namespace ctk::search

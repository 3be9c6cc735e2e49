// Modules: shared libraries of ours that are opened when a stage needs them, because what hangs on them is large.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace ctk {

// Opens `file` ("libctk_cbc.so") and finds `symbols` in it, in their order. Looked for beside the file this code lives
// in (program or Python module), beside the program, in ../lib of both, then where the system looks. Stays open until
// the process ends; its symbols serve nobody else.
// Errors: config; the message is only what the system said at each place: the caller knows what to do.
Result<std::vector<void*>> open_module(const std::string& file, std::span<const char* const> symbols);

}  // namespace ctk

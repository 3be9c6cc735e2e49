// Instruction sets: which exist, which this host runs, which one the user forces.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace ctk {

// In order of preference: a later one is taken before an earlier one where both run.
enum class Isa { scalar, x86_avx2, x86_avxvnni, x86_avx512vnni, arm_neondot };

std::string_view name_of(Isa isa);
std::optional<Isa> isa_from_name(std::string_view name);
// True when this processor and operating system run it.
bool host_supports(Isa isa);
std::vector<Isa> host_isas();

// The set kernels may use: everything the host runs, or {scalar, x86_avx2 where X is an x86 row above it, X} under
// CTK_ISA=X. Errors: config (unknown name, or an instruction set this host lacks; names what it has).
Result<std::vector<Isa>> allowed_isas();

std::string cpu_model();  // "AMD EPYC 7763 64-Core Processor", or "unknown"
int cpu_cores();
std::size_t memory_bytes();

}  // namespace ctk

#include "core/cpu_isa.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace ctk {
namespace {

constexpr std::array<std::string_view, 5> kNames{"scalar", "x86_avx2", "x86_avxvnni", "x86_avx512vnni", "arm_neondot"};

#if defined(__x86_64__)
// Leaf 7, sub-leaf 1, EAX bit 4; the compiler's builtin of this version has no name for it.
bool has_avxvnni() {
  unsigned a = 7, b = 0, c = 1, d = 0;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (a & (1u << 4)) != 0;
}
#endif

}  // namespace

std::string_view name_of(Isa isa) {
  return kNames[static_cast<std::size_t>(isa)];
}

std::optional<Isa> isa_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

bool host_supports(Isa isa) {
  if (isa == Isa::scalar) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  switch (isa) {
    case Isa::x86_avx2:
      return avx2;
    case Isa::x86_avxvnni:
      return avx2 && has_avxvnni();
    case Isa::x86_avx512vnni:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vnni");
    default:
      return false;
  }
#elif defined(__aarch64__) && defined(__linux__)
  return isa == Isa::arm_neondot && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}

std::vector<Isa> host_isas() {
  std::vector<Isa> isas;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (host_supports(static_cast<Isa>(i))) isas.push_back(static_cast<Isa>(i));
  }
  return isas;
}

Result<std::vector<Isa>> allowed_isas() {
  const char* forced = std::getenv("CTK_ISA");
  if (forced == nullptr || *forced == '\0') return host_isas();
  std::string has;
  for (Isa isa : host_isas()) has += (has.empty() ? "" : ", ") + std::string(name_of(isa));
  const auto isa = isa_from_name(forced);
  if (!isa)
    return config_error("CTK_ISA: unknown instruction set \"" + std::string(forced) + "\". This host has: " + has);
  if (!host_supports(*isa)) {
    return config_error("CTK_ISA: this host cannot run \"" + std::string(forced) + "\". It has: " + has);
  }
  if (*isa == Isa::scalar) return std::vector<Isa>{Isa::scalar};
  // The dot-product sets build on AVX2, and kinds that gain nothing from them have rows for AVX2 only.
  if (*isa == Isa::x86_avxvnni || *isa == Isa::x86_avx512vnni)
    return std::vector<Isa>{Isa::scalar, Isa::x86_avx2, *isa};
  return std::vector<Isa>{Isa::scalar, *isa};
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

int cpu_cores() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::size_t memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace ctk

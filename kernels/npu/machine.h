// A first NPU, simulated: a scratchpad, an array of multipliers, a unit that requantizes and one that moves bytes.
// It computes what a command stream says, exactly, and counts what that takes. Figures come from a device card.
//
// Cycles (all divisions rounded up):
//   Dma         dma_start_cycles + bytes / bytes a cycle of the memory outside
//   Fill        bytes / array_rows: the scratchpad is as wide as the array is high
//   Mac         passes * (pixels * mac_cycles + mac_start_cycles); a pass of the array takes array_rows terms of a sum
//   for
//               array_columns outputs: passes = terms / array_rows * (outputs / array_columns), where terms = taps *
//               channels, or taps where each channel has its own filter
//   Requantize  values / requantize_per_cycle
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "kernels/npu/commands.h"

namespace ctk::kernels::npu {

struct Card {
  std::string name;
  std::size_t array_rows = 0, array_columns = 0;  // multipliers: terms of a sum x outputs
  std::size_t scratchpad_bytes = 0;
  double clock_mhz = 0;
  double bandwidth_mb_s = 0;  // of the memory outside; 1 MB = 10^6 B
  std::size_t dma_start_cycles = 0;
  std::size_t mac_cycles = 1;        // for one pixel in a pass
  std::size_t mac_start_cycles = 0;  // before a pass gives its first sum
  std::size_t requantize_per_cycle = 1;
};

struct Counts {
  std::uint64_t cycles = 0;                                             // until both engines are done
  std::uint64_t mac_cycles = 0, requantize_cycles = 0, dma_cycles = 0;  // busy; dma: with fills
  std::uint64_t bytes_constants = 0, bytes_in = 0, bytes_out = 0;       // moved; in: inputs and residuals
  std::uint64_t macs = 0;                                               // products that were asked for
};
Counts operator+(const Counts& a, const Counts& b);  // one after the other

double microseconds(const Card& card, std::uint64_t cycles);

using RegionBytes = std::array<std::size_t, kRegions>;

// Holds every command against the card and the regions, and counts.
// Errors: config (a card of zeros), input (names the command: an address outside its memory, a size that overflows, an
// `after` that is no earlier command, bytes that two engines touch at a time).
Result<Counts> check_stream(const Card& card, const Stream& stream, const RegionBytes& bytes);

struct Memory {
  std::array<std::byte*, kRegions> regions{};  // constants and inputs are not written
  std::byte* scratchpad = nullptr;             // 4-byte aligned
};

// Computes. The stream must have passed check_stream() with these sizes. Allocates nothing.
void execute(const Stream& stream, const Memory& memory);

}  // namespace ctk::kernels::npu

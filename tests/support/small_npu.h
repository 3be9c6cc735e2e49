// An NPU whose cycles are worked out by hand: 4 terms x 2 outputs a cycle, 2 bytes a cycle, 10 cycles to start a move,
// 3 to start a pass, 2 values requantized a cycle, 100 cycles a us.
#pragma once

#include "kernels/npu/machine.h"

namespace ctk::test {

inline kernels::npu::Card small_npu(std::size_t scratchpad_bytes = 4096) {
  kernels::npu::Card card;
  card.name = "small";
  card.array_rows = 4;
  card.array_columns = 2;
  card.scratchpad_bytes = scratchpad_bytes;
  card.clock_mhz = 100;
  card.bandwidth_mb_s = 200;
  card.dma_start_cycles = 10;
  card.mac_start_cycles = 3;
  card.requantize_per_cycle = 2;
  return card;
}

}  // namespace ctk::test

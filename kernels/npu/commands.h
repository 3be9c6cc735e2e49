// What an NPU is told to do: a stream of commands for two engines, one that moves bytes and one that computes. Plain
// data; machine.h says what each costs and checks it, so a stream may come from anywhere.
//
// The engines work side by side. Each takes its commands in the order of the stream; a command starts when its engine
// is free and the command named by `after` is done. Double buffering is a stream whose loads name only what last used
// their buffer. Two commands that touch the same bytes and are kept apart by nothing are an error, not a race.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/epilogue.h"

namespace ctk::kernels::npu {

// Where a tensor lies outside the scratchpad: one region each.
enum class Region : std::uint8_t { constants, input, residual, output };
constexpr std::size_t kRegions = 4;

// A pattern of bytes: counts[0] x counts[1] runs, pitch[0] and pitch[1] bytes apart.
struct Pattern {
  std::size_t address = 0;
  std::size_t pitch[2] = {0, 0};
};

// Moves runs of `run` bytes: into the scratchpad, or out of it. Moving engine.
struct Dma {
  bool is_out = false;
  Region region = Region::input;
  Pattern outside, scratchpad;
  std::size_t run = 0;
  std::size_t counts[2] = {1, 1};
};

// Writes `bytes` times `value` to the scratchpad. Moving engine.
struct Fill {
  std::size_t address = 0, bytes = 0;
  std::uint8_t value = 0;
};

// Sums [rows * width, outputs] of products of a window, exact in int32 (wrapping). Computing engine.
//   dense:       sum[p, n] = start + sum_{tap, c} a[p, tap, c] * w[n, tap, c],  w: [outputs, taps, channels]
//   per channel: sum[p, n] = start + sum_tap      a[p, tap, n] * w[tap, n],     w: [taps, outputs]
// start: the bias of column n (is_first), or the sum that stands there.
struct Mac {
  bool is_per_channel = false, is_first = true;
  std::size_t activations = 0, weights = 0, columns = 0, sums = 0;  // addresses; columns and sums multiples of 4
  std::size_t rows = 0, width = 0, row_step = 0, pixel_step = 0;    // of outputs; steps in bytes of activations
  std::size_t tap_rows = 1, tap_columns = 1, tap_row_step = 0, tap_step = 0;
  std::size_t channels = 0, outputs = 0;  // per channel: channels is not read
};

// What stands at `columns` for each output: 8 bytes.
struct Column {
  std::int32_t bias;  // zero-point term included
  float multiplier;
};

// Sums to stored values by the rule of kernels/epilogue.h: outputs [pixels, outputs] uint8, or float32 where the rule
// says so. Computing engine.
struct Requantize {
  std::size_t sums = 0, columns = 0, output = 0;
  std::size_t pixels = 0, outputs = 0;
  EpilogueInt rule;            // its pointers are not read
  bool adds_residual = false;  // uint8 [pixels, outputs] at `residual`
  std::size_t residual = 0;
};

constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

struct Command {
  std::variant<Dma, Fill, Mac, Requantize> what;
  std::size_t after = kNothing;  // position of an earlier command in the stream
};

using Stream = std::vector<Command>;

}  // namespace ctk::kernels::npu

// The arithmetic of the machine, command by command in the order of the stream: check_stream() has seen to it that
// engines side by side give the same.
#include <cstring>

#include "kernels/npu/machine.h"
#include "kernels/requantize.h"

namespace ctk::kernels::npu {
namespace {

// Sums wrap: unsigned.
std::uint32_t dot(const std::uint8_t* a, const std::int8_t* w, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<std::uint32_t>(int{a[i]} * int{w[i]});
  return sum;
}

class Units {
 public:
  explicit Units(const Memory& memory) : memory_(memory) {}

  void operator()(const Dma& dma) const {
    std::byte* outside = memory_.regions[static_cast<std::size_t>(dma.region)] + dma.outside.address;
    std::byte* inside = memory_.scratchpad + dma.scratchpad.address;
    if (dma.run == 0) return;
    for (std::size_t i = 0; i < dma.counts[0]; ++i) {
      for (std::size_t j = 0; j < dma.counts[1]; ++j) {
        std::byte* far = outside + i * dma.outside.pitch[0] + j * dma.outside.pitch[1];
        std::byte* near = inside + i * dma.scratchpad.pitch[0] + j * dma.scratchpad.pitch[1];
        std::memcpy(dma.is_out ? far : near, dma.is_out ? near : far, dma.run);
      }
    }
  }

  void operator()(const Fill& fill) const {
    if (fill.bytes != 0) std::memset(memory_.scratchpad + fill.address, fill.value, fill.bytes);
  }

  void operator()(const Mac& mac) const {
    auto* sums = reinterpret_cast<std::uint32_t*>(memory_.scratchpad + mac.sums);
    // What is not read need not be an address.
    const auto* columns = reinterpret_cast<const Column*>(memory_.scratchpad + (mac.is_first ? mac.columns : 0));
    const auto* weights = reinterpret_cast<const std::int8_t*>(memory_.scratchpad + mac.weights);
    const auto* first = reinterpret_cast<const std::uint8_t*>(memory_.scratchpad + mac.activations);
    for (std::size_t y = 0; y < mac.rows; ++y) {
      for (std::size_t x = 0; x < mac.width; ++x) {
        if (mac.is_first) {
          for (std::size_t n = 0; n < mac.outputs; ++n) sums[n] = static_cast<std::uint32_t>(columns[n].bias);
        }
        const std::uint8_t* pixel = first + y * mac.row_step + x * mac.pixel_step;
        mac.is_per_channel ? add_per_channel(mac, pixel, weights, sums) : add_dense(mac, pixel, weights, sums);
        sums += mac.outputs;
      }
    }
  }

  void operator()(const Requantize& r) const {
    const auto* sums = reinterpret_cast<const std::int32_t*>(memory_.scratchpad + r.sums);
    const auto* columns = reinterpret_cast<const Column*>(memory_.scratchpad + r.columns);
    const auto* residual =
        reinterpret_cast<const std::uint8_t*>(memory_.scratchpad + (r.adds_residual ? r.residual : 0));
    EpilogueInt rule = r.rule;
    rule.residual.data = r.adds_residual ? residual : nullptr;
    for (std::size_t i = 0; i < r.pixels; ++i) {
      for (std::size_t n = 0; n < r.outputs; ++n) {
        const std::size_t at = i * r.outputs + n;
        if (rule.to_float) {
          reinterpret_cast<float*>(memory_.scratchpad + r.output)[at] =
              clamp_real(rule, sums[at], columns[n].multiplier);
        } else {
          memory_.scratchpad[r.output + at] = static_cast<std::byte>(
              requantize(rule, sums[at], columns[n].multiplier, r.adds_residual ? residual[at] : std::uint8_t{0}));
        }
      }
    }
  }

 private:
  static void add_dense(const Mac& mac, const std::uint8_t* pixel, const std::int8_t* w, std::uint32_t* sums) {
    for (std::size_t n = 0; n < mac.outputs; ++n) {
      std::uint32_t sum = 0;
      for (std::size_t ty = 0; ty < mac.tap_rows; ++ty) {
        for (std::size_t tx = 0; tx < mac.tap_columns; ++tx, w += mac.channels)
          sum += dot(pixel + ty * mac.tap_row_step + tx * mac.tap_step, w, mac.channels);
      }
      sums[n] += sum;
    }
  }

  static void add_per_channel(const Mac& mac, const std::uint8_t* pixel, const std::int8_t* w, std::uint32_t* sums) {
    for (std::size_t ty = 0; ty < mac.tap_rows; ++ty) {
      for (std::size_t tx = 0; tx < mac.tap_columns; ++tx, w += mac.outputs) {
        const std::uint8_t* a = pixel + ty * mac.tap_row_step + tx * mac.tap_step;
        for (std::size_t n = 0; n < mac.outputs; ++n) sums[n] += static_cast<std::uint32_t>(int{a[n]} * int{w[n]});
      }
    }
  }

  const Memory& memory_;
};

}  // namespace

void execute(const Stream& stream, const Memory& memory) {
  const Units units(memory);
  for (const Command& command : stream) std::visit(units, command.what);
}

}  // namespace ctk::kernels::npu

#include "graph/ops/window.h"

#include <algorithm>
#include <string>

#include "graph/ops/check.h"

namespace ctk::graph {
namespace {

constexpr std::int64_t kMaxSize = (std::int64_t{1} << 31) - 1;

enum class AutoPad { notset, valid, same_upper, same_lower };

Result<AutoPad> auto_pad_of(const Node& node) {
  const std::string_view text = text_of(node, "auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::notset;
  if (text == "VALID") return AutoPad::valid;
  if (text == "SAME_UPPER") return AutoPad::same_upper;
  if (text == "SAME_LOWER") return AutoPad::same_lower;
  return input_error("auto_pad: expected NOTSET, VALID, SAME_UPPER or SAME_LOWER, found \"" + std::string(text) +
                     "\". Correct the attribute.");
}

// An attribute list, absent or of the right length with every entry in least..2^31-1.
Result<std::span<const std::int64_t>> list_of(const Node& node, std::string_view name, std::size_t length,
                                              std::int64_t least) {
  const auto values = ints_of(node, name);
  if (!values.empty() && values.size() != length) {
    return input_error(std::string(name) + ": expected " + std::to_string(length) + " values, found " +
                       std::to_string(values.size()) + ". Correct the attribute.");
  }
  for (std::int64_t value : values) {
    if (value < least || value > kMaxSize) {
      return input_error(std::string(name) + ": expected values from " + std::to_string(least) + " to " +
                         std::to_string(kMaxSize) + ", found " + std::to_string(value) + ". Correct the attribute.");
    }
  }
  return values;
}

// Everything but pads and output size.
Result<Window> base_window(const Node& node, std::span<const std::int64_t> input,
                           std::span<const std::int64_t> kernel_spatial) {
  if (input.size() < 3 || input.size() > 2 + kMaxSpatialRank) {
    return input_error("input: expected 3 to 5 dimensions [N, C, spatial...], found " + std::to_string(input.size()) +
                       ". Reshape it.");
  }
  Window window;
  window.rank = input.size() - 2;
  if (kernel_spatial.size() != window.rank) {
    return input_error("kernel: expected " + std::to_string(window.rank) +
                       " spatial dimensions like the input, found " + std::to_string(kernel_spatial.size()) +
                       ". Check the model's export.");
  }
  CTK_TRY(const auto strides, list_of(node, "strides", window.rank, 1));
  CTK_TRY(const auto dilations, list_of(node, "dilations", window.rank, 1));
  for (std::size_t d = 0; d < window.rank; ++d) {
    WindowDim& dim = window.dims[d];
    dim.input = input[d + 2];
    dim.kernel = kernel_spatial[d];
    if (dim.kernel < 1 || dim.kernel > kMaxSize) {
      return input_error("kernel: expected sizes from 1 to " + std::to_string(kMaxSize) + ", found " +
                         std::to_string(dim.kernel) + ". Correct kernel_shape or the weight.");
    }
    if (dim.input < 0 || dim.input > kMaxSize) {
      return input_error("input: expected spatial sizes from 0 to " + std::to_string(kMaxSize) + ", found " +
                         std::to_string(dim.input) + ". Check the input's shape.");
    }
    if (!strides.empty()) dim.stride = strides[d];
    if (!dilations.empty()) dim.dilation = dilations[d];
  }
  return window;
}

// SAME_UPPER puts the odd element at the end; SAME_LOWER, and output_shape without SAME_UPPER, at the beginning.
Status distribute_pads(WindowDim& dim, std::int64_t total, bool is_upper) {
  if (total > kMaxSize) {
    return input_error("auto_pad: expected at most " + std::to_string(kMaxSize) + " padded elements, found " +
                       std::to_string(total) + ". Correct kernel_shape, dilations or strides.");
  }
  const std::int64_t smaller = total / 2;
  dim.pad_begin = is_upper ? smaller : total - smaller;
  dim.pad_end = total - dim.pad_begin;
  return {};
}

}  // namespace

Status expect_kernel_shape(const Node& node, const Shape& weight) {
  const auto kernel_shape = ints_of(node, "kernel_shape");
  const auto kernel = kernel_of(weight);
  if (kernel_shape.empty() || std::ranges::equal(kernel_shape, kernel)) return {};
  return input_error("kernel_shape: expected the spatial sizes of weight shape " + to_string(weight) + ", found " +
                     to_string(Shape(kernel_shape.begin(), kernel_shape.end())) + ". Correct the attribute.");
}

Result<Window> window_of(const Node& node, std::span<const std::int64_t> input,
                         std::span<const std::int64_t> kernel_spatial) {
  CTK_TRY(Window window, base_window(node, input, kernel_spatial));
  CTK_TRY(const AutoPad auto_pad, auto_pad_of(node));
  CTK_TRY(const auto pads, list_of(node, "pads", 2 * window.rank, 0));
  const bool rounds_up = node.attributes.get_int("ceil_mode", 0) != 0;
  const bool is_pool = node.op == Op::MaxPool || node.op == Op::AveragePool;
  for (std::size_t d = 0; d < window.rank; ++d) {
    WindowDim& dim = window.dims[d];
    if (auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower) {
      dim.output = (dim.input + dim.stride - 1) / dim.stride;
      const std::int64_t total = std::max<std::int64_t>(0, (dim.output - 1) * dim.stride + dim.extent() - dim.input);
      CTK_CHECK(distribute_pads(dim, total, auto_pad == AutoPad::same_upper));
      if (dim.input == 0) return input_error("input: expected spatial sizes of at least 1, found 0. Check its shape.");
      continue;
    }
    if (auto_pad == AutoPad::notset && !pads.empty()) {
      dim.pad_begin = pads[d];
      dim.pad_end = pads[d + window.rank];
    }
    const std::int64_t padded = dim.input + dim.pad_begin + dim.pad_end;
    const std::int64_t room = padded - dim.extent();
    // Division that rounds towards zero gives a pool one window where less than a stride is missing: it hangs over.
    if (room < 0 && is_pool && dim.input > 0 && -room < dim.stride) {
      dim.output = 1;
      continue;
    }
    if (room < 0) {
      return input_error("kernel: expected at most the padded input size " + std::to_string(padded) +
                         " in spatial dimension " + std::to_string(d) + ", found kernel " + std::to_string(dim.kernel) +
                         " with dilation " + std::to_string(dim.dilation) + ", which spans " +
                         std::to_string(dim.extent()) + ". Use a larger input.");
    }
    dim.output = (room + (rounds_up ? dim.stride - 1 : 0)) / dim.stride + 1;
    if (rounds_up && dim.output > 1 && (dim.output - 1) * dim.stride >= dim.input + dim.pad_begin) --dim.output;
  }
  return window;
}

Result<Window> transposed_window_of(const Node& node, std::span<const std::int64_t> input,
                                    std::span<const std::int64_t> kernel_spatial) {
  CTK_TRY(Window window, base_window(node, input, kernel_spatial));
  CTK_TRY(const AutoPad auto_pad, auto_pad_of(node));
  CTK_TRY(const auto pads, list_of(node, "pads", 2 * window.rank, 0));
  CTK_TRY(const auto output_padding, list_of(node, "output_padding", window.rank, 0));
  CTK_TRY(const auto output_shape, list_of(node, "output_shape", window.rank, 1));
  for (std::size_t d = 0; d < window.rank; ++d) {
    WindowDim& dim = window.dims[d];
    if (dim.input == 0) return input_error("input: expected spatial sizes of at least 1, found 0. Check its shape.");
    const std::int64_t extra = output_padding.empty() ? 0 : output_padding[d];
    const std::int64_t unpadded = (dim.input - 1) * dim.stride + dim.extent() + extra;
    const bool is_same = auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower;
    if (!output_shape.empty() || is_same) {
      dim.output = output_shape.empty() ? std::min(dim.input * dim.stride, unpadded) : output_shape[d];
      CTK_CHECK(
          distribute_pads(dim, std::max<std::int64_t>(0, unpadded - dim.output), auto_pad == AutoPad::same_upper));
    } else {
      if (auto_pad == AutoPad::notset && !pads.empty()) {
        dim.pad_begin = pads[d];
        dim.pad_end = pads[d + window.rank];
      }
      dim.output = unpadded - dim.pad_begin - dim.pad_end;
    }
    if (dim.output < 1 || dim.output > kMaxSize) {
      return input_error("output: expected spatial sizes from 1 to " + std::to_string(kMaxSize) + ", found " +
                         std::to_string(dim.output) + " in spatial dimension " + std::to_string(d) +
                         ". Correct pads, strides or output_shape.");
    }
  }
  return window;
}

}  // namespace ctk::graph

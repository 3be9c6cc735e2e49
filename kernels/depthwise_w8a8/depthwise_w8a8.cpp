// Input rows are staged, padding included, into a ring as high as the window, each once; a row of outputs then reads
// through one pointer per tap, with no case for borders. 3x3 windows, which is most of them, are read in place by rows
// that can: staging would cost a quarter of their time.
#include "kernels/depthwise_w8a8/depthwise_w8a8.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "kernels/requantize.h"
#include "kernels/window_axis.h"

namespace ctk::kernels {

#define CTK_KERNEL(symbol) extern const DepthwiseIntRow symbol;
#include "kernels/depthwise_w8a8/kernels.def"
#undef CTK_KERNEL

namespace {

constexpr std::size_t kSlack = 64;  // readable bytes past the ring and one pixel

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}
std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}
std::size_t taps_of(const ConvShape& s) {
  return size(s.kernel_height * s.kernel_width);
}

// One thread's scratch: tap pointers, then the ring.
struct Layout {
  std::int64_t ring_rows = 1, ring_width = 1;
  std::size_t pitch = 0, ring = 0, slack = 0, total = 0;
};

Layout layout_of(const DepthwiseIntRow& row, const ConvShape& s) {
  Layout l;
  l.ring_rows = height_axis(s).span(1);
  l.ring_width = width_axis(s).span(s.out_width);
  l.pitch = size(l.ring_width * s.in_channels) * row.element_bytes;
  l.ring = round_up(taps_of(s) * sizeof(void*), 64);
  l.slack = size(s.in_channels) * row.element_bytes + kSlack;
  l.total = round_up(l.ring + size(l.ring_rows) * l.pitch + l.slack, 64);
  return l;
}

// Elements of padding, a few at a time.
void stage_padding(const DepthwiseIntRow& row, std::uint8_t zero_point, std::size_t count, char* out) {
  std::uint8_t codes[64];
  std::memset(codes, zero_point, sizeof(codes));
  for (std::size_t i = 0; i < count; i += sizeof(codes)) {
    row.stage(codes, std::min(sizeof(codes), count - i), out + i * row.element_bytes);
  }
}

void stage_line(const DepthwiseIntRow& row, const ConvShape& s, const WindowAxis& axis, const std::uint8_t* line,
                std::uint8_t zero_point, std::int64_t width, char* out) {
  const std::size_t channels = size(s.in_channels), pixel = channels * row.element_bytes;
  if (line == nullptr) return stage_padding(row, zero_point, size(width) * channels, out);
  const bool adjacent = !axis.is_transposed && (!axis.is_sampled() || axis.stride == 1);
  for (std::int64_t at = 0; at < width;) {
    const std::int64_t i = axis.source(0, at);
    std::int64_t run = 1;
    if (i < 0) {
      stage_padding(row, zero_point, channels, out + size(at) * pixel);
    } else {
      if (adjacent) run = std::min(width - at, axis.in - i);
      row.stage(line + size(i) * channels, size(run) * channels, out + size(at) * pixel);
    }
    at += run;
  }
}

void run_rows(const DepthwiseIntRow& row, const ConvShape& s, const void* packed, const std::uint8_t* x,
              std::uint8_t zero_point, const EpilogueInt& epilogue, void* y, std::int64_t begin, std::int64_t end,
              char* scratch) {
  const Layout l = layout_of(row, s);
  const WindowAxis vertical = height_axis(s), horizontal = width_axis(s);
  const char** taps = reinterpret_cast<const char**>(scratch);
  char* ring = scratch + l.ring;
  std::memset(ring + size(l.ring_rows) * l.pitch, 0, l.slack);

  DepthwiseLine line;
  line.width = size(s.out_width);
  line.channels = size(s.in_channels);
  line.taps = taps;
  line.tap_count = taps_of(s);
  const std::size_t pixel_bytes = line.channels * row.element_bytes;
  line.step = size(horizontal.step()) * pixel_bytes;
  line.packed = packed;
  std::int64_t image = -1, copied = 0;  // ring rows below `copied` are in place
  for (std::int64_t o = begin; o < end; ++o) {
    const std::int64_t first = o % s.out_height * vertical.step();
    if (o / s.out_height != image) {
      image = o / s.out_height;
      copied = first;
    }
    for (copied = std::max(copied, first); copied < first + l.ring_rows; ++copied) {
      const std::int64_t i = vertical.source(0, copied);
      const std::uint8_t* from = i < 0 ? nullptr : x + size((image * s.in_height + i) * s.in_width) * line.channels;
      stage_line(row, s, horizontal, from, zero_point, l.ring_width, ring + size(copied % l.ring_rows) * l.pitch);
    }
    for (std::int64_t t = 0; t < s.kernel_height * s.kernel_width; ++t) {
      const std::int64_t ring_row = (first + vertical.tap(t / s.kernel_width)) % l.ring_rows;
      taps[t] = ring + size(ring_row) * l.pitch + size(horizontal.tap(t % s.kernel_width)) * pixel_bytes;
    }
    const std::size_t pixel = size(o) * line.width;
    line.epilogue = epilogue_from(epilogue, pixel, 0);
    line.y = output_from(epilogue, y, pixel * line.channels);
    row.run_line(line);
  }
}

// Columns behind the input that a 3x3 window reads; not above 0: none.
std::int64_t columns_past(const ConvShape& s) {
  return (s.out_width - 1) * s.stride_width + 3 - s.pad_left - s.in_width;
}

// Output columns times stride reach over at most one column of padding on either side.
bool reads_in_place(const DepthwiseIntRow& row, const ConvShape& s) {
  return row.run_window != nullptr && s.kernel_height == 3 && s.kernel_width == 3 && !s.is_transposed &&
         s.dilation_height == 1 && s.dilation_width == 1 && (s.stride_width == 1 || s.stride_width == 2) &&
         s.pad_left <= 1 && columns_past(s) <= 1 && s.in_channels % 16 == 0 && s.out_width > 0;
}

std::size_t padding_bytes(const ConvShape& s) {
  return round_up(size(s.in_channels), 64);
}

void run_windows(const DepthwiseIntRow& row, const ConvShape& s, const void* packed, const std::uint8_t* x,
                 std::uint8_t zero_point, const EpilogueInt& epilogue, void* y, std::int64_t begin, std::int64_t end,
                 std::uint8_t* padding) {
  const WindowAxis vertical = height_axis(s);
  std::memset(padding, zero_point, padding_bytes(s));
  DepthwiseWindow window;
  window.width = size(s.out_width);
  window.channels = size(s.in_channels);
  window.stride = size(s.stride_width);
  window.padding = padding;
  window.pads_left = s.pad_left == 1;
  window.pads_right = columns_past(s) > 0;
  window.packed = packed;
  for (std::int64_t o = begin; o < end; ++o) {
    const std::int64_t image = o / s.out_height, first = o % s.out_height * vertical.step();
    for (std::int64_t i = 0; i < 3; ++i) {
      const std::int64_t line = vertical.source(0, first + i);
      const std::uint8_t* from = x + size((image * s.in_height + line) * s.in_width) * window.channels;
      window.rows[i] = line < 0 ? padding : from;
      window.pixels[i] = line < 0 ? 0 : window.channels;
    }
    const std::size_t pixel = size(o) * window.width;
    window.epilogue = epilogue_from(epilogue, pixel, 0);
    window.y = output_from(epilogue, y, pixel * window.channels);
    row.run_window(window);
  }
}

}  // namespace

std::span<const DepthwiseIntRow> depthwise_w8a8_rows() {
  static const DepthwiseIntRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/depthwise_w8a8/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

std::size_t depthwise_int_packed_bytes(const DepthwiseIntRow& row, const ConvShape& shape) {
  return row.packed_bytes(size(shape.in_channels), taps_of(shape));
}

void depthwise_int_pack(const DepthwiseIntRow& row, const ConvShape& shape, const std::int8_t* codes, void* packed) {
  row.pack(codes, size(shape.in_channels), taps_of(shape), packed);
}

std::size_t depthwise_int_scratch_bytes(const DepthwiseIntRow& row, const ConvShape& shape, int threads) {
  const std::size_t each = reads_in_place(row, shape) ? padding_bytes(shape) : layout_of(row, shape).total;
  return each * static_cast<std::size_t>(std::max(threads, 1));
}

void depthwise_int(const DepthwiseIntRow& row, const ConvShape& shape, const void* packed, const std::uint8_t* x,
                   std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch) {
  const bool in_place = reads_in_place(row, shape);
  const std::size_t per_thread = depthwise_int_scratch_bytes(row, shape, 1);
  parallel_for(size(shape.batch * shape.out_height), 1, [&](std::size_t begin, std::size_t end) {
    char* own = static_cast<char*>(scratch) + size(thread_index()) * per_thread;
    const auto first = static_cast<std::int64_t>(begin), last = static_cast<std::int64_t>(end);
    if (in_place) {
      run_windows(row, shape, packed, x, x_zero_point, epilogue, y, first, last, reinterpret_cast<std::uint8_t*>(own));
    } else {
      run_rows(row, shape, packed, x, x_zero_point, epilogue, y, first, last, own);
    }
  });
}

}  // namespace ctk::kernels

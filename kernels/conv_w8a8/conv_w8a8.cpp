// A block of output pixels (some full output rows, or a stretch of one) reads a strip of the image. The strip is staged
// once, padding included, and the product's rows point into it: a patch is never assembled. Where neighbouring taps of
// a kernel row lie side by side in the strip, the whole kernel row is one segment of K, else each tap is one.
#include "kernels/conv_w8a8/conv_w8a8.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "kernels/window_axis.h"
#include "kernels/requantize.h"

namespace ctk::kernels {
namespace {

// Strip and a panel of weights should share the first two cache levels.
constexpr std::size_t kStripBytes = 24 << 10;
constexpr std::int64_t kMostPixels = 1024;

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}
std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// How K is cut.
struct Segments {
  std::int64_t count = 1, taps = 1;  // taps per segment, side by side
  std::size_t k = 0, padded_k = 0;   // elements of one segment
};

Segments segments_of(const GemmIntRow& row, const ConvShape& s) {
  const bool rows_are_whole = s.groups == 1 && !s.is_transposed && (s.dilation_width == 1 || s.kernel_width == 1);
  Segments g;
  g.taps = rows_are_whole ? s.kernel_width : 1;
  g.count = s.kernel_height * s.kernel_width / g.taps;
  g.k = size(g.taps * s.channels_per_group());
  g.padded_k = round_up(g.k, row.k_step);
  return g;
}

std::size_t group_packed_bytes(const GemmIntRow& row, const ConvShape& s) {
  const Segments g = segments_of(row, s);
  return round_up(row.packed_bytes(size(s.outputs_per_group()), size(g.count) * g.padded_k), 64);
}

// Every output pixel reads exactly the channels of one input pixel, in order.
bool is_matrix_product(const ConvShape& s) {
  return s.kernel_height == 1 && s.kernel_width == 1 && s.stride_height == 1 && s.stride_width == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.out_height == s.in_height && s.out_width == s.in_width;
}

// Output rows x columns computed from one strip; either full width, or one row high.
struct Block {
  std::int64_t height = 1, width = 1;
};

std::size_t strip_bytes(const GemmIntRow& row, const ConvShape& s, const Block& b) {
  const std::int64_t positions = height_axis(s).span(b.height) * width_axis(s).span(b.width);
  return (size(positions * s.in_channels) + row.k_step) * row.element_bytes;  // the last segment may read its padding
}

Block block_of(const GemmIntRow& row, const ConvShape& s) {
  Block b{1, s.out_width};
  if (strip_bytes(row, s, b) <= kStripBytes && s.out_width <= kMostPixels) {
    while (b.height < s.out_height && (b.height + 1) * b.width <= kMostPixels &&
           strip_bytes(row, s, {b.height + 1, b.width}) <= kStripBytes) {
      ++b.height;
    }
    return b;
  }
  // One tile of pixels at least; then as many tiles as fit.
  const std::int64_t tile = static_cast<std::int64_t>(row.m_step);
  b.width = std::min(tile, s.out_width);
  while (b.width + tile <= std::min(s.out_width, kMostPixels) &&
         strip_bytes(row, s, {1, b.width + tile}) <= kStripBytes) {
    b.width += tile;
  }
  return b;
}

// One thread's scratch: pixel pointers, segment offsets, the padding code repeated, the strip.
struct Layout {
  std::size_t offsets = 0, strip = 0, total = 0;
};

Layout layout_of(const GemmIntRow& row, const ConvShape& s, const Block& b) {
  Layout l;
  l.offsets = round_up(size(b.height * b.width) * sizeof(void*), 64);
  l.strip = l.offsets + round_up(size(segments_of(row, s).count) * sizeof(std::size_t), 64);
  l.total = l.strip + round_up(strip_bytes(row, s, b), 64);
  return l;
}

struct Job {
  const GemmIntRow& row;
  const ConvShape& shape;
  WindowAxis vertical, horizontal;
  Segments segments;
  Block block;
  Layout layout;
  std::size_t group_bytes;
  const char* packed;
  const std::uint8_t* x;
  std::uint8_t x_zero_point;
  const EpilogueInt& epilogue;
  void* y;
};

void stage_padding(const Job& j, std::size_t count, char* out) {
  std::uint8_t codes[64];
  std::memset(codes, j.x_zero_point, sizeof(codes));
  for (std::size_t i = 0; i < count; i += sizeof(codes)) {
    j.row.stage(codes, std::min(sizeof(codes), count - i), out + i * j.row.element_bytes);
  }
}

// Stages one row of the strip from input row `line` (null: all padding).
void stage_line(const Job& j, const std::uint8_t* line, std::int64_t column, std::int64_t span, char* out) {
  const WindowAxis& axis = j.horizontal;
  const std::size_t channels = size(j.shape.in_channels), pitch = channels * j.row.element_bytes;
  if (line == nullptr) return stage_padding(j, size(span) * channels, out);
  const bool adjacent = !axis.is_transposed && (!axis.is_sampled() || axis.stride == 1);
  for (std::int64_t at = 0; at < span;) {
    const std::int64_t i = axis.source(column, at);
    std::int64_t run = 1;
    if (i < 0) {
      while (at + run < span && axis.source(column, at + run) < 0) ++run;
      stage_padding(j, size(run) * channels, out + size(at) * pitch);
    } else {
      if (adjacent) run = std::min(span - at, axis.in - i);
      j.row.stage(line + size(i) * channels, size(run) * channels, out + size(at) * pitch);
    }
    at += run;
  }
}

void stage_strip(const Job& j, std::int64_t image, std::int64_t y, std::int64_t x, const Block& b, char* strip) {
  const ConvShape& s = j.shape;
  const std::size_t channels = size(s.in_channels);
  const std::int64_t width = j.horizontal.span(b.width), height = j.vertical.span(b.height);
  const std::size_t pitch = size(width) * channels * j.row.element_bytes;
  for (std::int64_t at = 0; at < height; ++at) {
    const std::int64_t i = j.vertical.source(y, at);
    const std::uint8_t* line = i < 0 ? nullptr : j.x + size((image * s.in_height + i) * s.in_width) * channels;
    stage_line(j, line, x, width, strip + size(at) * pitch);
  }
  std::memset(strip + size(height) * pitch, 0, j.row.k_step * j.row.element_bytes);
}

// Outputs [y, y + b.height) x [x, x + b.width) of one image, columns [n_begin, n_end) of each group.
void run_block(const Job& j, std::int64_t image, std::int64_t y, std::int64_t x, const Block& b, std::size_t n_begin,
               std::size_t n_end, char* scratch) {
  const ConvShape& s = j.shape;
  char* strip = scratch + j.layout.strip;
  stage_strip(j, image, y, x, b, strip);
  const std::size_t pixel = size(s.in_channels) * j.row.element_bytes;
  const std::size_t pitch = size(j.horizontal.span(b.width)) * pixel;

  const void** rows = reinterpret_cast<const void**>(scratch);
  std::size_t* offsets = reinterpret_cast<std::size_t*>(scratch + j.layout.offsets);
  const std::int64_t per_row = s.kernel_width / j.segments.taps;
  for (std::int64_t i = 0; i < j.segments.count; ++i) {
    offsets[i] = size(j.vertical.tap(i / per_row)) * pitch + size(j.horizontal.tap(i % per_row)) * pixel;
  }

  GemmStaged g;
  g.m = size(b.height * b.width);
  g.n = size(s.outputs_per_group());
  g.segments = size(j.segments.count);
  g.segment_k = j.segments.padded_k;
  g.rows = rows;
  g.offsets = offsets;
  g.c_stride = size(s.out_channels);
  const std::size_t first = size((image * s.out_height + y) * s.out_width + x);
  for (std::int64_t group = 0; group < s.groups; ++group) {
    const char* base = strip + size(group * s.channels_per_group()) * j.row.element_bytes;
    const void** to = rows;
    for (std::int64_t r = 0; r < b.height; ++r) {
      const char* line = base + size(r * j.vertical.step()) * pitch;
      for (std::int64_t c = 0; c < b.width; ++c) *to++ = line + size(c * j.horizontal.step()) * pixel;
    }
    const std::size_t column = size(group) * g.n;
    g.packed = j.packed + size(group) * j.group_bytes;
    g.epilogue = epilogue_from(j.epilogue, first, column);
    g.c = output_from(j.epilogue, j.y, first * g.c_stride + column);
    j.row.run_staged(g, n_begin, n_end);
  }
}

// Output rows [begin, end) of batch * out_height.
void run_lines(const Job& j, std::int64_t begin, std::int64_t end, std::size_t n_begin, std::size_t n_end,
               char* scratch) {
  const ConvShape& s = j.shape;
  while (begin < end) {
    const std::int64_t image = begin / s.out_height, y = begin % s.out_height;
    const std::int64_t left = std::min(end - begin, s.out_height - y);
    const std::int64_t height = ceil_div(left, ceil_div(left, j.block.height));  // even blocks, no short last one
    for (std::int64_t x = 0; x < s.out_width; x += j.block.width) {
      run_block(j, image, y, x, {height, std::min(j.block.width, s.out_width - x)}, n_begin, n_end, scratch);
    }
    begin += height;
  }
}

void run_matrix_product(const Job& j, char* scratch) {
  const ConvShape& s = j.shape;
  GemmInt g;
  g.m = size(s.pixels());
  g.n = size(s.outputs_per_group());
  g.k = size(s.channels_per_group());
  g.a_stride = size(s.in_channels);
  g.c_stride = size(s.out_channels);
  for (std::int64_t group = 0; group < s.groups; ++group) {
    const std::size_t column = size(group) * g.n;
    g.a = j.x + size(group) * g.k;
    g.packed = j.packed + size(group) * j.group_bytes;
    g.epilogue = epilogue_from(j.epilogue, 0, column);
    g.c = output_from(j.epilogue, j.y, column);
    gemm_int(j.row, g, scratch);
  }
}

}  // namespace

std::size_t conv_int_packed_bytes(const GemmIntRow& row, const ConvShape& shape) {
  return size(shape.groups) * group_packed_bytes(row, shape);
}

void conv_int_pack(const GemmIntRow& row, const ConvShape& shape, const std::int8_t* codes, void* packed) {
  const Segments g = segments_of(row, shape);
  const std::size_t n = size(shape.outputs_per_group()), channels = size(shape.channels_per_group());
  const std::size_t taps = size(shape.kernel_height * shape.kernel_width), k = size(g.count) * g.padded_k;
  std::vector<std::int8_t> matrix(n * k);
  for (std::size_t group = 0; group < size(shape.groups); ++group) {
    std::fill(matrix.begin(), matrix.end(), std::int8_t{0});
    for (std::size_t o = 0; o < n; ++o) {
      for (std::size_t tap = 0; tap < taps; ++tap) {
        const std::size_t segment = tap / size(g.taps), within = tap % size(g.taps);
        std::int8_t* to = matrix.data() + o * k + segment * g.padded_k + within * channels;
        const std::int8_t* from = codes + ((group * n + o) * channels) * taps + tap;
        for (std::size_t c = 0; c < channels; ++c) to[c] = from[c * taps];
      }
    }
    row.pack(matrix.data(), n, k, static_cast<char*>(packed) + group * group_packed_bytes(row, shape));
  }
}

std::size_t conv_int_scratch_bytes(const GemmIntRow& row, const ConvShape& shape, int threads) {
  const std::size_t each = is_matrix_product(shape) ? gemm_int_scratch_bytes(row, size(shape.channels_per_group()))
                                                    : layout_of(row, shape, block_of(row, shape)).total;
  return each * static_cast<std::size_t>(std::max(threads, 1));
}

void conv_int(const GemmIntRow& row, const ConvShape& shape, const void* packed, const std::uint8_t* x,
              std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch) {
  const Block block = block_of(row, shape);
  Job job{row,
          shape,
          height_axis(shape),
          width_axis(shape),
          segments_of(row, shape),
          block,
          layout_of(row, shape, block),
          group_packed_bytes(row, shape),
          static_cast<const char*>(packed),
          x,
          x_zero_point,
          epilogue,
          y};
  char* base = static_cast<char*>(scratch);
  if (is_matrix_product(shape)) return run_matrix_product(job, base);

  const std::int64_t lines = shape.batch * shape.out_height, team = threads();
  const std::int64_t tile = static_cast<std::int64_t>(row.m_step);
  const std::size_t n = size(shape.outputs_per_group());
  // Few pixels: threads share them and divide the output channels, so that each reads its own part of the weights.
  const bool by_columns = team > 1 && n >= 2 * size(team) * row.n_step &&
                          shape.pixels() < 16 * team * static_cast<std::int64_t>(row.m_step);
  if (by_columns) {
    return parallel_for(n, row.n_step, [&](std::size_t begin, std::size_t end) {
      run_lines(job, 0, lines, begin, end, base + size(thread_index()) * job.layout.total);
    });
  }
  if (lines < team) {
    job.block = {1, std::min(job.block.width, ceil_div(ceil_div(shape.out_width, team), tile) * tile)};
  }
  const std::int64_t stretches = ceil_div(shape.out_width, job.block.width);  // more than one: blocks are one row high
  parallel_for(size(lines * stretches), 1, [&](std::size_t begin, std::size_t end) {
    char* own = base + size(thread_index()) * job.layout.total;
    if (stretches == 1) {
      return run_lines(job, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end), 0, n, own);
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t line = static_cast<std::int64_t>(i) / stretches;
      const std::int64_t from = static_cast<std::int64_t>(i) % stretches * job.block.width;
      run_block(job, line / shape.out_height, line % shape.out_height, from,
                {1, std::min(job.block.width, shape.out_width - from)}, 0, n, own);
    }
  });
}

}  // namespace ctk::kernels

// A block of output pixels (some full output rows, or a stretch of one) reads a strip of the image. The strip is staged
// once, padding included, and the product's rows point into it: a patch is never assembled. Where neighbouring taps of
// a kernel row lie side by side in the strip, the whole kernel row is one segment of K, else each tap is one.
#include "kernels/conv_w8a8/conv_w8a8.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "kernels/conv_w8a8/conv_winograd.h"
#include "kernels/conv_w8a8/strip.h"
#include "kernels/requantize.h"

namespace ctk::kernels {
namespace {

// Small weights: the strip should lie in the first-level cache. Large ones are read from afar for every strip, so
// strips are larger and fewer.
constexpr std::size_t kStripBytes = 24 << 10, kLargeStripBytes = 128 << 10, kSmallWeightBytes = 128 << 10;
constexpr std::int64_t kMostPixels = 1024;
constexpr std::size_t kPackedColumns = 16;  // put in order at a time while packing, so that they stay in the cache

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
  const bool neighbours_touch = s.groups == 1 && !s.is_transposed && (s.dilation_width == 1 || s.kernel_width == 1);
  // Wide pixels gain nothing from longer segments, and apart they can be kept off the same cache sets (Strip).
  const bool is_wide = size(s.in_channels) * row.element_bytes >= 512;
  Segments g;
  g.taps = neighbours_touch && !is_wide ? s.kernel_width : 1;
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

Block block_of(const GemmIntRow& row, const Strip& strip) {
  const ConvShape& s = strip.shape;
  const std::size_t most = group_packed_bytes(row, s) <= kSmallWeightBytes ? kStripBytes : kLargeStripBytes;
  Block b{1, s.out_width};
  if (strip.bytes(1, b.width) <= most && s.out_width <= kMostPixels) {
    while (b.height < s.out_height && (b.height + 1) * b.width <= kMostPixels &&
           strip.bytes(b.height + 1, b.width) <= most) {
      ++b.height;
    }
    return b;
  }
  // One tile of pixels at least; then as many tiles as fit.
  const std::int64_t tile = static_cast<std::int64_t>(row.m_step);
  b.width = std::min(tile, s.out_width);
  while (b.width + tile <= std::min(s.out_width, kMostPixels) && strip.bytes(1, b.width + tile) <= most) {
    b.width += tile;
  }
  return b;
}

// One thread's scratch: pixel pointers, segment offsets, the strip.
struct Layout {
  std::size_t offsets = 0, strip = 0, total = 0;
};

struct Job {
  const GemmIntRow& row;
  const ConvShape& shape;
  Segments segments;
  Strip strip;
  Block block;
  Layout layout;
  std::size_t group_bytes;
  const char* packed = nullptr;
  const std::uint8_t* x = nullptr;
  std::uint8_t x_zero_point = 0;
  EpilogueInt epilogue;
  void* y = nullptr;

  Job(const GemmIntRow& row, const ConvShape& shape)
      : row(row),
        shape(shape),
        segments(segments_of(row, shape)),
        strip({row.stage, row.element_bytes}, shape, segments.taps > 1,
              row.k_step),  // the last segment may read its padding
        block(block_of(row, strip)),
        group_bytes(group_packed_bytes(row, shape)) {
    layout.offsets = round_up(size(block.height * block.width) * sizeof(void*), 64);
    layout.strip = layout.offsets + round_up(size(segments.count) * sizeof(std::size_t), 64);
    layout.total = layout.strip + round_up(strip.bytes(block.height, block.width), 64);
  }

  void run_block(const OutputBlock& b, std::size_t n_begin, std::size_t n_end, char* scratch) const;
  void run_lines(std::int64_t begin, std::int64_t end, std::size_t n_begin, std::size_t n_end, char* scratch) const;
};

// Columns [n_begin, n_end) of each group.
void Job::run_block(const OutputBlock& b, std::size_t n_begin, std::size_t n_end, char* scratch) const {
  char* staged = scratch + layout.strip;
  strip.stage(b, x, x_zero_point, staged);
  const std::size_t pitch = strip.row_bytes(b.width);
  const void** rows = reinterpret_cast<const void**>(scratch);
  std::size_t* offsets = reinterpret_cast<std::size_t*>(scratch + layout.offsets);
  const std::int64_t per_row = shape.kernel_width / segments.taps;
  for (std::int64_t i = 0; i < segments.count; ++i) {
    offsets[i] = size(strip.vertical.tap(i / per_row)) * pitch + size(strip.horizontal.tap(i % per_row)) * strip.pixel;
  }

  GemmStaged g;
  g.m = size(b.height * b.width);
  g.n = size(shape.outputs_per_group());
  g.segments = size(segments.count);
  g.segment_k = segments.padded_k;
  g.rows = rows;
  g.offsets = offsets;
  g.c_stride = size(shape.out_channels);
  const std::size_t first = size((b.image * shape.out_height + b.y) * shape.out_width + b.x);
  for (std::int64_t group = 0; group < shape.groups; ++group) {
    const char* base = staged + size(group * shape.channels_per_group()) * row.element_bytes;
    const void** to = rows;
    for (std::int64_t r = 0; r < b.height; ++r) {
      const char* line = base + size(r * strip.vertical.step()) * pitch;
      for (std::int64_t c = 0; c < b.width; ++c) *to++ = line + size(c * strip.horizontal.step()) * strip.pixel;
    }
    const std::size_t column = size(group) * g.n;
    g.packed = packed + size(group) * group_bytes;
    g.epilogue = epilogue_from(epilogue, first, column);
    g.c = output_from(epilogue, y, first * g.c_stride + column);
    row.run_staged(g, n_begin, n_end);
  }
}

// Output rows [begin, end) of batch * out_height.
void Job::run_lines(std::int64_t begin, std::int64_t end, std::size_t n_begin, std::size_t n_end, char* scratch) const {
  while (begin < end) {
    const std::int64_t image = begin / shape.out_height, y0 = begin % shape.out_height;
    const std::int64_t left = std::min(end - begin, shape.out_height - y0);
    const std::int64_t height = ceil_div(left, ceil_div(left, block.height));  // even blocks, no short last one
    for (std::int64_t x0 = 0; x0 < shape.out_width; x0 += block.width) {
      run_block({image, y0, x0, height, std::min(block.width, shape.out_width - x0)}, n_begin, n_end, scratch);
    }
    begin += height;
  }
}

void run_matrix_product(const Job& j, void* scratch) {
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

void run_strips(Job job, char* scratch) {
  const ConvShape& s = job.shape;
  const std::int64_t lines = s.batch * s.out_height, team = threads();
  const std::int64_t tile = static_cast<std::int64_t>(job.row.m_step);
  const std::size_t n = size(s.outputs_per_group()), total = job.layout.total;
  // Few pixels: threads share them and divide the output channels, so that each reads its own part of the weights.
  if (team > 1 && n >= 2 * size(team) * job.row.n_step && s.pixels() < 16 * team * tile) {
    return parallel_for(n, job.row.n_step, [&](std::size_t begin, std::size_t end) {
      job.run_lines(0, lines, begin, end, scratch + size(thread_index()) * total);
    });
  }
  if (lines < team) job.block = {1, std::min(job.block.width, ceil_div(ceil_div(s.out_width, team), tile) * tile)};
  const std::int64_t stretches = ceil_div(s.out_width, job.block.width);  // more than one: blocks are one row high
  parallel_for(size(lines * stretches), 1, [&](std::size_t begin, std::size_t end) {
    char* own = scratch + size(thread_index()) * total;
    if (stretches == 1) {
      return job.run_lines(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end), 0, n, own);
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t line = static_cast<std::int64_t>(i) / stretches;
      const std::int64_t x0 = static_cast<std::int64_t>(i) % stretches * job.block.width;
      job.run_block({line / s.out_height, line % s.out_height, x0, 1, std::min(job.block.width, s.out_width - x0)}, 0,
                    n, own);
    }
  });
}

// One output channel's codes [channels, taps] in the order of K. Four channels go in one store where they can.
void order_taps(const Segments& g, std::size_t channels, std::size_t taps, const std::int8_t* from, std::int8_t* to) {
  for (std::size_t tap = 0; tap < taps; ++tap, ++from) {
    std::int8_t* out = to + tap / size(g.taps) * g.padded_k + tap % size(g.taps) * channels;
    const std::int8_t* next = from;
    std::size_t c = 0;
    for (; c + 4 <= channels; c += 4, next += 4 * taps) {
      const std::int8_t codes[] = {next[0], next[taps], next[2 * taps], next[3 * taps]};
      std::memcpy(out + c, codes, sizeof(codes));
    }
    for (; c < channels; ++c, next += taps) out[c] = *next;
  }
}

}  // namespace

std::size_t conv_int_packed_bytes(const GemmIntRow& row, const ConvShape& shape) {
  if (takes_winograd(row, shape)) return conv_winograd_packed_bytes(row, shape);
  return size(shape.groups) * group_packed_bytes(row, shape);
}

void conv_int_pack(const GemmIntRow& row, const ConvShape& shape, const std::int8_t* codes, void* packed) {
  if (takes_winograd(row, shape)) return conv_winograd_pack(row, shape, codes, packed);
  const Segments g = segments_of(row, shape);
  const std::size_t n = size(shape.outputs_per_group()), channels = size(shape.channels_per_group());
  const std::size_t taps = size(shape.kernel_height * shape.kernel_width), k = size(g.count) * g.padded_k;
  const bool is_in_order = taps == 1 && k == channels;
  const std::size_t columns = round_up(kPackedColumns, row.n_step);
  for (std::size_t group = 0; group < size(shape.groups); ++group) {
    char* to = static_cast<char*>(packed) + group * group_packed_bytes(row, shape);
    const std::int8_t* from = codes + group * n * channels * taps;
    parallel_for(n, columns, [&](std::size_t begin, std::size_t end) {
      std::vector<std::int8_t> matrix(is_in_order ? 0 : columns * k);  // zero between segments
      for (; begin < end; begin += columns) {
        const std::size_t count = std::min(columns, end - begin);
        const std::int8_t* first = from + begin * channels * taps;
        for (std::size_t o = 0; o < count && !is_in_order; ++o) {
          order_taps(g, channels, taps, first + o * channels * taps, matrix.data() + o * k);
        }
        row.pack(is_in_order ? first : matrix.data(), count, k, to + row.packed_bytes(begin, k));
      }
    });
  }
}

std::size_t conv_int_scratch_bytes(const GemmIntRow& row, const ConvShape& shape, int threads) {
  std::size_t each = 0;
  if (takes_winograd(row, shape)) {
    each = conv_winograd_scratch_bytes(row, shape);
  } else if (is_matrix_product(shape)) {
    each = gemm_int_scratch_bytes(row, size(shape.channels_per_group()));
  } else {
    each = Job(row, shape).layout.total;
  }
  return each * static_cast<std::size_t>(std::max(threads, 1));
}

void conv_int(const GemmIntRow& row, const ConvShape& shape, const void* packed, const std::uint8_t* x,
              std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch) {
  if (takes_winograd(row, shape)) return conv_winograd(row, shape, packed, x, x_zero_point, epilogue, y, scratch);
  Job job(row, shape);
  job.packed = static_cast<const char*>(packed);
  job.x = x;
  job.x_zero_point = x_zero_point;
  job.epilogue = epilogue;
  job.y = y;
  if (is_matrix_product(shape)) return run_matrix_product(job, scratch);
  run_strips(job, static_cast<char*>(scratch));
}

}  // namespace ctk::kernels

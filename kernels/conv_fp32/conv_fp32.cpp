// conv_fp32: drives a gemm_fp32 row over the pixels of a convolution.
//
// Four ways to present the patches to the product, chosen by the shape alone:
//   direct    1x1, stride 1, no padding: the input is the matrix already
//   rows      few channels, neighbouring taps: a kernel row of a patch is one run of memory. Input rows are copied into
//             scratch with their padding around them (read in place where there is none), and each pixel is a pointer
//             per kernel row
//   pointers  enough channels: each tap of each pixel is a pointer into the input, or to zeros
//   gather    what is left (few channels with dilation, groups or a transposed window): patches are copied whole
// Work is split by blocks of output pixels; when those are few, by output channels as well.
#include "kernels/conv_fp32/conv_fp32.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "kernels/window.h"

namespace ctk::kernels {
namespace {

constexpr std::int64_t kPointerChannels = 8;  // below, walking the pointers costs more than copying
constexpr std::size_t kBlockBytes = 96 * 1024;
constexpr std::size_t kMostPixels = 192;

constexpr std::int64_t kMostRowChannels = 64;  // above, a tap is a run long enough by itself
constexpr std::int64_t kLeastRowPixels = 24;   // of an image: blocks do not cross images here

enum class Way { direct, rows, pointers, gather };

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}
std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

Way way_of(const ConvShape& s) {
  const bool is_pointwise = s.kernel_height == 1 && s.kernel_width == 1 && s.stride_height == 1 && s.stride_width == 1;
  if (is_pointwise && s.pad_top == 0 && s.pad_left == 0 && s.out_height == s.in_height && s.out_width == s.in_width) {
    return Way::direct;
  }
  if (s.groups == 1 && !s.is_transposed && s.dilation_width == 1 && s.kernel_width > 1 &&
      s.in_channels < kMostRowChannels && s.out_height * s.out_width >= kLeastRowPixels) {
    return Way::rows;
  }
  return s.channels_per_group() >= kPointerChannels ? Way::pointers : Way::gather;
}

// Some window reaches past the left or right end of a row.
bool is_padded_across(const ConvShape& s) {
  return s.pad_left > 0 || (s.out_width - 1) * s.stride_width + s.kernel_width > s.in_width + s.pad_left;
}

// Way::rows: wide images are done a row at a time, or the rows copied would be many more than those used.
bool is_cut_at_rows(const ConvShape& s, std::size_t block) {
  return size(s.out_width) * 2 > block;
}

// Way::rows: most floats of padded input rows that one block needs.
std::size_t row_floats(const ConvShape& s, std::size_t block) {
  if (!is_padded_across(s)) return 0;
  const std::int64_t pixels = static_cast<std::int64_t>(block);
  const bool is_cut = is_cut_at_rows(s, block);
  const std::int64_t out_rows = is_cut ? 1 : std::min(s.out_height, (pixels - 1) / s.out_width + 2);
  const std::int64_t out_columns = is_cut ? std::min(s.out_width, pixels) : s.out_width;
  const std::int64_t reach = (out_rows - 1) * s.stride_height + (s.kernel_height - 1) * s.dilation_height + 1;
  const std::int64_t width = (out_columns - 1) * s.stride_width + s.kernel_width;
  return size(std::min(reach, s.in_height) * width * s.in_channels);
}

// What one thread holds: the pointers or patches of one block of pixels, then zeros for what lies in the padding, then
// padded input rows, then the product's own scratch.
struct Layout {
  Way way;
  std::size_t pixels;  // of a block
  std::size_t zeros_at, rows_at, product_at, bytes;
};

Layout layout_of(const GemmFloatRow& row, const ConvShape& s) {
  Layout l{};
  l.way = way_of(s);
  std::size_t per_pixel = size(s.reduction()) * sizeof(float);
  std::size_t zeros = 0;
  if (l.way == Way::rows) {
    per_pixel = size(s.kernel_height) * sizeof(const float*);
    zeros = size(s.kernel_width * s.in_channels);
  } else if (l.way == Way::pointers) {
    per_pixel = size(s.kernel_height * s.kernel_width) * sizeof(const float*);
    zeros = size(s.channels_per_group());
  }
  per_pixel = std::max<std::size_t>(per_pixel, 1);
  l.pixels = std::clamp<std::size_t>(kBlockBytes / per_pixel, 8 * row.m_step, std::max(8 * row.m_step, kMostPixels));
  l.pixels = std::max<std::size_t>(1, std::min(l.pixels / row.m_step * row.m_step, size(s.pixels())));
  l.zeros_at = l.way == Way::direct ? 0 : aligned(l.pixels * per_pixel);
  l.rows_at = l.zeros_at + aligned(zeros * sizeof(float));
  l.product_at = l.rows_at + (l.way == Way::rows ? aligned(row_floats(s, l.pixels) * sizeof(float)) : 0);
  l.bytes = l.product_at + aligned(row.scratch_bytes(size(s.reduction())));
  return l;
}

struct Pixel {
  std::int64_t image, y, x;
};

Pixel pixel_at(const ConvShape& s, std::int64_t index) {
  const std::int64_t y = index / s.out_width;
  return {y / s.out_height, y % s.out_height, index % s.out_width};
}

void advance(const ConvShape& s, Pixel& p) {
  if (++p.x < s.out_width) return;
  p.x = 0;
  if (++p.y < s.out_height) return;
  p.y = 0;
  ++p.image;
}

// x points at the group's first channel.
void fill_pointers(const ConvShape& s, const float* x, const float* zeros, std::size_t begin, std::size_t end,
                   const float** out) {
  Pixel p = pixel_at(s, static_cast<std::int64_t>(begin));
  for (std::size_t i = begin; i < end; ++i, advance(s, p)) {
    for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
      const std::int64_t iy = window_row(s, p.y, ky);
      const float* row = x + (p.image * s.in_height + iy) * s.in_width * s.in_channels;
      for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
        const std::int64_t ix = window_column(s, p.x, kx);
        *out++ = iy >= 0 && ix >= 0 ? row + ix * s.in_channels : zeros;
      }
    }
  }
}

// Way::rows: the end of the block that starts at pixel `begin`. Blocks stay within an image.
std::size_t end_of_rows(const ConvShape& s, std::size_t begin, std::size_t end, std::size_t block) {
  const std::size_t unit = size(is_cut_at_rows(s, block) ? s.out_width : s.out_height * s.out_width);
  return std::min({end, begin + block, (begin / unit + 1) * unit});
}

// Pixels [begin, end) of one image as a pointer per kernel row; `rows` takes the padded input rows.
void fill_rows(const ConvShape& s, const float* x, const float* zeros, float* rows, std::size_t begin, std::size_t end,
               const float** out) {
  const Pixel first = pixel_at(s, static_cast<std::int64_t>(begin));
  const Pixel last = pixel_at(s, static_cast<std::int64_t>(end) - 1);
  const bool is_one_row = first.y == last.y;
  const std::int64_t ox_begin = is_one_row ? first.x : 0, ox_end = is_one_row ? last.x + 1 : s.out_width;
  const std::int64_t left = ox_begin * s.stride_width - s.pad_left;
  const std::int64_t width = (ox_end - 1 - ox_begin) * s.stride_width + s.kernel_width;
  const std::int64_t iy_begin = std::max<std::int64_t>(0, first.y * s.stride_height - s.pad_top);
  const std::int64_t iy_end =
      std::min(s.in_height, last.y * s.stride_height - s.pad_top + (s.kernel_height - 1) * s.dilation_height + 1);
  const float* image = x + first.image * s.in_height * s.in_width * s.in_channels;
  const float* base = image + (iy_begin * s.in_width + left) * s.in_channels;  // column `left` of row iy_begin
  std::int64_t pitch = s.in_width * s.in_channels;
  if (is_padded_across(s)) {
    const std::size_t before = size(std::clamp<std::int64_t>(-left, 0, width) * s.in_channels);
    const std::size_t until = size(std::clamp<std::int64_t>(s.in_width - left, 0, width) * s.in_channels);
    const std::size_t all = size(width * s.in_channels);
    float* to = rows;
    for (std::int64_t iy = iy_begin; iy < iy_end; ++iy, to += all) {
      const float* from = image + iy * pitch + left * s.in_channels;
      std::fill(to, to + std::min(before, all), 0.0f);
      if (until > before) std::memcpy(to + before, from + before, (until - before) * sizeof(float));
      std::fill(to + std::max(before, until), to + all, 0.0f);
    }
    base = rows;
    pitch = width * s.in_channels;
  }
  Pixel p = first;
  for (std::size_t i = begin; i < end; ++i, advance(s, p)) {
    const float* column = base + (p.x - ox_begin) * s.stride_width * s.in_channels;
    for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
      const std::int64_t iy = window_row(s, p.y, ky);
      *out++ = iy >= 0 ? column + (iy - iy_begin) * pitch : zeros;
    }
  }
}

// Copies patches [end - begin, reduction].
void fill_patches(const ConvShape& s, const float* x, std::size_t begin, std::size_t end, float* out) {
  const std::int64_t channels = s.channels_per_group();
  Pixel p = pixel_at(s, static_cast<std::int64_t>(begin));
  for (std::size_t i = begin; i < end; ++i, advance(s, p)) {
    for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
      const std::int64_t iy = window_row(s, p.y, ky);
      const float* row = x + (p.image * s.in_height + iy) * s.in_width * s.in_channels;
      for (std::int64_t kx = 0; kx < s.kernel_width; ++kx, out += channels) {
        const std::int64_t ix = window_column(s, p.x, kx);
        for (std::int64_t c = 0; c < channels; ++c) out[c] = iy >= 0 && ix >= 0 ? row[ix * s.in_channels + c] : 0.0f;
      }
    }
  }
}

// Output channels [n_begin, n_end) of group `group` for pixels [begin, end), single-threaded.
void run_part(const GemmFloatRow& row, const ConvShape& s, const Layout& l, const void* packed, const float* x,
              const EpilogueFloat& epilogue, float* y, std::int64_t group, std::size_t begin, std::size_t end,
              std::size_t n_begin, std::size_t n_end, char* scratch) {
  const std::size_t channels = size(s.channels_per_group());
  const std::size_t outputs = size(s.outputs_per_group());
  const std::size_t first_output = size(group) * outputs;
  const std::size_t packed_group = aligned(row.packed_bytes(outputs, size(s.reduction())));
  const float* input = x + size(group) * channels;
  GemmFloat g;
  g.n = outputs;
  g.k = size(s.reduction());
  g.packed = static_cast<const char*>(packed) + size(group) * packed_group;
  g.epilogue = epilogue;
  if (epilogue.bias != nullptr) g.epilogue.bias = epilogue.bias + first_output;
  g.c_stride = size(s.out_channels);
  float* patches = reinterpret_cast<float*>(scratch);
  const float** pointers = reinterpret_cast<const float**>(scratch);
  const float* zeros = reinterpret_cast<const float*>(scratch + l.zeros_at);
  for (std::size_t p = begin; p < end; p += g.m) {
    g.m = std::min(l.pixels, end - p);
    switch (l.way) {
      case Way::direct:
        g.m = end - p;
        g.a = input + p * size(s.in_channels);
        g.a_stride = size(s.in_channels);
        break;
      case Way::rows:
        g.m = end_of_rows(s, p, end, l.pixels) - p;
        fill_rows(s, input, zeros, reinterpret_cast<float*>(scratch + l.rows_at), p, p + g.m, pointers);
        g.segments = pointers;
        g.segment_length = size(s.kernel_width) * channels;
        break;
      case Way::pointers:
        fill_pointers(s, input, zeros, p, p + g.m, pointers);
        g.segments = pointers;
        g.segment_length = channels;
        break;
      case Way::gather:
        fill_patches(s, input, p, p + g.m, patches);
        g.a = patches;
        g.a_stride = g.k;
        break;
    }
    g.c = y + p * g.c_stride + first_output;
    if (epilogue.residual != nullptr) {
      g.epilogue.residual = epilogue.residual + p * epilogue.residual_stride + first_output;
    }
    row.run(g, n_begin, n_end, scratch + l.product_at);
  }
}

}  // namespace

std::size_t conv_float_packed_bytes(const GemmFloatRow& row, const ConvShape& s) {
  return size(s.groups) * aligned(row.packed_bytes(size(s.outputs_per_group()), size(s.reduction())));
}

void conv_float_pack(const GemmFloatRow& row, const ConvShape& s, const float* weights, void* packed) {
  const std::size_t outputs = size(s.outputs_per_group());
  const std::size_t channels = size(s.channels_per_group());
  const std::size_t taps = size(s.kernel_height * s.kernel_width);
  const std::size_t k = taps * channels;
  const std::size_t group_bytes = aligned(row.packed_bytes(outputs, k));
  std::vector<float> matrix(outputs * k);  // one group as [outputs][tap][channel]
  for (std::size_t group = 0; group < size(s.groups); ++group) {
    const float* from = weights + group * outputs * k;
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t tap = 0; tap < taps; ++tap) matrix[o * k + tap * channels + c] = *from++;
      }
    }
    row.pack(matrix.data(), outputs, k, static_cast<char*>(packed) + group * group_bytes);
  }
}

std::size_t conv_float_scratch_bytes(const GemmFloatRow& row, const ConvShape& s, int threads) {
  return layout_of(row, s).bytes * static_cast<std::size_t>(std::max(1, threads));
}

void conv_float(const GemmFloatRow& row, const ConvShape& s, const void* packed, const float* x,
                const EpilogueFloat& epilogue, float* y, void* scratch) {
  const Layout l = layout_of(row, s);
  const std::size_t pixels = size(s.pixels());
  const std::size_t outputs = size(s.outputs_per_group());
  const std::size_t column_blocks = (outputs + row.n_step - 1) / row.n_step;
  const std::size_t team = static_cast<std::size_t>(threads());
  // A range of pixels a thread, each worth several register tiles; where that gives too few, output channels are shared
  // out as well. Groups are parts of their own.
  const std::size_t per_group = (team + size(s.groups) - 1) / size(s.groups);
  const std::size_t pixel_parts = std::clamp<std::size_t>(pixels / (4 * row.m_step), 1, per_group);
  const std::size_t column_parts =
      std::clamp<std::size_t>((per_group + pixel_parts - 1) / pixel_parts, 1, std::max<std::size_t>(1, column_blocks));
  const std::size_t parts = size(s.groups) * pixel_parts * column_parts;
  parallel_for(parts, 1, [&](std::size_t first, std::size_t last) {
    char* own = static_cast<char*>(scratch) + static_cast<std::size_t>(thread_index()) * l.bytes;
    if (l.rows_at > l.zeros_at) std::memset(own + l.zeros_at, 0, l.rows_at - l.zeros_at);
    for (std::size_t part = first; part < last; ++part) {
      const std::size_t column = part % column_parts;
      const std::size_t pixel = part / column_parts % pixel_parts;
      const std::size_t group = part / column_parts / pixel_parts;
      run_part(row, s, l, packed, x, epilogue, y, static_cast<std::int64_t>(group), pixels * pixel / pixel_parts,
               pixels * (pixel + 1) / pixel_parts, column_blocks * column / column_parts * row.n_step,
               std::min(outputs, column_blocks * (column + 1) / column_parts * row.n_step), own);
    }
  });
}

}  // namespace ctk::kernels

// conv_fp32: drives a gemm_fp32 row over the pixels of a convolution.
//
// Three ways to present the patches, chosen by the shape alone:
//   direct    1x1, stride 1, no padding: the input is the matrix already
//   pointers  channels per group >= kPointerChannels: each tap of each pixel is a pointer into the input, or to zeros
//   gather    few channels: patches are copied into scratch, a kernel row at a time where its taps are neighbours
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

enum class Way { direct, pointers, gather };

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
  return s.channels_per_group() >= kPointerChannels ? Way::pointers : Way::gather;
}

// What one thread holds: the patches of one block of pixels, then zeros for taps in the padding, then the row's own.
struct Layout {
  Way way;
  std::size_t pixels;  // of a block
  std::size_t zeros_at, row_at, bytes;
};

Layout layout_of(const GemmFloatRow& row, const ConvShape& s) {
  Layout l{};
  l.way = way_of(s);
  const std::size_t taps = size(s.kernel_height * s.kernel_width);
  const std::size_t per_pixel = std::max<std::size_t>(
      1, l.way == Way::pointers ? taps * sizeof(const float*) : size(s.reduction()) * sizeof(float));
  l.pixels = std::clamp<std::size_t>(kBlockBytes / per_pixel, 8 * row.m_step, std::max(8 * row.m_step, kMostPixels));
  l.pixels = std::max<std::size_t>(1, std::min(l.pixels / row.m_step * row.m_step, size(s.pixels())));
  if (l.way != Way::direct) l.zeros_at = aligned(l.pixels * per_pixel);
  l.row_at = l.zeros_at + (l.way == Way::pointers ? aligned(size(s.channels_per_group()) * sizeof(float)) : 0);
  l.bytes = l.row_at + aligned(row.scratch_bytes(size(s.reduction())));
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

// Copies patches [end - begin, reduction]. Taps side by side in a kernel row are neighbours in memory too when one
// group holds all channels, so a whole run of them is one copy.
void fill_patches(const ConvShape& s, const float* x, std::size_t begin, std::size_t end, float* out) {
  const std::int64_t channels = s.channels_per_group();
  const bool has_runs = s.groups == 1 && s.dilation_width == 1 && !s.is_transposed;
  const std::size_t row_floats = size(s.kernel_width * channels);
  Pixel p = pixel_at(s, static_cast<std::int64_t>(begin));
  for (std::size_t i = begin; i < end; ++i, advance(s, p)) {
    for (std::int64_t ky = 0; ky < s.kernel_height; ++ky, out += row_floats) {
      const std::int64_t iy = window_row(s, p.y, ky);
      if (iy < 0) {
        std::fill(out, out + row_floats, 0.0f);
        continue;
      }
      const float* row = x + (p.image * s.in_height + iy) * s.in_width * s.in_channels;
      if (has_runs) {
        const std::int64_t left = p.x * s.stride_width - s.pad_left;
        const std::int64_t first = std::clamp<std::int64_t>(-left, 0, s.kernel_width);
        const std::int64_t last = std::clamp<std::int64_t>(s.in_width - left, first, s.kernel_width);
        float* to = out;
        for (std::int64_t n = first * channels; n > 0; --n) *to++ = 0.0f;
        const float* from = row + (left + first) * channels;
        for (std::int64_t n = (last - first) * channels; n > 0; --n) *to++ = *from++;
        for (std::int64_t n = (s.kernel_width - last) * channels; n > 0; --n) *to++ = 0.0f;
        continue;
      }
      for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
        const std::int64_t ix = window_column(s, p.x, kx);
        float* to = out + kx * channels;
        for (std::int64_t c = 0; c < channels; ++c) to[c] = ix >= 0 ? row[ix * s.in_channels + c] : 0.0f;
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
  const std::size_t block = l.way == Way::direct ? end - begin : l.pixels;
  for (std::size_t p = begin; p < end; p += block) {
    g.m = std::min(block, end - p);
    g.c = y + p * g.c_stride + first_output;
    if (epilogue.residual != nullptr) {
      g.epilogue.residual = epilogue.residual + p * epilogue.residual_stride + first_output;
    }
    if (l.way == Way::direct) {
      g.a = input + p * size(s.in_channels);
      g.a_stride = size(s.in_channels);
    } else if (l.way == Way::pointers) {
      const float** pointers = reinterpret_cast<const float**>(scratch);
      fill_pointers(s, input, reinterpret_cast<const float*>(scratch + l.zeros_at), p, p + g.m, pointers);
      g.segments = pointers;
      g.segment_length = channels;
    } else {
      fill_patches(s, input, p, p + g.m, reinterpret_cast<float*>(scratch));
      g.a = reinterpret_cast<const float*>(scratch);
      g.a_stride = g.k;
    }
    row.run(g, n_begin, n_end, scratch + l.row_at);
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
  // One thread's share of pixels should be worth several register tiles; else output channels are shared out as well.
  const std::size_t pixel_parts =
      std::clamp<std::size_t>(pixels / (4 * row.m_step), 1, std::max<std::size_t>(1, 8 * team));
  const std::size_t column_parts =
      pixel_parts >= 2 * team ? 1 : std::clamp<std::size_t>(2 * team / pixel_parts, 1, column_blocks);
  const std::size_t parts = size(s.groups) * pixel_parts * column_parts;
  parallel_for(parts, 1, [&](std::size_t first, std::size_t last) {
    char* own = static_cast<char*>(scratch) + static_cast<std::size_t>(thread_index()) * l.bytes;
    if (l.row_at > l.zeros_at) std::memset(own + l.zeros_at, 0, l.row_at - l.zeros_at);
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

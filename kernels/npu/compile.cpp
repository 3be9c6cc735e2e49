// A layer is walked in pieces: for each group, block of outputs, image and block of pixels, the channels of a tap in
// blocks. Weights stay while pixels pass. The commands of a piece are written so that the next piece's loads stand
// before this one's computation.
#include "kernels/npu/compile.h"

#include <algorithm>
#include <cstring>

#include "kernels/window_axis.h"

namespace ctk::kernels::npu {
namespace {

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// Positions of a strip that meet an input: an arithmetic progression.
struct Meets {
  std::size_t position = 0, position_step = 1, source = 0, source_step = 1, count = 0;
};

Meets meets_of(const WindowAxis& axis, std::int64_t output, std::int64_t span) {
  Meets m;
  for (std::int64_t at = 0; at < span; ++at) {
    const std::int64_t i = axis.source(output, at);
    if (i < 0) continue;
    if (m.count == 0) {
      m.position = size(at);
      m.source = size(i);
    } else if (m.count == 1) {
      m.position_step = size(at) - m.position;
      m.source_step = size(i) - m.source;
    }
    ++m.count;
  }
  return m;
}

// One piece of the layer: a block of outputs for a block of pixels and a block of channels.
struct Piece {
  std::size_t group = 0, n = 0, outputs = 0;
  std::int64_t image = 0, y = 0, x = 0;
  std::size_t rows = 0, width = 0;
  std::size_t c = 0, channels = 0;
  bool is_first = false, is_last = false;  // of the sums of these outputs
  std::size_t weight_load = 0;             // number of the block of weights it uses
  std::size_t block = 0;                   // number of the block of outputs and pixels
};

class Compiler {
 public:
  Compiler(const Sizes& sizes, const Tile& tile, const EpilogueInt& rule, std::uint8_t zero_point)
      : sizes_(sizes),
        tile_(tile),
        rule_(rule),
        zero_point_(zero_point),
        pad_(lay_out(sizes, tile)),
        vertical_(height_axis(sizes.shape)),
        horizontal_(width_axis(sizes.shape)) {
    rule_.bias = nullptr;
    rule_.multiplier = nullptr;
    rule_.residual.data = nullptr;
  }

  Stream compile() {
    cut();
    computed_.assign(pieces_.size(), kNothing);
    written_.assign(pieces_.empty() ? 0 : pieces_.back().block + 1, kNothing);
    // With one buffer a piece comes in when the one before is gone.
    const std::size_t ahead = tile_.buffers - 1;
    for (std::size_t i = 0; i < pieces_.size() + ahead; ++i) {
      if (i < pieces_.size()) load(i);
      if (i >= ahead) run(i - ahead);
    }
    return std::move(stream_);
  }

 private:
  void cut() {
    const ConvShape& s = sizes_.shape;
    std::size_t weight_load = kNothing, block = kNothing;
    for (std::size_t group = 0; group < sizes_.groups(); ++group) {
      for (std::size_t n = 0; n < sizes_.outputs(); n += tile_.outputs) {
        bool is_new = true;
        for (std::int64_t image = 0; image < s.batch; ++image) {
          for (std::size_t y = 0; y < size(s.out_height); y += tile_.rows) {
            for (std::size_t x = 0; x < size(s.out_width); x += tile_.width) {
              ++block;
              for (std::size_t c = 0; c < sizes_.channels(); c += tile_.channels) {
                Piece p;
                p.group = group;
                p.n = n;
                p.outputs = std::min(tile_.outputs, sizes_.outputs() - n);
                p.image = image;
                p.y = static_cast<std::int64_t>(y);
                p.x = static_cast<std::int64_t>(x);
                p.rows = std::min(tile_.rows, size(s.out_height) - y);
                p.width = std::min(tile_.width, size(s.out_width) - x);
                p.c = c;
                p.channels = std::min(tile_.channels, sizes_.channels() - c);
                p.is_first = c == 0;
                p.is_last = c + p.channels == sizes_.channels();
                if (is_new || p.channels != sizes_.channels()) ++weight_load;
                is_new = false;
                p.weight_load = weight_load;
                p.block = block;
                pieces_.push_back(p);
              }
            }
          }
        }
      }
    }
  }

  std::size_t put(std::variant<Dma, Fill, Mac, Requantize> what, std::size_t after) {
    stream_.push_back({std::move(what), after});
    return stream_.size() - 1;
  }

  // What piece i needs, into the buffers that piece i - buffers has used.
  void load(std::size_t i) {
    const Piece& p = pieces_[i];
    const std::size_t after = i >= tile_.buffers ? computed_[i - tile_.buffers] : kNothing;
    if (i == 0 || pieces_[i - 1].weight_load != p.weight_load) load_weights(p, after);
    load_strip(p, pad_.strip[i % tile_.buffers], after);
    if (p.is_first && sizes_.adds_residual) {
      Dma dma = block_of(p, 1);
      dma.region = Region::residual;
      dma.scratchpad.address = pad_.residual[p.block % tile_.buffers];
      put(dma, after);
    }
    last_loads_.push_back(stream_.size() - 1);
  }

  void load_weights(const Piece& p, std::size_t after) {
    const std::size_t taps = sizes_.taps(), at = p.weight_load % tile_.buffers;
    Dma dma;
    dma.region = Region::constants;
    dma.scratchpad.address = pad_.weights[at];
    if (sizes_.is_per_channel) {  // [taps, outputs]
      dma.outside = {p.n, {sizes_.outputs(), 1}};
      dma.scratchpad.pitch[0] = dma.run = p.outputs;
      dma.counts[0] = taps;
    } else {  // [outputs, taps, channels]
      const std::size_t channels = sizes_.channels(), row = taps * channels;
      dma.outside = {(p.group * sizes_.outputs() + p.n) * row + p.c, {row, channels}};
      dma.scratchpad.pitch[0] = taps * p.channels;
      dma.scratchpad.pitch[1] = dma.run = p.channels;
      dma.counts[0] = p.outputs;
      dma.counts[1] = taps;
      if (p.channels == channels) {  // whole rows
        dma.counts[0] = dma.counts[1] = 1;
        dma.run = p.outputs * row;
      }
    }
    put(dma, after);
    Dma columns;
    columns.region = Region::constants;
    columns.outside.address = constant_bytes(sizes_.shape) -
                              (size(sizes_.shape.out_channels) - p.group * sizes_.outputs() - p.n) * sizeof(Column);
    columns.scratchpad.address = pad_.columns[at];
    columns.run = p.outputs * sizeof(Column);
    put(columns, after);
  }

  std::size_t pixel_of(const Piece& p) const { return sizes_.is_per_channel ? p.outputs : p.channels; }

  void load_strip(const Piece& p, std::size_t address, std::size_t after) {
    const ConvShape& s = sizes_.shape;
    const std::int64_t height = vertical_.span(static_cast<std::int64_t>(p.rows));
    const std::int64_t width = horizontal_.span(static_cast<std::int64_t>(p.width));
    const std::size_t pixel = pixel_of(p), line = size(width) * pixel, depth = size(s.in_channels);
    const Meets y = meets_of(vertical_, p.y, height), x = meets_of(horizontal_, p.x, width);
    // Positions between the first and the last output's windows that no input meets read the zero point.
    if (y.count * x.count != size(height) * size(width)) put(Fill{address, size(height) * line, zero_point_}, after);
    if (y.count == 0 || x.count == 0) return;
    const std::size_t first = (size(p.image) * size(s.in_height) + y.source) * size(s.in_width) + x.source;
    const std::size_t channel = sizes_.is_per_channel ? p.n : p.group * sizes_.channels() + p.c;
    Dma dma;
    dma.outside = {first * depth + channel, {y.source_step * size(s.in_width) * depth, x.source_step * depth}};
    dma.scratchpad = {address + y.position * line + x.position * pixel,
                      {y.position_step * line, x.position_step * pixel}};
    dma.run = pixel;
    dma.counts[0] = y.count;
    dma.counts[1] = x.count;
    if (dma.outside.pitch[1] == pixel && dma.scratchpad.pitch[1] == pixel) {  // pixels lie side by side
      dma.run *= x.count;
      dma.counts[1] = 1;
    }
    put(dma, after);
  }

  // A block of outputs as it lies outside and, dense, in the scratchpad.
  Dma block_of(const Piece& p, std::size_t element) const {
    const ConvShape& s = sizes_.shape;
    const std::size_t depth = size(s.out_channels) * element;
    const std::size_t first = (size(p.image) * size(s.out_height) + size(p.y)) * size(s.out_width) + size(p.x);
    Dma dma;
    dma.outside = {first * depth + (p.group * sizes_.outputs() + p.n) * element, {size(s.out_width) * depth, depth}};
    dma.run = p.outputs * element;
    dma.scratchpad.pitch[0] = p.width * dma.run;
    dma.scratchpad.pitch[1] = dma.run;
    dma.counts[0] = p.rows;
    dma.counts[1] = p.width;
    if (dma.run == depth) {  // pixels lie side by side
      dma.run *= p.width;
      dma.counts[1] = 1;
    }
    return dma;
  }

  void run(std::size_t i) {
    const Piece& p = pieces_[i];
    const std::size_t weights = p.weight_load % tile_.buffers, out = p.block % tile_.buffers;
    const std::size_t pixel = pixel_of(p);
    const std::size_t line = size(horizontal_.span(static_cast<std::int64_t>(p.width))) * pixel;
    Mac mac;
    mac.is_per_channel = sizes_.is_per_channel;
    mac.is_first = p.is_first;
    mac.activations = pad_.strip[i % tile_.buffers];
    mac.weights = pad_.weights[weights];
    mac.columns = pad_.columns[weights];
    mac.sums = pad_.sums;
    mac.rows = p.rows;
    mac.width = p.width;
    mac.row_step = size(vertical_.step()) * line;
    mac.pixel_step = size(horizontal_.step()) * pixel;
    mac.tap_rows = size(sizes_.shape.kernel_height);
    mac.tap_columns = size(sizes_.shape.kernel_width);
    mac.tap_row_step = size(sizes_.shape.dilation_height) * line;
    mac.tap_step = size(sizes_.shape.dilation_width) * pixel;
    mac.channels = p.channels;
    mac.outputs = p.outputs;
    computed_[i] = put(mac, last_loads_[i]);
    if (!p.is_last) return;
    Requantize r;
    r.sums = pad_.sums;
    r.columns = pad_.columns[weights];
    r.output = pad_.output[out];
    r.pixels = p.rows * p.width;
    r.outputs = p.outputs;
    r.rule = rule_;
    r.adds_residual = sizes_.adds_residual;
    r.residual = pad_.residual[out];
    // What lay in this output buffer has to be gone.
    computed_[i] = put(r, p.block >= tile_.buffers ? written_[p.block - tile_.buffers] : kNothing);
    Dma dma = block_of(p, sizes_.to_float ? sizeof(float) : 1);
    dma.is_out = true;
    dma.region = Region::output;
    dma.scratchpad.address = pad_.output[out];
    written_[p.block] = put(dma, computed_[i]);
  }

  const Sizes& sizes_;
  const Tile& tile_;
  EpilogueInt rule_;
  const std::uint8_t zero_point_;
  const Scratchpad pad_;
  const WindowAxis vertical_, horizontal_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> computed_;    // [pieces], its last command of the computing engine
  std::vector<std::size_t> last_loads_;  // [pieces], its last load
  std::vector<std::size_t> written_;     // [blocks], its way out
  Stream stream_;
};

}  // namespace

#define CTK_KERNEL(symbol) extern const Row symbol;
#include "kernels/npu/kernels.def"
#undef CTK_KERNEL

std::span<const Row> rows() {
  static const Row rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/npu/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

const Row* find_row(std::string_view kind) {
  for (const Row& row : rows()) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

std::size_t constant_bytes(const ConvShape& shape) {
  const std::size_t weights = size(shape.out_channels * shape.reduction());
  return (weights + 7) / 8 * 8 + size(shape.out_channels) * sizeof(Column);
}

void make_constants(const ConvShape& shape, bool is_per_channel, const std::int8_t* codes, const std::int32_t* bias,
                    const float* multiplier, void* constants) {
  const std::size_t outputs = size(shape.out_channels), channels = size(shape.channels_per_group());
  const std::size_t taps = size(shape.kernel_height * shape.kernel_width);
  auto* weights = static_cast<std::int8_t*>(constants);
  std::memset(constants, 0, constant_bytes(shape));
  for (std::size_t n = 0; n < outputs; ++n) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t t = 0; t < taps; ++t) {
        // A transposed window meets its strip back to front (WindowAxis::tap).
        const std::size_t tap = shape.is_transposed ? taps - 1 - t : t;
        weights[is_per_channel ? tap * outputs + n : (n * taps + tap) * channels + c] = *codes++;
      }
    }
  }
  std::byte* columns = static_cast<std::byte*>(constants) + constant_bytes(shape) - outputs * sizeof(Column);
  for (std::size_t n = 0; n < outputs; ++n) {
    const Column column{bias[n], multiplier[n]};
    std::memcpy(columns + n * sizeof(Column), &column, sizeof(Column));
  }
}

Result<Program> compile(const Card& card, const ConvShape& shape, bool is_per_channel, const EpilogueInt& rule,
                        std::uint8_t input_zero_point) {
  Program program;
  program.sizes = {shape, is_per_channel, rule.residual.stride != 0, rule.to_float};
  const Sizes& sizes = program.sizes;
  const std::size_t outputs = size(shape.pixels() * shape.out_channels);
  program.bytes = {constant_bytes(shape), size(shape.batch * shape.in_height * shape.in_width * shape.in_channels),
                   sizes.adds_residual ? outputs : 0, outputs * (rule.to_float ? sizeof(float) : 1)};
  if (outputs == 0) return program;
  if (shape.reduction() == 0)
    return input_error("npu: expected a layer that sums products, found one without. Leave it to the processor");
  if (sizes.adds_residual && (rule.to_float || rule.residual.stride != size(shape.out_channels)))
    return input_error("npu: expected codes in rows of " + std::to_string(shape.out_channels) +
                       " to be added to codes, found others. Leave the layer to the processor");
  const auto count = [&](const Tile& tile) -> Result<std::uint64_t> {
    CTK_TRY(const Counts counts,
            check_stream(card, Compiler(sizes, tile, rule, input_zero_point).compile(), program.bytes));
    return counts.cycles;
  };
  CTK_TRY(program.tile, choose_tile(card, sizes, count));
  program.stream = Compiler(sizes, program.tile, rule, input_zero_point).compile();
  CTK_TRY(program.counts, check_stream(card, program.stream, program.bytes));
  return program;
}

}  // namespace ctk::kernels::npu

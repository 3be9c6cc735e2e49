// attention: table of rows, and the split over threads.
#include "kernels/attention/attention.h"

#include <algorithm>

#include "core/parallel.h"

namespace ctk::kernels {

#define CTK_KERNEL(symbol) extern const AttentionRow symbol;
#include "kernels/attention/kernels.def"
#undef CTK_KERNEL

namespace {

constexpr std::size_t kChunk = Attention::kChunk, kMostLines = AttentionBlock::kMostLines;

std::size_t divide_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step;
}

std::size_t round_up_64(std::size_t bytes) {
  return divide_up(bytes, 64) * 64;
}

std::size_t state_floats(const CacheShape& shape) {
  return divide_up(kStateHead + shape.value_pitch(), 16) * 16;
}

// With few lines the cut is by chunks of keys, whose states are all kept and then joined.
bool is_cut_by_keys(const Attention& a) {
  return a.lines() <= kMostLines && a.context > kChunk;
}

// Keys any of the block's lines sees; the last line sees the most.
std::size_t seen_keys(const Attention& a, const AttentionBlock& b) {
  return a.limit(b.first_line + b.lines - 1);
}

void by_keys(const AttentionRow& row, const Attention& a, char* scratch) {
  const CacheShape& shape = a.cache.shape;
  const std::size_t lines = a.lines(), states = lines * state_floats(shape);
  const std::size_t chunks = divide_up(seen_keys(a, {0, 0, lines, 0, 0}), kChunk), all = divide_up(a.context, kChunk);
  float* partial = reinterpret_cast<float*>(scratch);
  char* own = scratch + shape.kv_heads * all * states * sizeof(float);
  const std::size_t own_bytes = round_up_64(row.scratch_bytes(shape, lines));
  parallel_for(shape.kv_heads * chunks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t unit = begin; unit < end; ++unit) {
      const std::size_t kv_head = unit / chunks, chunk = unit % chunks;
      const std::size_t last = std::min((chunk + 1) * kChunk, a.context);
      row.attend(a, {kv_head, 0, lines, chunk * kChunk, last}, partial + unit * states,
                 own + static_cast<std::size_t>(thread_index()) * own_bytes);
    }
  });
  parallel_for(shape.kv_heads, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t kv_head = begin; kv_head < end; ++kv_head) {
      float* first = partial + kv_head * chunks * states;
      for (std::size_t chunk = 1; chunk < chunks; ++chunk) row.join(shape, lines, first, first + chunk * states);
      row.finish(a, {kv_head, 0, lines, 0, 0}, first);
    }
  });
}

void by_lines(const AttentionRow& row, const Attention& a, char* scratch) {
  const CacheShape& shape = a.cache.shape;
  const std::size_t blocks = divide_up(a.lines(), kMostLines), largest = std::min(a.lines(), kMostLines);
  const std::size_t states = largest * state_floats(shape);
  const std::size_t own_bytes = 2 * states * sizeof(float) + round_up_64(row.scratch_bytes(shape, largest));
  parallel_for(shape.kv_heads * blocks, 1, [&](std::size_t begin, std::size_t end) {
    char* own = scratch + static_cast<std::size_t>(thread_index()) * own_bytes;
    float* gathered = reinterpret_cast<float*>(own);
    float* next = gathered + states;
    char* rest = own + 2 * states * sizeof(float);
    for (std::size_t unit = begin; unit < end; ++unit) {
      const std::size_t block = unit % blocks;
      AttentionBlock b;
      b.kv_head = unit / blocks;
      b.first_line = a.lines() * block / blocks;
      b.lines = a.lines() * (block + 1) / blocks - b.first_line;
      const std::size_t seen = seen_keys(a, b);
      for (std::size_t key = 0; key == 0 || key < seen; key += kChunk) {
        b.first_key = key;
        b.last_key = std::min(key + kChunk, a.context);
        row.attend(a, b, key == 0 ? gathered : next, rest);
        if (key != 0) row.join(shape, b.lines, gathered, next);
      }
      row.finish(a, b, gathered);
    }
  });
}

}  // namespace

std::span<const AttentionRow> attention_rows() {
  static const AttentionRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/attention/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

void append_kv(const AttentionRow& row, const KvAppend& a) {
  parallel_for(a.cache.shape.kv_heads, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t head = begin; head < end; ++head) row.append(a, head);
  });
}

std::size_t attention_scratch_bytes(const AttentionRow& row, const Attention& a) {
  const CacheShape& shape = a.cache.shape;
  const std::size_t lines = std::min(a.lines(), kMostLines), team = static_cast<std::size_t>(threads());
  const std::size_t states = lines * state_floats(shape) * sizeof(float);
  const std::size_t own = round_up_64(row.scratch_bytes(shape, lines));
  if (is_cut_by_keys(a)) return shape.kv_heads * divide_up(a.context, kChunk) * states + team * own;
  return team * (2 * states + own);
}

void attention(const AttentionRow& row, const Attention& a, void* scratch) {
  if (a.lines() == 0) return;
  if (is_cut_by_keys(a)) {
    by_keys(row, a, static_cast<char*>(scratch));
  } else {
    by_lines(row, a, static_cast<char*>(scratch));
  }
}

}  // namespace ctk::kernels

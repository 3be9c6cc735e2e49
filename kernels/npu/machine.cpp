#include "kernels/npu/machine.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace ctk::kernels::npu {
namespace {

constexpr std::size_t kTooMany = std::numeric_limits<std::size_t>::max();

// Products and sums that stay at kTooMany once they overflow.
std::size_t times(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooMany : product;
}
std::size_t plus(std::size_t a, std::size_t b) {
  return a > kTooMany - b ? kTooMany : a + b;
}
std::size_t per(std::size_t amount, std::size_t rate) {
  return amount / rate + (amount % rate != 0);
}

// Bytes [begin, end) of the scratchpad.
struct Range {
  std::size_t begin = 0, end = 0;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

Range range_of(std::size_t address, std::size_t bytes) {
  return bytes == 0 ? Range{} : Range{address, plus(address, bytes)};
}

// What lies between the first and the last byte of a pattern.
Range range_of(const Pattern& pattern, const Dma& dma) {
  if (dma.run == 0 || dma.counts[0] == 0 || dma.counts[1] == 0) return {};
  const std::size_t reach =
      plus(plus(times(dma.counts[0] - 1, pattern.pitch[0]), times(dma.counts[1] - 1, pattern.pitch[1])), dma.run);
  return {pattern.address, plus(pattern.address, reach)};
}

enum Engine { kMoving, kComputing };

// A command as the check sees it.
struct Use {
  Engine engine = kMoving;
  std::size_t cycles = 0;
  Range reads[4], write;
  std::string fault;  // "" when nothing is wrong
};

std::string out_of(const std::string& what, const Range& range, const std::string& memory, std::size_t bytes) {
  const std::string end = range.end == kTooMany ? "more than fits 64 bits" : std::to_string(range.end);
  return "expected " + what + " inside the " + std::to_string(bytes) + " bytes of " + memory + ", found bytes " +
         std::to_string(range.begin) + " to " + end;
}

class Checker {
 public:
  Checker(const Card& card, const RegionBytes& bytes) : card_(card), bytes_(bytes) {}

  Use operator()(const Dma& dma) {
    static constexpr const char* kNames[] = {"the constants", "the input", "the residual", "the output"};
    Use use;
    const auto region = static_cast<std::size_t>(dma.region);
    if (region >= kRegions) {
      use.fault = "expected a region below " + std::to_string(kRegions) + ", found " + std::to_string(region);
      return use;
    }
    if (dma.is_out != (dma.region == Region::output)) {
      use.fault = std::string("expected ") +
                  (dma.is_out ? "to write to the output" : "to read anything but the output") + ", found " +
                  kNames[region];
      return use;
    }
    for (std::size_t d = 0; d < 2; ++d) {
      const bool moves = dma.run > 0 && dma.counts[d] > 0;
      const bool steps = dma.counts[d] < 2 || (dma.outside.pitch[d] > 0 && dma.scratchpad.pitch[d] > 0);
      if (!moves || !steps) use.fault = "expected runs of at least a byte, one after the other, found none";
    }
    const std::size_t moved = times(times(dma.run, dma.counts[0]), dma.counts[1]);
    const Range outside = range_of(dma.outside, dma), inside = range_of(dma.scratchpad, dma);
    if (use.fault.empty() && outside.end > bytes_[region])
      use.fault = out_of("its bytes", outside, kNames[region], bytes_[region]);
    hold(use, "its bytes", inside);
    (dma.is_out ? use.reads[0] : use.write) = inside;
    const double cycles = std::ceil(static_cast<double>(moved) * card_.clock_mhz / card_.bandwidth_mb_s);
    // 2^62: far beyond any stream that fits its memories, and safe to convert.
    if (!(cycles < 4.6e18) || moved == kTooMany) return overflow(use);
    use.cycles = plus(card_.dma_start_cycles, static_cast<std::size_t>(cycles));
    counts_.dma_cycles = plus(counts_.dma_cycles, use.cycles);
    std::uint64_t& total = dma.is_out                        ? counts_.bytes_out
                           : dma.region == Region::constants ? counts_.bytes_constants
                                                             : counts_.bytes_in;
    total = plus(total, moved);
    return use;
  }

  Use operator()(const Fill& fill) {
    Use use;
    use.write = range_of(fill.address, fill.bytes);
    hold(use, "its bytes", use.write);
    use.cycles = per(fill.bytes, card_.array_rows);
    counts_.dma_cycles = plus(counts_.dma_cycles, use.cycles);
    return use;
  }

  Use operator()(const Mac& mac) {
    Use use;
    use.engine = kComputing;
    const std::size_t taps = times(mac.tap_rows, mac.tap_columns), pixels = times(mac.rows, mac.width);
    const std::size_t terms = mac.is_per_channel ? taps : times(taps, mac.channels);
    const std::size_t pixel_bytes = mac.is_per_channel ? mac.outputs : mac.channels;
    if (pixels == 0 || terms == 0 || mac.outputs == 0) {
      use.fault = "expected at least one pixel, one output and one product, found none";
      return use;
    }
    const std::size_t reach =
        plus(plus(plus(times(mac.rows - 1, mac.row_step), times(mac.width - 1, mac.pixel_step)),
                  plus(times(mac.tap_rows - 1, mac.tap_row_step), times(mac.tap_columns - 1, mac.tap_step))),
             pixel_bytes);
    use.reads[0] = range_of(mac.activations, reach);
    use.reads[1] = range_of(mac.weights, times(terms, mac.outputs));
    if (mac.is_first) use.reads[2] = range_of(mac.columns, times(mac.outputs, sizeof(Column)));
    use.write = range_of(mac.sums, times(times(pixels, mac.outputs), sizeof(std::int32_t)));
    if (!mac.is_first) use.reads[3] = use.write;
    hold(use, "activations", use.reads[0]);
    hold(use, "weights", use.reads[1]);
    hold(use, "columns", use.reads[2]);
    hold(use, "sums", use.write);
    align(use, "sums", mac.sums);
    if (mac.is_first) align(use, "columns", mac.columns);
    const std::size_t passes = times(per(terms, card_.array_rows), per(mac.outputs, card_.array_columns));
    use.cycles = times(passes, plus(times(pixels, card_.mac_cycles), card_.mac_start_cycles));
    const std::size_t macs = times(times(pixels, terms), mac.outputs);
    if (use.cycles == kTooMany || macs == kTooMany) return overflow(use);
    counts_.mac_cycles = plus(counts_.mac_cycles, use.cycles);
    counts_.macs = plus(counts_.macs, macs);
    return use;
  }

  Use operator()(const Requantize& r) {
    Use use;
    use.engine = kComputing;
    const std::size_t values = times(r.pixels, r.outputs);
    if (values == 0) {
      use.fault = "expected at least one value, found none";
      return use;
    }
    use.reads[0] = range_of(r.sums, times(values, sizeof(std::int32_t)));
    use.reads[1] = range_of(r.columns, times(r.outputs, sizeof(Column)));
    if (r.adds_residual) use.reads[2] = range_of(r.residual, values);
    use.write = range_of(r.output, times(values, r.rule.to_float ? sizeof(float) : 1));
    hold(use, "sums", use.reads[0]);
    hold(use, "columns", use.reads[1]);
    hold(use, "the residual", use.reads[2]);
    hold(use, "outputs", use.write);
    align(use, "sums", r.sums);
    align(use, "columns", r.columns);
    if (r.rule.to_float) align(use, "outputs", r.output);
    if (r.adds_residual && r.rule.to_float && use.fault.empty())
      use.fault = "expected codes where a residual is added, found floats";
    use.cycles = per(values, card_.requantize_per_cycle);
    counts_.requantize_cycles = plus(counts_.requantize_cycles, use.cycles);
    return use;
  }

  const Counts& counts() const { return counts_; }

 private:
  void hold(Use& use, const char* what, const Range& range) const {
    if (use.fault.empty() && range.end > card_.scratchpad_bytes)
      use.fault = out_of(what, range, "the scratchpad", card_.scratchpad_bytes);
  }
  static void align(Use& use, const char* what, std::size_t address) {
    if (use.fault.empty() && address % 4 != 0)
      use.fault = "expected " + std::string(what) + " at a multiple of 4, found " + std::to_string(address);
  }
  static Use overflow(Use& use) {
    if (use.fault.empty()) use.fault = "expected a size that can be counted, found one beyond 64 bits";
    return use;
  }

  const Card& card_;
  const RegionBytes& bytes_;
  Counts counts_;
};

// Who is at work on which bytes until when.
struct Job {
  std::size_t position = 0, end_cycle = 0;
  Use use;
};

bool collide(const Use& a, const Use& b) {
  for (const Range& read : a.reads) {
    if (read.overlaps(b.write)) return true;
  }
  for (const Range& read : b.reads) {
    if (read.overlaps(a.write)) return true;
  }
  return a.write.overlaps(b.write);
}

Status check_card(const Card& card) {
  const bool is_whole = card.array_rows > 0 && card.array_columns > 0 && card.mac_cycles > 0 &&
                        card.requantize_per_cycle > 0 && card.clock_mhz > 0 && card.bandwidth_mb_s > 0 &&
                        std::isfinite(card.clock_mhz) && std::isfinite(card.bandwidth_mb_s);
  if (is_whole) return {};
  return config_error("\"" + card.name +
                      "\": expected an array, a clock, a bandwidth and rates above 0, found one that is not. Correct "
                      "the card");
}

}  // namespace

Counts operator+(const Counts& a, const Counts& b) {
  return {a.cycles + b.cycles,
          a.mac_cycles + b.mac_cycles,
          a.requantize_cycles + b.requantize_cycles,
          a.dma_cycles + b.dma_cycles,
          a.bytes_constants + b.bytes_constants,
          a.bytes_in + b.bytes_in,
          a.bytes_out + b.bytes_out,
          a.macs + b.macs};
}

double microseconds(const Card& card, std::uint64_t cycles) {
  return static_cast<double>(cycles) / card.clock_mhz;
}

Result<Counts> check_stream(const Card& card, const Stream& stream, const RegionBytes& bytes) {
  CTK_CHECK(check_card(card));
  Checker checker(card, bytes);
  std::vector<std::size_t> done(stream.size(), 0);  // cycle at which each command is done
  std::size_t free_at[2] = {0, 0};
  std::deque<Job> busy[2];
  const auto wrong = [](std::size_t at, const std::string& fault) {
    return input_error("npu stream: command " + std::to_string(at) + ": " + fault + ". Compile it for this card");
  };
  for (std::size_t i = 0; i < stream.size(); ++i) {
    Use use = std::visit(checker, stream[i].what);
    if (!use.fault.empty()) return wrong(i, use.fault);
    const std::size_t after = stream[i].after;
    if (after != kNothing && after >= i)
      return wrong(i, "expected to wait for an earlier command, found " + std::to_string(after));
    std::size_t& free = free_at[use.engine];
    const std::size_t start = after == kNothing ? free : std::max(free, done[after]);
    // What the other engine still does when this one starts. Its jobs end in the order they stand in.
    std::deque<Job>& others = busy[use.engine == kMoving ? kComputing : kMoving];
    for (auto job = others.rbegin(); job != others.rend() && job->end_cycle > start; ++job) {
      if (collide(use, job->use)) {
        return wrong(i, "expected to wait for command " + std::to_string(job->position) +
                            ", which touches the same bytes of the scratchpad, found nothing that does");
      }
    }
    done[i] = plus(start, use.cycles);
    if (done[i] == kTooMany) return wrong(i, "expected cycles that can be counted, found more than fit 64 bits");
    free = done[i];
    // Whoever starts later on either engine starts when that engine is free at the earliest.
    std::deque<Job>& own = busy[use.engine];
    own.push_back({i, done[i], std::move(use)});
    for (std::deque<Job>* jobs : {&busy[kMoving], &busy[kComputing]}) {
      const std::size_t least = std::min(free_at[0], free_at[1]);
      while (!jobs->empty() && jobs->front().end_cycle <= least) jobs->pop_front();
    }
  }
  Counts counts = checker.counts();
  counts.cycles = std::max(free_at[0], free_at[1]);
  return counts;
}

}  // namespace ctk::kernels::npu

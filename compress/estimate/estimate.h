// Bounds of size and speed before anything is run: what has to be read over what memory gives, what has to be computed
// over what the unit computes (roofline.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/estimate/outline.h"
#include "compress/estimate/roofline.h"
#include "core/quant_scheme.h"
#include "core/result.h"

namespace ctk::pipeline::estimate {

struct Unit {
  std::string name, source;  // source: "from the card", "measured with 2 threads"
  Limits limits;
  double cache_bytes = 0;  // what a run reads of no more than that need not come from memory; 0: count all
};
Bound bound_of(const Unit& unit, double bytes, double ops);

struct ContextRow {
  std::int64_t context = 0;               // tokens before the one that is computed
  double cache_fp16 = 0, cache_int8 = 0;  // bytes; int8 with one fp16 scale for each 64 numbers at least
  Bound decode;                           // one token, fp16 cache
};

struct Measured {
  double decode_us = 0, prefill_us = 0;  // a token, at the shortest context of the table; the whole prompt
  double run_us = 0;                     // of a network that is no decoder
};

struct Estimate {
  Outline outline;
  std::string scheme;  // "as stored", "w4a16_g32"
  Unit unit;
  double weight_bytes = 0;    // of the file: matrices, tables, the rest
  double streamed_bytes = 0;  // of weights, read for each token or run
  std::vector<ContextRow> contexts;
  std::int64_t prompt = 0;  // tokens of `prefill`
  Bound prefill, run;       // of decoders, of others
  std::optional<Measured> measured;
};

struct Request {
  std::string model;
  double parameters = 0;  // instead of a model: so many weights, each read once a token
  double bits = 0;        // of each of them
  std::string target;     // a device card; empty: this processor, measured
  std::string scheme;     // empty: as stored
  std::vector<std::int64_t> contexts;
  std::int64_t prompt = 512;
  bool measures = false;  // runs the model as it is stored, on this processor
};

// Errors: config (numbers, schemes and switches that do not fit; a card without figures), input (the model).
Result<Estimate> make_estimate(const Request& request);

}  // namespace ctk::pipeline::estimate

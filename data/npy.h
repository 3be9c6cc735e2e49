// NumPy .npy arrays: a header checked against the bytes that follow, elements brought into the machine's own order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "data/zip.h"

namespace ctk::data {

// Layout read: "\x93NUMPY", version, header length, a Python dict as text, elements.
struct NpyHeader {
  std::string descr;           // "<f4", "|u1", "<U5"
  std::optional<DType> dtype;  // absent: strings
  std::size_t item_bytes = 0;
  bool is_swapped = false;  // big-endian elements
  bool is_fortran = false;
  Shape shape;
  std::size_t data_offset = 0;
};

struct NpyArray {
  Tensor values;                     // not defined for strings
  std::vector<std::string> strings;  // ASCII, for arrays of strings
  Shape shape;
};

constexpr std::size_t kNpyHeadBytes =
    4096;  // what a reader should have at hand before parsing; longer headers are refused

// `head`: the first bytes, at most kNpyHeadBytes needed; `total_bytes`: of the whole file or entry; `where` opens
// messages. Errors: input (no npy, damaged header, pickled objects, structs, complex or dates, shape and length that
// disagree).
Result<NpyHeader> parse_npy_header(std::span<const std::byte> head, std::uint64_t total_bytes,
                                   const std::string& where);
// The elements in row-major order and native byte order: shared with `file` where they are so already and aligned.
Result<NpyArray> load_npy(const NpyHeader& header, const Bytes& file, const std::string& where);

}  // namespace ctk::data

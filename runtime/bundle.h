// The bundle: our deployable file, mapped and checked before use.
//
//   byte 0    magic "CTKBNDL\n"
//        8    u32 format version, u32 zero
//       16    u64 text offset, u64 text bytes     the graph's text form (graph/text.h), constants by reference,
//       deflated 32    u64 data offset, u64 data bytes     tensors in canonical order, each at a multiple of 16 48 u64
//       XXH3 of the deflated text, u64 XXH3 of the data 64    u64 text bytes before deflating 72    u64 XXH3 of bytes
//       0..71 80    zero up to 128; then text, zero padding to a multiple of 64, data; nothing after it
//
// All numbers little-endian. A constant's reference in the text is its offset in the data as 12 hexadecimal digits; its
// length follows from dtype and shape. Version 2 holds matrices of floats in 16 bits where the graph does
// (graph/floats.h); version 1, which is read too, has all of them in 32.
#pragma once

#include <string>

#include "graph/graph.h"

namespace ctk::runtime {

inline constexpr char kBundleMagic[8] = {'C', 'T', 'K', 'B', 'N', 'D', 'L', '\n'};
inline constexpr std::uint32_t kBundleVersion = 2, kOldestBundleVersion = 1;
inline constexpr std::size_t kBundleHeaderBytes = 128;
inline constexpr std::size_t kBundleHashedBytes = 72;  // of the header
inline constexpr std::size_t kBundleTensorAlignment = 16;

// Weights stay in the mapped file. Errors: input (what was expected and found; path in front).
Result<graph::Graph> load_bundle(const std::string& path);
Result<graph::Graph> load_bundle_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
bool is_bundle(std::span<const std::byte> bytes);

}  // namespace ctk::runtime

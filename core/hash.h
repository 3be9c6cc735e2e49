// Content hashes: XXH3-128 for fingerprints and checks, SHA-256 for manifests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace ctk {

// Collects bytes and answers a 32-digit hexadecimal fingerprint. Strings and numbers are length-framed.
class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  Fingerprint(const Fingerprint&) = delete;
  Fingerprint& operator=(const Fingerprint&) = delete;
  Fingerprint& add(std::span<const std::byte> bytes);
  Fingerprint& add(std::string_view text);
  Fingerprint& add(std::uint64_t number);
  std::string hex() const;

 private:
  void* state_;
};

std::uint64_t hash64(std::span<const std::byte> bytes);  // XXH3
// The same number for a mapped file, whose pages are let go (core/mapped_pages.h) behind the hash.
std::uint64_t hash64_of_mapped(std::span<const std::byte> bytes);
std::string sha256_of(std::span<const std::byte> bytes);
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace ctk

#include "core/hash.h"

#include <sha2.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "core/file.h"
#include "core/mapped_pages.h"

namespace ctk {
namespace {

std::string to_hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Fingerprint::Fingerprint() : state_(XXH3_createState()) {
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}

Fingerprint::~Fingerprint() {
  XXH3_freeState(static_cast<XXH3_state_t*>(state_));
}

Fingerprint& Fingerprint::add(std::span<const std::byte> bytes) {
  const std::uint64_t length = bytes.size();
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), &length, sizeof length);
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
  return *this;
}

Fingerprint& Fingerprint::add(std::string_view text) {
  return add(std::as_bytes(std::span(text.data(), text.size())));
}

Fingerprint& Fingerprint::add(std::uint64_t number) {
  return add(std::as_bytes(std::span(&number, 1)));
}

std::string Fingerprint::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_)));
  return to_hex({canonical.digest, sizeof canonical.digest});
}

std::uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t hash64_of_mapped(std::span<const std::byte> bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  if (state == nullptr) return hash64(bytes);
  XXH3_64bits_reset(state.get());
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kPiece, bytes.size()));
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
    release_pages(piece.data(), piece.size());
    bytes = bytes.subspan(piece.size());
  }
  return XXH3_64bits_digest(state.get());
}

std::string sha256_of(std::span<const std::byte> bytes) {
  SHA2_CTX context;
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  std::uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256Final(digest, &context);
  return to_hex({digest, sizeof digest});
}

Result<std::string> sha256_of_file(const std::string& path) {
  CTK_TRY(const MappedFile file, MappedFile::open(path));
  return sha256_of(file.bytes());
}

}  // namespace ctk

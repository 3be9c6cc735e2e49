// Damaged GGUF files: each is refused with an error or read as a file that holds together; nothing crashes. Under the
// asan preset this is the fuzz target of the format; CTK_FUZZ_ROUNDS sets how long it runs.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/random.h"
#include "tests/graph/gguf/small_file.h"
#include "tests/support/seed.h"

namespace ctk::graph::gguf {
namespace {

int rounds(int usual) {
  const char* asked = std::getenv("CTK_FUZZ_ROUNDS");
  return asked == nullptr ? usual : std::atoi(asked);
}

// Reads everything the file claims to hold.
void touch(const MetadataValue& value) {
  for (const MetadataValue& element : nested(value)) touch(element);
}
void load(const std::string& text) {
  const auto file = test::parse(text);
  if (!file) {
    EXPECT_FALSE(file.error().message.empty());
    return;
  }
  for (std::string_view key : file->keys()) {
    touch(*file->find(key));
    (void)file->integer(key), (void)file->real(key), (void)file->truth(key), (void)file->text(key);
    (void)file->texts(key), (void)file->integers(key), (void)file->reals(key);
  }
  for (const TensorInfo& tensor : file->tensors()) (void)file->floats(tensor);
}

TEST(GgufFuzz, FlippedCutAndOverwrittenBytes) {
  const std::string whole = test::small_file();
  load(whole);
  Random random(ctk::test::test_seed(), "gguf bytes");
  // Numbers that sit at the edges of checks.
  const std::uint64_t edges[] = {0,          1,          8,          12,    13,        24,
                                 31,         32,         64,         65,    1u << 31,  0xffffffffu,
                                 1ull << 48, 1ull << 61, 1ull << 63, ~0ull, ~0ull - 7, ~0ull - 31};
  for (int round = 0; round < rounds(4000); ++round) {
    std::string bytes = whole;
    for (std::uint64_t flips = 1 + random.next() % 4; flips > 0; --flips) {
      const std::size_t at = random.next() % bytes.size();
      if (random.next() % 2 == 0) {
        bytes[at] = static_cast<char>(random.next());
      } else {
        const std::uint64_t edge = edges[random.next() % std::size(edges)];
        const std::size_t width = random.next() % 2 == 0 ? 4 : 8;
        std::memcpy(bytes.data() + at, &edge, std::min(width, bytes.size() - at));
      }
    }
    if (random.next() % 8 == 0) bytes.resize(random.next() % bytes.size());
    load(bytes);
  }
}

}  // namespace
}  // namespace ctk::graph::gguf

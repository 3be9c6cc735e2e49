#include "train/torch/held_memory.h"

#include <climits>  // says whether this is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace ctk::train {

#ifdef __GLIBC__
namespace {

// Blocks from here on are mapped one by one; the greatest value glibc takes, which its own rule ends at too.
constexpr int kMapFrom = 32 << 20;
constexpr int kSavingMapFrom = 1 << 20;
// What glibc's rule would have the heap keep by then.
constexpr int kUsualTrim = 2 * kMapFrom;

}  // namespace

// Either of the two ends glibc's own adjusting of both, so both are set.
HeldMemory::HeldMemory(bool saves) {
  mallopt(M_MMAP_THRESHOLD, saves ? kSavingMapFrom : kMapFrom);
  mallopt(M_TRIM_THRESHOLD, saves ? kUsualTrim : INT_MAX);
}

HeldMemory::~HeldMemory() {
  mallopt(M_MMAP_THRESHOLD, kMapFrom);
  mallopt(M_TRIM_THRESHOLD, kUsualTrim);
  malloc_trim(0);
}
#else
HeldMemory::HeldMemory(bool) {}
HeldMemory::~HeldMemory() = default;
#endif

}  // namespace ctk::train

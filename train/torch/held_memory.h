// Memory that stays with the process while a network is trained.
#pragma once

namespace ctk::train {

// glibc gives the top of its heap back to the system as soon as it is free, and LibTorch frees every activation of a
// batch, so each step had the same pages taken, cleared and given back: a tenth of a small network's step. While one of
// these lives the heap keeps what it has; at the end what is free goes back. One at a time; other C libraries: nothing.
// `saves`: memory counts more than time. Then what is large is mapped and given back block by block: in the heap glibc
// (2.36) cannot use a freed aligned block for the next one of its size, so a pass holds about twice what it needs.
class HeldMemory {
 public:
  explicit HeldMemory(bool saves);
  ~HeldMemory();
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;
};

}  // namespace ctk::train

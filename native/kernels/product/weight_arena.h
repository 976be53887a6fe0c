// Memory for packed weights: large pieces that the operating system may back with huge pages, handed out one after
// another, so that a decode step streams through few pages.
//
// Owned by whoever owns the operators of a session, which outlives every kernel that packs into it. Used by one thread
// at a time: the runtime makes a session's kernels one by one. Memory is given back all at once, by the destructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/platform_memory.h"
#include "kernels/memory_account.h"

namespace oga::kernels {

class WeightArena {
 public:
  // What is handed out is charged to the account, which outlives the arena; without one nothing is.
  explicit WeightArena(MemoryAccount* account = nullptr) : account_(account) {}
  ~WeightArena();

  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;

  // Zeroed memory at a multiple of 64. Throws Error{kResourceExhausted} when the machine or the account has none left.
  uint8_t* Allocate(size_t bytes);

  // What has been handed out.
  size_t used_bytes() const { return used_bytes_; }

 private:
  MemoryAccount* const account_;
  std::vector<platform::Pages> pieces_;
  size_t used_in_last_bytes_ = 0;
  size_t used_bytes_ = 0;
};

}  // namespace oga::kernels

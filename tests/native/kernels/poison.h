// Leaves nothing unset to chance: what a kernel reads without having set it is a NaN.
#pragma once

#include <cstddef>
#include <cstring>

namespace oga::kernels {

inline constexpr int kPoison = 0xff;  // as every byte a NaN in all types of floats

// Fills the stack below the caller, where the pieces of a call that it runs next have their scratch.
[[gnu::noinline]] inline void PoisonStack() {
  constexpr size_t kBytes = size_t{512} << 10;
  unsigned char memory[kBytes];
  std::memset(memory, kPoison, kBytes);
  asm volatile("" : : "r"(memory) : "memory");
}

}  // namespace oga::kernels

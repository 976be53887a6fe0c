#include "support/allocation_hooks.h"

#include <cstdlib>
#include <new>

namespace oga::testing {
std::atomic<int> g_allocations{0};
std::atomic<bool> g_fail_aligned_allocations{false};
}  // namespace oga::testing

using oga::testing::g_allocations;
using oga::testing::g_fail_aligned_allocations;

// Replaced for this whole test program. Not inlined: the compiler would see malloc meet delete and warn.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++g_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  ++g_allocations;
  if (g_fail_aligned_allocations) throw std::bad_alloc();
  const size_t unit = static_cast<size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

// Counts the allocations of this test program and fails chosen ones.
#pragma once

#include <atomic>

namespace oga::testing {

// All calls of operator new.
extern std::atomic<int> g_allocations;

// While set, allocations with an alignment of their own fail: in a step these are liboga's growing buffers, before the
// runtime is entered.
extern std::atomic<bool> g_fail_aligned_allocations;

}  // namespace oga::testing

// Counts, and on demand fails, the allocations of liboga's own code: every operator new of this thread inside a guard.
//
// The binary that links allocation_guard.cpp replaces the global operator new. The ONNX Runtime is not part of these
// binaries, so what is counted is ours.
#pragma once

#include <cstdint>

namespace oga::testing {

// While alive, allocations of this thread are counted, and the one numbered `fail_at` (from 0) throws std::bad_alloc.
class AllocationGuard {
 public:
  static constexpr int64_t kNever = -1;

  explicit AllocationGuard(int64_t fail_at = kNever);
  ~AllocationGuard();
  AllocationGuard(const AllocationGuard&) = delete;
  AllocationGuard& operator=(const AllocationGuard&) = delete;

  int64_t allocations() const;
  bool failed() const;  // the chosen allocation was reached
};

// Suspends the guard of this thread, for code of the test that runs inside a guarded call.
class AllocationPause {
 public:
  AllocationPause();
  ~AllocationPause();
  AllocationPause(const AllocationPause&) = delete;
  AllocationPause& operator=(const AllocationPause&) = delete;

 private:
  bool was_active_;
};

}  // namespace oga::testing

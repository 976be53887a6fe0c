#include "simulation/allocation_guard.h"

#include <cstdlib>
#include <new>

namespace oga::testing {

namespace {
struct State {
  bool active = false;
  bool failed = false;
  int64_t count = 0;
  int64_t fail_at = AllocationGuard::kNever;
};
thread_local State state;

void* Allocate(std::size_t bytes) {
  if (state.active && state.count++ == state.fail_at) {
    state.failed = true;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
}  // namespace

AllocationGuard::AllocationGuard(int64_t fail_at) { state = {true, false, 0, fail_at}; }
AllocationGuard::~AllocationGuard() { state.active = false; }
int64_t AllocationGuard::allocations() const { return state.count; }
bool AllocationGuard::failed() const { return state.failed; }

AllocationPause::AllocationPause() : was_active_(state.active) { state.active = false; }
AllocationPause::~AllocationPause() { state.active = was_active_; }

}  // namespace oga::testing

void* operator new(std::size_t bytes) { return oga::testing::Allocate(bytes); }
void* operator new[](std::size_t bytes) { return oga::testing::Allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return oga::testing::Allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

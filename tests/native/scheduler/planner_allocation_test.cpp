// Planning allocates nothing once room was made: a step that is short of memory can still be planned.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "native/scheduler/scene.h"

namespace {
std::atomic<int> g_allocations{0};
}  // namespace

// Replaced for this whole test program, to count. Not inlined: the compiler would see malloc meet delete and warn.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++g_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace oga::testing {
namespace {

// Plans `scene` and returns how often that allocated.
int AllocationsToPlan(const Scene& scene, StepPlan& plan) {
  const ArrivalPolicy policy;
  Planner planner(policy);
  planner.Reserve(scene.limits, scene.views.size(), plan);
  Scene::Queues queues;
  const SchedulerView view = scene.View(policy, queues);
  const int before = g_allocations;
  planner.Plan(view, plan);
  return g_allocations - before;
}

TEST(Planner, PlansALargeBatchWithoutAllocating) {
  Scene scene;
  scene.limits.max_rows = 256;
  scene.limits.total_blocks = 1000;
  scene.limits.max_scheduled_tokens = 4096;
  scene.limits.max_resident_requests = 500;
  for (int i = 0; i < 200; ++i) scene.Decode(5).last_progress_step = 100 - i % 7;
  for (int i = 0; i < 100; ++i) scene.Waiting(20);
  StepPlan plan;
  EXPECT_EQ(AllocationsToPlan(scene, plan), 0);
  EXPECT_EQ(plan.rows.size(), 256u);
}

TEST(Planner, DropsAndReportsWithoutAllocating) {
  Scene scene;
  scene.limits.max_rows = 256;
  scene.limits.total_blocks = 128;
  scene.limits.max_scheduled_tokens = 512;
  scene.limits.max_resident_requests = 128;
  scene.free_blocks = 0;
  for (int i = 0; i < 64; ++i) scene.Decode(5).last_progress_step = 100 - i % 30;
  for (int i = 0; i < 64; ++i) scene.Dormant(4);
  for (int i = 0; i < 100; ++i) scene.Waiting(4 * 129).last_progress_step = i % 2 == 0 ? 100 : 20;
  StepPlan plan;
  EXPECT_EQ(AllocationsToPlan(scene, plan), 0);
  EXPECT_EQ(plan.drops.size(), 64u);
  EXPECT_EQ(plan.unserviceable.size(), 100u);
}

}  // namespace
}  // namespace oga::testing

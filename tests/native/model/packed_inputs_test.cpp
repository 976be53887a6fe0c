#include "model/packed_inputs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "native/model/scenario.h"
#include "ort/session.h"
#include "support/test_data.h"

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
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  ++g_allocations;
  const size_t unit = static_cast<size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }

namespace oga {
namespace {

using PackedInputsOfASession = test::WithRuntime;

// Decoding is a long row of steps of one shape; a rebound tensor would be an allocation in the runtime too.
TEST_F(PackedInputsOfASession, AllocateAndBindNothingForAStepOfTheSameShape) {
  const std::string folder = test::DataPath("models/packed_float16");
  const ort::Session session(folder + "/model.onnx", {});
  const DecoderManifest manifest =
      ReadManifest(session.inputs(), session.outputs(), GenaiConfig::FromFolder(folder));
  ort::IoBinding binding(session);
  PackedInputs inputs(manifest, binding, session.environment());
  const testing::Scenario scenario = testing::ReadScenario(folder);
  const size_t steps = scenario.steps.size();
  const ExecutionBatch large = scenario.steps[0].Batch(scenario.columns);
  const ExecutionBatch decode = scenario.steps[steps - 2].Batch(scenario.columns);
  const ExecutionBatch next = scenario.steps[steps - 1].Batch(scenario.columns);
  ASSERT_EQ(decode.token_ids.size(), next.token_ids.size());
  inputs.Pack(large, large.logits_indices);
  inputs.Pack(decode, decode.logits_indices);

  const int before = g_allocations;
  for (int i = 0; i < 20; ++i) inputs.Pack(i % 2 == 0 ? next : decode, decode.logits_indices);
  EXPECT_EQ(g_allocations, before);
  inputs.Pack(large, large.logits_indices);
  EXPECT_GT(g_allocations, before) << "the counter does not count";
}

}  // namespace
}  // namespace oga

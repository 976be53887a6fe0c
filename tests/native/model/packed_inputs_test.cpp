#include "model/packed_inputs.h"

#include <gtest/gtest.h>

#include "native/model/scenario.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/session.h"
#include "support/allocation_hooks.h"
#include "support/test_data.h"

namespace oga {
namespace {

using PackedInputsOfASession = test::WithRuntime;

// Decoding is a long row of steps of one shape; a rebound tensor would be an allocation in the runtime too.
TEST_F(PackedInputsOfASession, AllocateAndBindNothingForAStepOfTheSameShape) {
  const std::string folder = test::DataPath("models/packed_float16");
  const ort::Session session(folder + "/model.onnx", operators::CpuSessionOptions({}));
  const DecoderManifest manifest = ReadManifest(session.inputs(), session.outputs(), GenaiConfig::FromFolder(folder));
  ort::IoBinding binding(session);
  PackedInputs inputs(manifest, binding, session.environment(), Ledger::Cpu());
  const testing::Scenario scenario = testing::ReadScenario(folder);
  const size_t steps = scenario.steps.size();
  const ExecutionBatch large = scenario.steps[0].Batch(scenario.columns);
  const ExecutionBatch decode = scenario.steps[steps - 2].Batch(scenario.columns);
  const ExecutionBatch next = scenario.steps[steps - 1].Batch(scenario.columns);
  ASSERT_EQ(decode.token_ids.size(), next.token_ids.size());
  inputs.Pack(large, large.logits_indices);
  inputs.Pack(decode, decode.logits_indices);

  const int before = testing::g_allocations;
  for (int i = 0; i < 20; ++i) inputs.Pack(i % 2 == 0 ? next : decode, decode.logits_indices);
  EXPECT_EQ(testing::g_allocations, before);
  inputs.Pack(large, large.logits_indices);
  EXPECT_GT(testing::g_allocations, before) << "the counter does not count";
}

}  // namespace
}  // namespace oga

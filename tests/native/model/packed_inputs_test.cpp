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
  const auto stream = session.device().CreateStream();
  PackedInputs inputs(manifest, binding, *stream, Ledger::Cpu());
  const testing::Scenario scenario = testing::ReadScenario(folder);
  const size_t steps = scenario.steps.size();
  const ExecutionBatch large = scenario.steps[0].Batch(scenario.columns);
  const ExecutionBatch decode = scenario.steps[steps - 2].Batch(scenario.columns);
  const ExecutionBatch next = scenario.steps[steps - 1].Batch(scenario.columns);
  ASSERT_EQ(decode.token_ids.size(), next.token_ids.size());
  const auto pack = [&](const ExecutionBatch& batch) {
    inputs.Pack(batch, batch.logits_indices);
    stream->Synchronize();
  };
  pack(large);
  pack(decode);

  const int before = testing::g_allocations;
  for (int i = 0; i < 20; ++i) pack(i % 2 == 0 ? next : decode);
  EXPECT_EQ(testing::g_allocations, before);
  pack(large);
  EXPECT_GT(testing::g_allocations, before) << "the counter does not count";
}

}  // namespace
}  // namespace oga

// Which rows are read is held by the scenarios of onnx_executor_test.cpp, on every device.
#include "model/logits_output.h"

#include <gtest/gtest.h>

#include "native/model/scenario.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/session.h"
#include "support/allocation_hooks.h"
#include "support/test_data.h"

namespace oga {
namespace {

class LogitsOutputs : public test::WithRuntime, public ::testing::WithParamInterface<const char*> {};

TEST_P(LogitsOutputs, AllocateNothingForAStepOfTheSameShape) {
  const std::string folder = test::DataPath(std::string("models/") + GetParam());
  const ort::Session session(folder + "/model.onnx", operators::CpuSessionOptions({}));
  const DecoderManifest manifest = ReadManifest(session.inputs(), session.outputs(), GenaiConfig::FromFolder(folder));
  ort::IoBinding binding(session);
  const auto stream = session.device().CreateStream();
  LogitsOutput output(manifest, binding, *stream, Ledger::Cpu());
  const testing::Scenario scenario = testing::ReadScenario(folder);
  const ExecutionBatch batch = scenario.steps[0].Batch(scenario.columns);
  const auto step = [&] {
    output.Shape(batch, batch.logits_indices);
    return output.Read(batch).size();
  };
  EXPECT_EQ(step(), batch.logits_indices.size() * static_cast<size_t>(manifest.vocab_size));
  const int before = testing::g_allocations;
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(testing::g_allocations, before);
}

INSTANTIATE_TEST_SUITE_P(Of, LogitsOutputs, ::testing::Values("separate", "per_token", "per_row"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace oga

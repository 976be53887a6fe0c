// A decoder whose tensors live in another address space: the bits it gives, and what comes of a device that fails.
#include <gtest/gtest.h>

#include "model/model.h"
#include "native/model/scenario.h"
#include "support/remote_device.h"
#include "support/test_data.h"

namespace oga {
namespace {

using testing::g_remote_faults;
using testing::ReadScenario;
using testing::Scenario;
using testing::ScenarioStep;

std::string Folder(const std::string& model) { return test::DataPath("models/" + model); }

std::shared_ptr<const Model> Load(const std::string& model, const std::string& provider) {
  return LoadOnnxModel(GenaiConfig::FromFolder(Folder(model)).WithoutProviders().WithProvider(provider));
}

std::vector<float> Logits(ModelExecutor& executor, const Scenario& scenario, const ScenarioStep& step) {
  const ExecutionResult result = executor.Execute(step.Batch(scenario.columns));
  EXPECT_EQ(result.status, ExecutionStatus::kOk) << result.message;
  return {result.logits.begin(), result.logits.end()};
}

class RemoteDecoders : public test::WithRuntime, public ::testing::WithParamInterface<const char*> {
 protected:
  void TearDown() override {
    g_remote_faults.allocation = testing::RemoteFaults::kNever;
    g_remote_faults.synchronisation = testing::RemoteFaults::kNever;
    g_remote_faults.code = StatusCode::kInternal;
  }
};

// Chunks, rows that change places, shuffled and copied blocks, logits per index, per token and per row.
TEST_P(RemoteDecoders, GiveTheBitsOfTheCpu) {
  const Scenario scenario = ReadScenario(Folder(GetParam()));
  const auto near = Load(GetParam(), "cpu");
  const auto far = Load(GetParam(), "RemoteExecutionProvider");
  EXPECT_EQ(near->device_type(), "CPU");
  EXPECT_EQ(far->device_type(), "REMOTE");
  const auto here = near->CreateExecutor(near->ResolveLimits());
  const auto there = far->CreateExecutor(far->ResolveLimits());
  for (size_t i = 0; i < scenario.steps.size(); ++i) {
    EXPECT_EQ(Logits(*there, scenario, scenario.steps[i]), Logits(*here, scenario, scenario.steps[i])) << "step " << i;
  }
}

// Every allocation of every step fails once: the step leaves no trace, and the next attempt gives what it would have.
TEST_P(RemoteDecoders, SurviveMemoryThatRunsOutAnywhere) {
  const Scenario scenario = ReadScenario(Folder(GetParam()));
  const auto model = Load(GetParam(), "remote");
  const auto reference = model->CreateExecutor(model->ResolveLimits());
  const auto executor = model->CreateExecutor(model->ResolveLimits());
  int failures = 0;
  for (const ScenarioStep& step : scenario.steps) {
    for (;;) {
      g_remote_faults.allocation = 1;
      const ExecutionResult result = executor->Execute(step.Batch(scenario.columns));
      if (result.status == ExecutionStatus::kOk) break;
      ASSERT_LT(++failures, 100) << "no attempt succeeds";
      ASSERT_EQ(result.status, ExecutionStatus::kCapacityExceeded) << result.message;
      EXPECT_EQ(result.message, "the remote device has no memory left");
      EXPECT_TRUE(result.logits.empty());
      g_remote_faults.allocation = 2;  // one more than before is made
      executor->Execute(step.Batch(scenario.columns));
    }
    g_remote_faults.allocation = testing::RemoteFaults::kNever;
    EXPECT_EQ(Logits(*executor, scenario, step), Logits(*reference, scenario, step));
  }
  EXPECT_GE(failures, 5) << "the faults were not met";
}

// Both synchronisations of every step fail once, with half of their copies made.
TEST_P(RemoteDecoders, SurviveCopiesThatRanOutOfMemory) {
  const Scenario scenario = ReadScenario(Folder(GetParam()));
  const auto model = Load(GetParam(), "remote");
  const auto reference = model->CreateExecutor(model->ResolveLimits());
  const auto executor = model->CreateExecutor(model->ResolveLimits());
  g_remote_faults.code = StatusCode::kResourceExhausted;
  for (const ScenarioStep& step : scenario.steps) {
    for (const int which : {1, 2}) {
      g_remote_faults.synchronisation = which;
      const ExecutionResult result = executor->Execute(step.Batch(scenario.columns));
      EXPECT_EQ(result.status, ExecutionStatus::kCapacityExceeded);
      EXPECT_EQ(result.message, "the remote device failed to copy");
      EXPECT_TRUE(result.logits.empty());
    }
    EXPECT_EQ(Logits(*executor, scenario, step), Logits(*reference, scenario, step));
  }
}

INSTANTIATE_TEST_SUITE_P(Everything, RemoteDecoders,
                         ::testing::Values("separate", "packed_float16", "per_token", "per_row", "int8_cache",
                                           "bfloat16_cache"),
                         [](const auto& info) { return std::string(info.param); });

using RemoteDecoder = RemoteDecoders;

TEST_F(RemoteDecoder, ReportsADeviceThatFailedAsFatal) {
  const Scenario scenario = ReadScenario(Folder("separate"));
  const auto model = Load("separate", "remote");
  const auto executor = model->CreateExecutor(model->ResolveLimits());
  g_remote_faults.synchronisation = 1;
  const ExecutionResult result = executor->Execute(scenario.steps[0].Batch(scenario.columns));
  EXPECT_EQ(result.status, ExecutionStatus::kFatal);
  EXPECT_EQ(result.message, "the remote device failed to copy");
}

TEST_F(RemoteDecoder, SaysWhenItsCacheDoesNotFit) {
  const auto model = Load("separate", "remote");
  g_remote_faults.allocation = 1;
  try {
    model->CreateExecutor(model->ResolveLimits());
    FAIL() << "a cache was made of no memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kResourceExhausted);
    EXPECT_NE(error.message().find("the remote device has no memory left"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("engine.dynamic_batching.num_blocks"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace oga

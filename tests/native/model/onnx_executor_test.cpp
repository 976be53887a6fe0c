#include "model/onnx_executor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "base/check.h"
#include "base/error.h"
#include "model/onnx_model.h"
#include "native/model/scenario.h"
#include "support/allocation_hooks.h"
#include "support/test_data.h"

namespace oga {
namespace {

using testing::ReadScenario;
using testing::Scenario;
using testing::ScenarioStep;

std::string Folder(const std::string& model) { return test::DataPath("models/" + model); }

std::shared_ptr<const Model> Load(const std::string& model) {
  return LoadOnnxModel(GenaiConfig::FromFolder(Folder(model)));
}

// The largest difference of a step's logits from those at `expected`.
float LargestError(std::span<const float> logits, const float* expected) {
  float largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float error = std::fabs(logits[i] - expected[i]);
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  }
  return largest;
}

// A key that lies halfway between two numbers of a narrow cache may be rounded to the other one here: by 2^-11 of values
// near 3 in float16, through two layers. Over the other two, attention may round queries and weights by 2^-9 of theirs.
float Tolerance(const std::string& model) {
  if (model == "bfloat16_cache" || model == "int8_cache") return 6e-2f;
  return model == "packed_float16" ? 2e-2f : 2e-4f;
}

class DecoderScenarios : public test::WithRuntime, public ::testing::WithParamInterface<const char*> {};

// Ragged prefill and decode in one step, chunks, rows that change places, shuffled and copied blocks, a step that
// samples nothing; against a float64 computation of each sequence on its own.
TEST_P(DecoderScenarios, GiveTheLogitsOfEachSequenceOnItsOwn) {
  const Scenario scenario = ReadScenario(Folder(GetParam()));
  const auto model = Load(GetParam());
  SizedLimits sized = model->ResolveLimits();
  ASSERT_EQ(sized.limits.num_blocks, scenario.num_blocks);
  ASSERT_EQ(sized.limits.block_size_slots, scenario.block_size);
  const auto executor = model->CreateExecutor(std::move(sized));
  const size_t width = static_cast<size_t>(executor->vocab_size());
  const float* expected = scenario.expected.data();
  for (size_t i = 0; i < scenario.steps.size(); ++i) {
    const ScenarioStep& step = scenario.steps[i];
    const ExecutionResult result = executor->Execute(step.Batch(scenario.columns));
    ASSERT_EQ(result.status, ExecutionStatus::kOk) << "step " << i << ": " << result.message;
    ASSERT_EQ(result.logits.size(), step.indices.size() * width) << "step " << i;
    EXPECT_LT(LargestError(result.logits, expected), Tolerance(GetParam())) << "step " << i;
    expected += result.logits.size();
  }
  EXPECT_EQ(expected, scenario.expected.data() + scenario.expected.size());
}

INSTANTIATE_TEST_SUITE_P(Everything, DecoderScenarios,
                         ::testing::Values("separate", "packed_float16", "per_token", "per_row", "external",
                                           "int8_cache", "bfloat16_cache"),
                         [](const auto& info) { return std::string(info.param); });

class OnnxExecutors : public test::WithRuntime {
 protected:
  void SetUp() override {
    test::WithRuntime::SetUp();
    scenario_ = ReadScenario(Folder("separate"));
    model_ = Load("separate");
  }

  std::vector<float> Logits(ModelExecutor& executor, const ScenarioStep& step) {
    const ExecutionResult result = executor.Execute(step.Batch(scenario_.columns));
    EXPECT_EQ(result.status, ExecutionStatus::kOk) << result.message;
    return {result.logits.begin(), result.logits.end()};
  }

  std::string FatalMessage(ModelExecutor& executor, const ScenarioStep& step) {
    const ExecutionResult result = executor.Execute(step.Batch(scenario_.columns));
    EXPECT_EQ(result.status, ExecutionStatus::kFatal);
    EXPECT_TRUE(result.logits.empty());
    return result.message;
  }

  Scenario scenario_;
  std::shared_ptr<const Model> model_;
};

TEST_F(OnnxExecutors, OfOneModelKeepTheirCachesApart) {
  const auto first = model_->CreateExecutor(model_->ResolveLimits());
  const auto second = model_->CreateExecutor(model_->ResolveLimits());
  std::vector<std::vector<float>> alone;
  for (const ScenarioStep& step : scenario_.steps) alone.push_back(Logits(*first, step));
  const auto third = model_->CreateExecutor(model_->ResolveLimits());
  for (size_t i = 0; i < scenario_.steps.size(); ++i) {
    // The second runs one step behind the third, over the same block numbers.
    EXPECT_EQ(Logits(*third, scenario_.steps[i]), alone[i]) << i;
    if (i > 0) {
      EXPECT_EQ(Logits(*second, scenario_.steps[i - 1]), alone[i - 1]) << i;
    }
  }
}

TEST_F(OnnxExecutors, OutliveTheModel) {
  const auto executor = model_->CreateExecutor(model_->ResolveLimits());
  const std::vector<float> before = Logits(*executor, scenario_.steps[0]);
  model_.reset();
  EXPECT_EQ(Logits(*executor, scenario_.steps[0]), before);
}

TEST_F(OnnxExecutors, CountTheBytesOfABlock) {
  const auto executor = model_->CreateExecutor(model_->ResolveLimits());
  EXPECT_EQ(executor->block_bytes(), 2u * 2 * 4 * 2 * 8 * sizeof(float));
  EXPECT_EQ(executor->vocab_size(), 61);
}

TEST_F(OnnxExecutors, RefuseABatchWhosePartsDoNotFit) {
  const auto executor = model_->CreateExecutor(model_->ResolveLimits());
  const ScenarioStep good = scenario_.steps[0];
  const std::vector<float> expected = Logits(*executor, good);
  const auto refused = [&](auto change) {
    ScenarioStep step = good;
    change(step);
    const std::string message = FatalMessage(*executor, step);
    EXPECT_FALSE(message.empty());
    return message;
  };
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(refused([](auto& step) { step.cumulative.pop_back(); }), "2 row borders for 2 rows");
  has(refused([](auto& step) { step.cumulative.back() -= 1; }), "row borders from 0 to 8 for 9 tokens");
  has(refused([](auto& step) { step.cumulative[1] = 9; }), "row 1 has no tokens");
  has(refused([](auto& step) { step.past[1] = -1; }), "row 1 has a past of -1");
  has(refused([](auto& step) { step.table.pop_back(); }), "block table of 11 entries");
  has(refused([](auto& step) { step.indices = {9}; }), "logits index 9");
  has(refused([](auto& step) { step.indices = {5, 5}; }), "logits index 5 after 5");
  has(refused([](auto& step) { step.ids.clear(); }), "0 tokens");
  // What only the operators can tell: a block outside the pool, a position without a block, a token outside the
  // vocabulary.
  has(refused([](auto& step) { step.table[0] = 24; }), "PagedAttention node /layers.0/attn");
  has(refused([](auto& step) { step.table[0] = -1; }), "PagedAttention node /layers.0/attn");
  has(refused([](auto& step) { step.ids[3] = 61; }), "61");
  // And what is no matter of the batch's form but a promise that its maker broke.
  ScenarioStep broken = good;
  broken.copies = {{0, 24}};
  try {
    executor->Execute(broken.Batch(scenario_.columns));
    ADD_FAILURE() << "a copy to nowhere was made";
  } catch (const ContractError& error) {
    has(error.message(), "copy of block 0 to 24 of 24");
  }
  EXPECT_EQ(Logits(*executor, good), expected) << "a refused batch left a trace";
}

TEST_F(OnnxExecutors, ReportMemoryThatRunsOutAsCapacityAndRunTheStepLater) {
  const auto executor = model_->CreateExecutor(model_->ResolveLimits());
  testing::g_fail_aligned_allocations = true;
  const ExecutionResult result = executor->Execute(scenario_.steps[0].Batch(scenario_.columns));
  testing::g_fail_aligned_allocations = false;
  EXPECT_EQ(result.status, ExecutionStatus::kCapacityExceeded) << result.message;
  EXPECT_TRUE(result.logits.empty());
  const auto fresh = model_->CreateExecutor(model_->ResolveLimits());
  EXPECT_EQ(Logits(*executor, scenario_.steps[0]), Logits(*fresh, scenario_.steps[0]));
}

TEST_F(OnnxExecutors, OfAGraphWithOneRowOfLogitsPerRowRefuseOtherTokens) {
  const auto model = Load("per_row");
  const auto executor = model->CreateExecutor(model->ResolveLimits());
  ScenarioStep step = ReadScenario(Folder("per_row")).steps[0];
  step.indices = {3};
  const std::string message = FatalMessage(*executor, step);
  EXPECT_NE(message.find("logits of token 3 are wanted"), std::string::npos) << message;
  EXPECT_NE(message.find("here of token 6"), std::string::npos) << message;
}

TEST_F(OnnxExecutors, OfAGraphWithLogitsForEveryTokenGiveAnyOfThem) {
  const auto model = Load("per_token");
  const auto executor = model->CreateExecutor(model->ResolveLimits());
  ScenarioStep step = ReadScenario(Folder("per_token")).steps[0];
  step.indices = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> all = Logits(*executor, step);
  step.indices = {2, 5, 8};
  const std::vector<float> some = Logits(*executor, step);
  const size_t width = 61;
  ASSERT_EQ(some.size(), 3 * width);
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<float> wanted(all.begin() + step.indices[i] * width, all.begin() + (step.indices[i] + 1) * width);
    EXPECT_EQ(std::vector<float>(some.begin() + i * width, some.begin() + (i + 1) * width), wanted) << i;
  }
}

TEST_F(OnnxExecutors, SayWhenTheirCacheDoesNotFitInMemory) {
  SizedLimits sized = model_->ResolveLimits();
  sized.limits.num_blocks = 0x7fffffff;
  sized.limits.block_size_slots = 1 << 20;
  try {
    model_->CreateExecutor(std::move(sized));
    FAIL() << "a cache of 2^51 tokens was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kResourceExhausted);
    EXPECT_NE(error.message().find("engine.dynamic_batching.num_blocks"), std::string::npos) << error.message();
  }
}

class LedgersOfModels : public test::WithRuntime {
 protected:
  // A machine of 64 MiB, and a limit of so many bytes.
  static LedgerSources Sources(std::optional<uint64_t> stated) {
    return {stated,
            [] {
              return HostMemory{64 << 20, "the machine"};
            },
            [](uintptr_t, uint64_t) { return uint64_t{0}; }};
  }
  static std::shared_ptr<const Model> Load(const char* model, Ledger& ledger) {
    const char* const automatic = R"({"engine": {"dynamic_batching": {"num_blocks": null}}})";
    return std::make_shared<const OnnxModel>(GenaiConfig::FromFolder(Folder(model)).WithOverlay(automatic), ledger);
  }
};

TEST_F(LedgersOfModels, HoldWeightsCacheWorkspaceAndOutputsForAsLongAsTheyLive) {
  Ledger ledger(Sources({}));
  auto model = Load("separate", ledger);
  EXPECT_GT(ledger.Report().of(MemoryRole::kWeights).owned, 0u);
  EXPECT_EQ(ledger.Report().of(MemoryRole::kKv).owned, 0u);
  auto executor = model->CreateExecutor(model->ResolveLimits());
  const Scenario scenario = ReadScenario(Folder("separate"));
  EXPECT_EQ(ledger.Report().of(MemoryRole::kKv).owned, 16u * 16 * executor->block_bytes());
  EXPECT_EQ(ledger.Report().of(MemoryRole::kOutput).owned, 0u);
  ASSERT_EQ(executor->Execute(scenario.steps[0].Batch(scenario.columns)).status, ExecutionStatus::kOk);
  EXPECT_GT(ledger.Report().of(MemoryRole::kOutput).owned, 0u);
  EXPECT_GT(ledger.Report().of(MemoryRole::kWorkspace).owned, 0u);
  ledger.Validate();
  model.reset();
  EXPECT_GT(ledger.Report().of(MemoryRole::kWeights).owned, 0u) << "the executor still runs the session";
  executor.reset();
  EXPECT_EQ(ledger.Report().total().owned, 0u);
  ledger.Validate();
}

// Small weights lie in the graph's file, which the runtime copies: they stay beside what is packed of them.
TEST_F(LedgersOfModels, ChargeWeightsThatWerePacked) {
  Ledger ledger(Sources({}));
  const GenaiConfig config = GenaiConfig::FromFolder(Folder("separate"));
  const OnnxModel plain(config, ledger);
  const uint64_t files = std::filesystem::file_size(Folder("separate") + "/model.onnx");
  EXPECT_EQ(ledger.Report().of(MemoryRole::kWeights).owned, files);
  const char* const overlay = R"({"model": {"decoder": {"session_options": {"cpu_matmul": "bf16"}}}})";
  const OnnxModel packed(config.WithOverlay(overlay), ledger);
  EXPECT_GT(ledger.Report().of(MemoryRole::kWeights).owned, 2 * files);
  ledger.Validate();
}

TEST_F(LedgersOfModels, RefuseAModelBeyondTheLimit) {
  Ledger ledger(Sources(1000));
  try {
    Load("separate", ledger);
    FAIL() << "a model was loaded into 1000 bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(error.field(), "OGA_MEMORY_LIMIT");
  }
  EXPECT_EQ(ledger.Report().total().owned, 0u);
}

// The step fails as one that ran out of memory, so the engine tries a smaller one; nothing of it stays charged.
TEST_F(LedgersOfModels, ReportARefusedStepAsCapacity) {
  Ledger ledger(Sources(8 << 20));
  const auto model = Load("separate", ledger);
  const auto executor = model->CreateExecutor(model->ResolveLimits());
  const Scenario scenario = ReadScenario(Folder("separate"));
  const LedgerReport before = ledger.Report();
  Lease others = ledger.Claim(MemoryRole::kKv, *before.limit_bytes - before.total().owned, BeyondMemory::kRefuse);
  const ExecutionResult refused = executor->Execute(scenario.steps[0].Batch(scenario.columns));
  EXPECT_EQ(refused.status, ExecutionStatus::kCapacityExceeded);
  EXPECT_NE(refused.message.find("there is no memory for the outputs"), std::string::npos) << refused.message;
  ledger.Validate();
  others.Release();
  EXPECT_EQ(executor->Execute(scenario.steps[0].Batch(scenario.columns)).status, ExecutionStatus::kOk);
  ledger.Validate();
}

TEST_F(LedgersOfModels, ClaimNothingInASteadyStep) {
  int readings = 0;
  LedgerSources sources = Sources({});
  sources.read_host = [&readings] {
    ++readings;
    return HostMemory{64 << 20, "the machine"};
  };
  Ledger ledger(std::move(sources));
  const auto model = Load("separate", ledger);
  const auto executor = model->CreateExecutor(model->ResolveLimits());
  const Scenario scenario = ReadScenario(Folder("separate"));
  for (const ScenarioStep& step : scenario.steps) executor->Execute(step.Batch(scenario.columns));
  const uint64_t held = ledger.Report().total().owned;
  const int before = readings;
  for (const ScenarioStep& step : scenario.steps) executor->Execute(step.Batch(scenario.columns));
  EXPECT_EQ(ledger.Report().total().owned, held);
  EXPECT_EQ(readings, before);
}

// Threads that create engines at once: the sum stays within the limit, however they meet.
TEST_F(LedgersOfModels, ShareTheLimitBetweenEnginesCreatedAtOnce) {
  Ledger ledger(Sources(1 << 20));
  const auto model = Load("separate", ledger);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<ModelExecutor>> executors(3);
    std::vector<std::thread> threads;
    for (auto& executor : executors) {
      threads.emplace_back([&] { executor = model->CreateExecutor(model->ResolveLimits()); });
    }
    for (std::thread& thread : threads) thread.join();
    const LedgerReport report = ledger.Report();
    EXPECT_LE(report.total().owned, uint64_t{1} << 20);
    EXPECT_GT(report.of(MemoryRole::kKv).owned, 0u);
    ledger.Validate();
  }
  EXPECT_EQ(ledger.Report().of(MemoryRole::kKv).owned, 0u);
}

}  // namespace
}  // namespace oga

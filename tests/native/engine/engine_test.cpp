#include "engine/engine.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "native/engine/engine_harness.h"

namespace oga::testing {
namespace {

TEST(Engine, GeneratesWhatTheHistoryDetermines) {
  EngineHarness harness;
  const auto request = harness.Create();
  const auto prompt = EngineHarness::Prompt(5);
  EXPECT_EQ(EngineHarness::Begin(*request, prompt, 7), 1u);
  harness.Finish();
  EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(prompt, 7));
  ASSERT_EQ(harness.Of(request).endings.size(), 1u);
  const Event& end = harness.Of(request).endings[0];
  EXPECT_EQ(end.finish_reason, FinishReason::kMaxGeneratedTokens);
  EXPECT_EQ(end.flags, event_flags::kToken | event_flags::kTurnFinished);
  EXPECT_EQ(end.usage.prompt_tokens, 5u);
  EXPECT_EQ(end.usage.generated_tokens, 7u);
}

TEST(Engine, RunsManyRequestsTogetherAsIfEachWereAlone) {
  EngineHarness harness;
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 12; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(3 + i, i), 5 + i);
  }
  harness.Finish();
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(harness.Of(requests[i]).tokens, EngineHarness::Reference(EngineHarness::Prompt(3 + i, i), 5 + i)) << i;
  }
}

TEST(Engine, FinishesMoreWorkThanThePoolHoldsAndGivesEveryBlockBack) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 40;
  EngineHarness harness(limits);
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 32; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(4 + 3 * i % 60, i), 20);
  }
  harness.Finish();
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(harness.Of(requests[i]).tokens, EngineHarness::Reference(EngineHarness::Prompt(4 + 3 * i % 60, i), 20));
    EXPECT_EQ(harness.Of(requests[i]).endings.size(), 1u);
    requests[i]->Close();
  }
  EXPECT_GT(harness.engine->GetStatistics().preemptions + harness.engine->GetStatistics().dropped_residents, 0u);
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 40u);
}

TEST(Engine, ChunkingAndTokenBudgetsDoNotShowInTokens) {
  for (const uint32_t budget : {1u, 2u, 7u, 64u}) {
    for (const uint32_t chunk : {0u, 1u, 3u}) {
      EngineLimits limits = EngineHarness::SmallLimits();
      limits.max_scheduled_tokens = budget;
      limits.chunk_size_tokens = chunk;
      EngineHarness harness(limits);
      const auto a = harness.Create();
      const auto b = harness.Create();
      EngineHarness::Begin(*a, EngineHarness::Prompt(23), 6);
      EngineHarness::Begin(*b, EngineHarness::Prompt(9, 5), 6);
      harness.Finish();
      EXPECT_EQ(harness.Of(a).tokens, EngineHarness::Reference(EngineHarness::Prompt(23), 6));
      EXPECT_EQ(harness.Of(b).tokens, EngineHarness::Reference(EngineHarness::Prompt(9, 5), 6));
    }
  }
}

TEST(Engine, RetainsEventsThatDoNotFitAndNeverMixesSteps) {
  EngineHarness harness;
  for (int i = 0; i < 3; ++i) EngineHarness::Begin(*harness.Create(), EngineHarness::Prompt(2, i), 2);
  const auto buffer = harness.engine->CreateEventBuffer(2);
  harness.engine->Run(*buffer);
  EXPECT_EQ(buffer->size(), 2u);
  harness.engine->Run(*buffer);
  EXPECT_EQ(buffer->size(), 1u) << "the third event of the first step comes alone";
  EXPECT_EQ(harness.executor->executions, 1u);
}

TEST(Engine, DoesNothingForABufferOfCapacityZero) {
  EngineHarness harness;
  EngineHarness::Begin(*harness.Create(), EngineHarness::Prompt(2), 2);
  const auto empty = harness.engine->CreateEventBuffer(0);
  harness.engine->Run(*empty);
  EXPECT_EQ(harness.executor->executions, 0u);
  EXPECT_TRUE(harness.engine->HasPendingRequests());
}

TEST(Engine, RefusesABufferOfAnotherEngine) {
  EngineHarness one;
  EngineHarness other;
  EngineHarness::Begin(*one.Create(), EngineHarness::Prompt(2), 2);
  EXPECT_THROW(one.engine->Run(*other.buffer), Error);
  EXPECT_EQ(one.executor->executions, 0u);
}

TEST(Engine, RefusesEveryCallFromAnotherThread) {
  EngineHarness harness;
  const auto request = harness.Create();
  StatusCode code = StatusCode::kOk;
  std::thread([&] {
    try {
      harness.engine->Run(*harness.buffer);
    } catch (const Error& error) {
      code = error.code();
    }
    EXPECT_THROW(request->BeginTurn(EngineHarness::Prompt(2), nullptr), Error);
    EXPECT_THROW(request->CreateTurnOptions(), Error);
    EXPECT_THROW(request->Close(), Error);
    EXPECT_THROW(harness.engine->CreateRequest({}), Error);
  }).join();
  EXPECT_EQ(code, StatusCode::kInvalidState);
  EXPECT_EQ(request->state(), RequestState::kCreated);
}

TEST(Engine, OneBadRowFailsAloneAndOnlyRewindOrCloseRemain) {
  EngineHarness harness;
  const auto good = harness.Create();
  const auto bad = harness.Create();
  harness.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId> history) {
    if (history.front() == 50 && history.size() == 6) logits[3] = std::numeric_limits<float>::quiet_NaN();
  };
  EngineHarness::Begin(*good, EngineHarness::Prompt(4), 8);
  EngineHarness::Begin(*bad, EngineHarness::Prompt(4, 50), 8);
  harness.Finish();
  EXPECT_EQ(harness.Of(good).tokens, EngineHarness::Reference(EngineHarness::Prompt(4), 8));
  EXPECT_EQ(harness.Of(bad).tokens.size(), 2u);
  ASSERT_EQ(harness.Of(bad).endings.size(), 1u);
  EXPECT_EQ(harness.Of(bad).endings[0].finish_reason, FinishReason::kFailed);
  EXPECT_EQ(harness.Of(bad).endings[0].flags, event_flags::kTurnFinished | event_flags::kFailed);
  EXPECT_THROW(EngineHarness::Begin(*bad, EngineHarness::Prompt(1)), Error);
  bad->RewindToStartOfTurn(1);
  harness.executor->edit_logits = nullptr;
  EngineHarness::Begin(*bad, EngineHarness::Prompt(4, 50), 3);
  harness.Of(bad).tokens.clear();
  harness.Finish();
  EXPECT_EQ(harness.Of(bad).tokens, EngineHarness::Reference(EngineHarness::Prompt(4, 50), 3));
}

TEST(Engine, FatalFailureEndsEveryTurnOnceAndIsRepeatedAfterwards) {
  EngineHarness harness;
  const auto a = harness.Create();
  const auto b = harness.Create();
  EngineHarness::Begin(*a, EngineHarness::Prompt(3), 8);
  EngineHarness::Begin(*b, EngineHarness::Prompt(3), 8);
  harness.Step();
  harness.executor->outcomes.push_back({.status = ExecutionStatus::kFatal});
  harness.Finish();
  for (const auto& request : {a, b}) {
    ASSERT_EQ(harness.Of(request).endings.size(), 1u);
    EXPECT_EQ(harness.Of(request).endings[0].error_code, EventErrorCode::kEngineExecutionFailure);
    EXPECT_EQ(harness.Of(request).endings[0].usage.generated_tokens, 1u);
  }
  EXPECT_FALSE(harness.engine->HasPendingRequests());
  EXPECT_THROW(harness.engine->Run(*harness.buffer), Error);
  EXPECT_THROW(harness.engine->CreateRequest({}), Error);
  a->Close();
  EXPECT_EQ(harness.engine->GetCapabilities().max_batch_size, 8u);
}

TEST(Engine, RecoverableFailuresLeaveNoTrace) {
  using Outcome = ScriptedExecutor::Outcome;
  for (const ExecutionStatus status : {ExecutionStatus::kRetryable, ExecutionStatus::kCapacityExceeded}) {
    EngineHarness harness;
    const auto a = harness.Create();
    const auto b = harness.Create();
    EngineHarness::Begin(*a, EngineHarness::Prompt(9), 12);
    EngineHarness::Begin(*b, EngineHarness::Prompt(6, 2), 12);
    for (int i = 0; i < 4; ++i) {
      harness.executor->outcomes.push_back({.status = status, .writes_before_failure = static_cast<size_t>(3 * i)});
      harness.executor->outcomes.push_back(Outcome{});
    }
    harness.Finish();
    EXPECT_EQ(harness.Of(a).tokens, EngineHarness::Reference(EngineHarness::Prompt(9), 12));
    EXPECT_EQ(harness.Of(b).tokens, EngineHarness::Reference(EngineHarness::Prompt(6, 2), 12));
    ASSERT_EQ(harness.engine_events.size(), 4u);
    const bool retryable = status == ExecutionStatus::kRetryable;
    EXPECT_EQ(harness.engine_events[0].flags, retryable ? event_flags::kRetryable : event_flags::kCapacityBlocked);
    EXPECT_EQ(harness.engine_events[0].error_code,
              retryable ? EventErrorCode::kRetryableExecution : EventErrorCode::kExecutionCapacityExceeded);
  }
}

TEST(Engine, ShrinksItsStepsUntilTheModelHasRoomForThem) {
  EngineHarness harness;
  const auto small = harness.Create();
  const auto big = harness.Create();
  EngineHarness::Begin(*small, EngineHarness::Prompt(3), 20);
  harness.Step();
  EngineHarness::Begin(*big, EngineHarness::Prompt(60), 3);
  for (int i = 0; i < 3; ++i) harness.executor->outcomes.push_back({.status = ExecutionStatus::kCapacityExceeded});
  harness.Step();
  harness.Step();
  harness.Step();
  harness.Step();
  EXPECT_LE(harness.executor->last_tokens, 8u);
  harness.Finish();
  EXPECT_EQ(harness.Of(small).tokens, EngineHarness::Reference(EngineHarness::Prompt(3), 20));
  EXPECT_EQ(harness.Of(big).tokens, EngineHarness::Reference(EngineHarness::Prompt(60), 3));
}

TEST(Engine, WrongLogitsShapeIsFatal) {
  EngineHarness harness;
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 8);
  harness.executor->outcomes.push_back({.wrong_shape = true});
  harness.Finish();
  EXPECT_EQ(harness.Of(request).endings[0].error_code, EventErrorCode::kEngineExecutionFailure);
}

TEST(Engine, AbandonedRequestsAreReclaimedAtTheNextBoundary) {
  EngineHarness harness;
  auto request = harness.Create();
  request->AdoptHandle();
  EngineHarness::Begin(*request, EngineHarness::Prompt(9), 8);
  harness.Step();
  EXPECT_LT(harness.engine->GetStatistics().free_blocks, 64u);
  std::thread([&] { request->ReleaseHandle(); }).join();
  EXPECT_FALSE(harness.engine->HasPendingRequests());
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 64u);
  EXPECT_EQ(request->state(), RequestState::kClosed);
}

TEST(Engine, DestructionLeavesClosedTombstones) {
  EngineHarness harness;
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 8);
  const auto options = request->CreateTurnOptions();
  harness.engine->Shutdown();
  EXPECT_EQ(request->state(), RequestState::kClosed);
  EXPECT_THROW(request->BeginTurn(EngineHarness::Prompt(3), nullptr), Error);
  EXPECT_THROW(options->SetTopK(3), Error);
  request->Close();
  EXPECT_THROW(harness.engine->Run(*harness.buffer), Error);
}

TEST(Engine, EveryRequestProgressesWithinTheBoundBesideEndlessDecodes) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 1024;
  limits.context_length_tokens = 4000;
  EngineHarness harness(limits);
  std::vector<std::shared_ptr<Request>> endless;
  for (int i = 0; i < 8; ++i) {
    endless.push_back(harness.Create());
    EngineHarness::Begin(*endless.back(), EngineHarness::Prompt(3, i));
  }
  std::map<const Request*, uint64_t> last_progress;
  std::map<const Request*, uint64_t> position;
  std::vector<std::shared_ptr<Request>> prompts;
  uint64_t waiting = 0;
  for (uint64_t step = 1; step <= 400; ++step) {
    if (step % 5 == 0) {
      prompts.push_back(harness.Create());
      EngineHarness::Begin(*prompts.back(), EngineHarness::Prompt(4, static_cast<TokenId>(step % 50)), 4);
      last_progress[prompts.back().get()] = step - 1;
      position[prompts.back().get()] = waiting++;
    }
    for (const Event& event : harness.Step()) {
      if (event.request == nullptr) continue;
      const Request* request = event.request.get();
      const uint64_t bound = 32 * (1 + position[request] / 8);
      EXPECT_LE(step - last_progress[request], bound);
      last_progress[request] = step;
      if (event.flags & event_flags::kTurnFinished) --waiting;
    }
    for (const auto& request : endless) EXPECT_LE(step - last_progress[request.get()], 32u);
  }
  EXPECT_GT(harness.Of(prompts[0]).endings.size(), 0u);
}

TEST(Engine, PressureShowsInNoTokenAndEveryRequestFinishes) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 32;
  EngineHarness harness(limits);
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 16; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(8, i), 24);
  }
  harness.Finish();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(harness.Of(requests[i]).tokens, EngineHarness::Reference(EngineHarness::Prompt(8, i), 24)) << i;
  }
  EXPECT_GT(harness.engine->GetStatistics().preemptions, 0u);
}

}  // namespace
}  // namespace oga::testing

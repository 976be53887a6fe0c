// Steps that fail: what is recoverable leaves no trace, one bad row fails alone, and what is fatal is told once to each
// turn and repeated afterwards.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "native/engine/engine_state.h"

namespace oga::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// --- Recoverable ----------------------------------------------------------------------------------------------------

// Throws at one point, at one of the times it is passed.
struct OneFault {
  FaultPoint point = FaultPoint::kPlan;
  int countdown = 0;
  bool hit = false;

  void operator()(FaultPoint at) {
    if (at != point || countdown-- != 0) return;
    hit = true;
    throw std::bad_alloc();
  }
};

EngineLimits TightLimits() {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 14;
  limits.chunk_size_tokens = 5;
  return limits;
}

// Five requests through one engine with one fault; how many events told about it.
void LiveThrough(OneFault& fault, std::vector<Event>* engine_events, int* thrown) {
  EngineHarness harness(TightLimits(), EngineHarness::Next, [&fault](FaultPoint at) { fault(at); });
  Requests requests;
  for (int i = 0; i < 5; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(6 + i, i), 10);
  }
  while (harness.engine->HasPendingRequests()) {
    const uint64_t steps = harness.engine->GetStatistics().steps;
    try {
      harness.Step();
    } catch (const std::bad_alloc&) {
      ++*thrown;
      EXPECT_EQ(harness.engine->GetStatistics().steps, steps);
    }
    harness.engine->Validate();
  }
  *engine_events = harness.engine_events;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(harness.Of(requests[i]).tokens, EngineHarness::Reference(EngineHarness::Prompt(6 + i, i), 10));
    ASSERT_EQ(harness.Of(requests[i]).endings.size(), 1u);
    requests[i]->Close();
  }
  ASSERT_EQ(harness.engine->GetStatistics().free_blocks, 14u);
}

TEST(Failures, AnyPointOfAnyStepMayFailOnce) {
  for (const FaultPoint point : {FaultPoint::kReserveCache, FaultPoint::kCheckpoint, FaultPoint::kPack,
                                 FaultPoint::kSample, FaultPoint::kPrepare}) {
    int times = 0;
    for (;; ++times) {
      OneFault fault{point, times};
      std::vector<Event> events;
      int thrown = 0;
      LiveThrough(fault, &events, &thrown);
      ASSERT_FALSE(HasFatalFailure()) << static_cast<int>(point) << " time " << times;
      if (!fault.hit) break;
      EXPECT_EQ(thrown, 0);
      ASSERT_EQ(events.size(), 1u);
      EXPECT_EQ(events[0].flags, event_flags::kRetryable);
      EXPECT_EQ(events[0].error_code, EventErrorCode::kRetryableExecution);
      EXPECT_EQ(events[0].turn_id, 0u);
    }
    EXPECT_GT(times, 10) << "the point was passed in many steps";
  }
}

TEST(Failures, OfPlanningReachTheCallerAndTheNextRunGoesOn) {
  for (int time = 0; time < 20; ++time) {
    OneFault fault{FaultPoint::kPlan, time};
    std::vector<Event> events;
    int thrown = 0;
    LiveThrough(fault, &events, &thrown);
    ASSERT_FALSE(HasFatalFailure()) << time;
    EXPECT_TRUE(fault.hit);
    EXPECT_EQ(thrown, 1);
    EXPECT_TRUE(events.empty());
  }
}

// A first step in which `fail` throws at one point, and what its two turns were told.
struct Told {
  std::vector<Event> events;
  bool threw = false;
  bool is_healthy = true;
};

Told FailOnce(FaultPoint point, const std::function<void()>& fail) {
  bool failed = false;
  EngineHarness harness(EngineHarness::SmallLimits(), EngineHarness::Next, [&](FaultPoint at) {
    if (at != point || std::exchange(failed, true)) return;
    fail();
  });
  Requests requests{harness.Create(), harness.Create()};
  for (const auto& request : requests) EngineHarness::Begin(*request, EngineHarness::Prompt(4), 6);
  Told told;
  try {
    told.events = harness.Step();
  } catch (const std::exception&) {
    told.threw = true;
  }
  harness.Finish();
  try {
    harness.engine->Run(*harness.buffer);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kEngineUnhealthy);
    told.is_healthy = false;
  }
  for (const auto& request : requests) {
    const std::vector<TokenId> expected = EngineHarness::Reference(EngineHarness::Prompt(4), told.is_healthy ? 6 : 0);
    EXPECT_EQ(harness.Of(request).tokens, expected);
  }
  return told;
}

constexpr FaultPoint kPointsOfAStep[] = {FaultPoint::kPlan, FaultPoint::kReserveCache, FaultPoint::kCheckpoint,
                                         FaultPoint::kPack, FaultPoint::kSample,       FaultPoint::kPrepare};

TEST(Failures, ThatMemoryExplainsAreRolledBackWhereverTheyAre) {
  const std::function<void()> listed[] = {[] { throw std::bad_alloc(); }, [] { throw std::length_error("long"); },
                                          [] { Throw(StatusCode::kResourceExhausted, "no room"); },
                                          [] { Throw(StatusCode::kOutOfMemory, "no memory"); }};
  for (const FaultPoint point : kPointsOfAStep) {
    for (const auto& fail : listed) {
      const Told told = FailOnce(point, fail);
      EXPECT_TRUE(told.is_healthy);
      EXPECT_EQ(told.threw, point == FaultPoint::kPlan) << "of a plan the caller is told by the call";
      if (told.threw) continue;
      ASSERT_EQ(told.events.size(), 1u);
      EXPECT_EQ(told.events[0].flags, event_flags::kRetryable);
      EXPECT_EQ(told.events[0].error_code, EventErrorCode::kRetryableExecution);
      EXPECT_EQ(told.events[0].failure, FailureKind::kNone);
    }
  }
}

TEST(Failures, ThatNobodyCanNameEndTheEngineWhereverTheyAre) {
  const struct {
    std::function<void()> fail;
    FailureKind kind;
  } unlisted[] = {{[] { throw std::runtime_error("odd"); }, FailureKind::kExecution},
                  {[] { Throw(StatusCode::kInternal, "a bug"); }, FailureKind::kExecution},
                  {[] { Throw(StatusCode::kInvalidArgument, "a shape"); }, FailureKind::kExecution},
                  {[] { throw 7; }, FailureKind::kExecution},
                  {[] { throw ContractError("a promise"); }, FailureKind::kContract}};
  for (const FaultPoint point : kPointsOfAStep) {
    for (const auto& row : unlisted) {
      const Told told = FailOnce(point, row.fail);
      EXPECT_FALSE(told.is_healthy);
      EXPECT_FALSE(told.threw);
      ASSERT_EQ(told.events.size(), 2u);
      for (const Event& event : told.events) {
        EXPECT_EQ(event.flags, event_flags::kTurnFinished | event_flags::kFailed);
        EXPECT_EQ(event.finish_reason, FinishReason::kFailed);
        EXPECT_EQ(event.failure, row.kind);
        EXPECT_EQ(event.error_code, CodeOf(row.kind));
      }
    }
  }
}

TEST(Failures, OfMemoryInOneStepAfterAnotherDoubleOrLoseNoToken) {
  for (size_t step = 0; step < 16; ++step) {
    EngineHarness harness;
    const auto a = harness.Create();
    const auto b = harness.Create();
    const auto large = harness.Create();
    EngineHarness::Begin(*a, EngineHarness::Prompt(3), 14);
    EngineHarness::Begin(*b, EngineHarness::Prompt(4, 9), 14);
    harness.Step();
    EngineHarness::Begin(*large, EngineHarness::Prompt(60, 5), 4);
    for (size_t i = 0; i < step; ++i) harness.executor->outcomes.push_back({});
    for (int i = 0; i < 5; ++i) {
      harness.executor->outcomes.push_back(
          {.status = ExecutionStatus::kCapacityExceeded, .writes_before_failure = static_cast<size_t>(i)});
    }
    for (int i = 0; i < 8; ++i) harness.Step();
    large->Close();
    harness.Finish();
    EXPECT_EQ(harness.Of(a).tokens, EngineHarness::Reference(EngineHarness::Prompt(3), 14));
    EXPECT_EQ(harness.Of(b).tokens, EngineHarness::Reference(EngineHarness::Prompt(4, 9), 14));
    for (const Event& event : harness.engine_events) {
      EXPECT_EQ(event.flags, event_flags::kCapacityBlocked);
      EXPECT_EQ(event.error_code, EventErrorCode::kExecutionCapacityExceeded);
    }
  }
}

// --- One bad row ----------------------------------------------------------------------------------------------------

TEST(Failures, ARowOfUnusableLogitsFailsAlone) {
  struct Case {
    const char* what;
    void (*spoil)(std::span<float>);
    bool fails;
    FailureKind kind;
  };
  const std::vector<Case> cases{
      {"one NaN", [](std::span<float> l) { l[60] = std::nanf(""); }, true, FailureKind::kBadLogits},
      {"one +infinity", [](std::span<float> l) { l[7] = kInfinity; }, true, FailureKind::kBadLogits},
      {"nothing but -infinity", [](std::span<float> l) { std::fill(l.begin(), l.end(), -kInfinity); }, true,
       FailureKind::kBadLogits},
      {"nothing but masked tokens",
       [](std::span<float> l) { std::fill(l.begin(), l.end() - 2, -kInfinity), l[62] = l[63] = 1; }, true,
       FailureKind::kNoAllowedToken},
      {"a few of -infinity", [](std::span<float> l) { l[61] = l[62] = l[63] = -kInfinity; }, false, FailureKind::kNone},
  };
  for (const Case& spoiled : cases) {
    for (const bool sampled : {false, true}) {
      EngineHarness harness;
      harness.executor->edit_logits = [&](std::span<float> logits, std::span<const TokenId> history) {
        if (history.front() == 50 && history.size() >= 6) spoiled.spoil(logits);
      };
      const auto good = harness.Create();
      const auto bad = harness.Create();
      EngineHarness::Begin(*good, EngineHarness::Prompt(4), 8);
      const auto options = bad->CreateTurnOptions();
      options->SetDoSample(sampled);
      options->SetMinGeneratedTokens(8);
      options->SetMaxGeneratedTokens(8);
      bad->BeginTurn(EngineHarness::Prompt(4, 50), options.get());
      harness.Finish();
      EXPECT_EQ(harness.Of(good).tokens, EngineHarness::Reference(EngineHarness::Prompt(4), 8)) << spoiled.what;
      ASSERT_EQ(harness.Of(bad).endings.size(), 1u);
      const Event& end = harness.Of(bad).endings[0];
      EXPECT_EQ(end.finish_reason == FinishReason::kFailed, spoiled.fails) << spoiled.what;
      EXPECT_EQ(end.failure, spoiled.kind) << spoiled.what;
      EXPECT_EQ(end.error_code, CodeOf(spoiled.kind)) << spoiled.what;
      EXPECT_EQ(end.usage.generated_tokens, spoiled.fails ? 2u : 8u) << spoiled.what;
      EXPECT_EQ(harness.Of(bad).tokens.size(), end.usage.generated_tokens);
      EXPECT_TRUE(harness.engine_events.empty());
    }
  }
}

// --- Fatal ----------------------------------------------------------------------------------------------------------

TEST(Failures, AFatalOneIsToldToEveryTurnWithinTheCapacity) {
  const std::vector<ScriptedExecutor::Outcome> outcomes{
      {.status = ExecutionStatus::kFatal}, {.throws = true}, {.wrong_shape = true}};
  for (const auto& outcome : outcomes) {
    EngineHarness harness;
    Requests requests;
    for (int i = 0; i < 3; ++i) {
      requests.push_back(harness.Create());
      EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(2 + i, i), 8);
    }
    const auto idle = harness.Create();
    harness.executor->outcomes.push_back(outcome);
    const auto one = harness.engine->CreateEventBuffer(1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(harness.engine->HasPendingRequests());
      harness.engine->Run(*one);
      ASSERT_EQ(one->size(), 1u);
      const Event& event = *one->at(0);
      EXPECT_EQ(event.request, requests[i]);
      EXPECT_EQ(event.flags, event_flags::kTurnFinished | event_flags::kFailed);
      EXPECT_EQ(event.error_code, EventErrorCode::kEngineExecutionFailure);
      EXPECT_EQ(event.usage.prompt_tokens, static_cast<uint64_t>(2 + i));
      EXPECT_EQ(event.usage.generated_tokens, 0u);
    }
    EXPECT_FALSE(harness.engine->HasPendingRequests());
    EXPECT_EQ(harness.executor->executions, 1u);
  }
}

TEST(Failures, AfterAFatalOneProgressIsRefusedAndClosingWorks) {
  EngineHarness harness;
  const auto request = harness.Create();
  const auto complete = harness.Create();
  const auto created = harness.Create();
  EngineHarness::Begin(*complete, EngineHarness::Prompt(3), 1);
  harness.Finish();
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 8);
  harness.executor->outcomes.push_back({.status = ExecutionStatus::kFatal});
  const auto empty = harness.engine->CreateEventBuffer(0);
  harness.Step();
  const Requests requests{request, complete, created};
  const auto refused = [&](const char* what, const std::function<void()>& call) {
    ExpectRefused(harness, requests, StatusCode::kEngineUnhealthy, what, call);
  };
  refused("run", [&] { harness.engine->Run(*harness.buffer); });
  refused("run without capacity", [&] { harness.engine->Run(*empty); });
  refused("create", [&] { harness.Create(); });
  refused("begin", [&] { created->BeginTurn(EngineHarness::Prompt(2), nullptr); });
  refused("rewind", [&] { complete->RewindToStartOfTurn(1); });
  refused("fork", [&] { complete->Fork(); });
  EXPECT_FALSE(request->CancelTurn(1)) << "it has ended";
  EXPECT_EQ(harness.buffer->size(), 1u) << "the events stay readable";
  EXPECT_EQ(harness.engine->GetCapabilities().max_batch_size, 8u);
  for (const auto& open : requests) open->Close();
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 64u);
  EXPECT_EQ(harness.engine->GetStatistics().live_requests, 0u);
}

TEST(Failures, AFatalOneWithoutAnOpenTurnIsToldOnce) {
  EngineHarness harness;
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 1);
  harness.Finish();
  request->view().cached_tokens -= 1;  // an invariant of ours is broken
  const std::vector<Event> events = harness.Step();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].request, nullptr);
  EXPECT_EQ(events[0].flags, event_flags::kFailed);
  EXPECT_EQ(events[0].error_code, EventErrorCode::kEngineContractFailure);
  EXPECT_FALSE(harness.engine->HasPendingRequests());
  EXPECT_THROW(harness.Step(), Error);
}

TEST(Failures, AFatalOneKeepsWhatWasGeneratedBefore) {
  EngineHarness harness;
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 8);
  harness.Step();
  harness.Step();
  harness.executor->outcomes.push_back({.throws = true});
  harness.Finish();
  EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(EngineHarness::Prompt(3), 2));
  EXPECT_EQ(harness.Of(request).endings.at(0).usage.generated_tokens, 2u);
}

}  // namespace
}  // namespace oga::testing

// Who runs when, as a host sees it: the peer's timing where we keep it, and nobody blocked by who is done or too large.
#include <gtest/gtest.h>

#include "native/engine/engine_state.h"

namespace oga::testing {
namespace {

using Lengths = std::vector<size_t>;

Lengths RowLengths(const EngineHarness& harness) {
  Lengths lengths;
  for (const std::vector<TokenId>& row : harness.executor->last_row_tokens) lengths.push_back(row.size());
  return lengths;
}

Requests RequestsOf(const std::vector<Event>& events) {
  Requests requests;
  for (const Event& event : events) requests.push_back(event.request);
  return requests;
}

class Timing : public ::testing::Test {
 protected:
  void Start(const EngineLimits& limits, const std::vector<size_t>& prompts, uint64_t tokens) {
    harness.emplace(limits);
    harness->executor->record_rows = true;
    for (size_t i = 0; i < prompts.size(); ++i) {
      requests.push_back(harness->Create());
      EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(prompts[i], static_cast<TokenId>(i)), tokens);
    }
  }

  // One run: the tokens of each row, and whose events came.
  void ExpectStep(const Lengths& rows, const Requests& told) {
    EXPECT_EQ(RequestsOf(harness->Step()), told);
    EXPECT_EQ(RowLengths(*harness), rows);
  }

  EngineLimits limits = EngineHarness::SmallLimits();
  std::optional<EngineHarness> harness;
  Requests requests;
};

TEST_F(Timing, ABudgetGivesOneTokenToEachAndTheRestToTheFirst) {
  limits.max_scheduled_tokens = 6;
  Start(limits, {10, 3, 2}, 3);
  ExpectStep({4, 1, 1}, {});
  ExpectStep({4, 1, 1}, {requests[2]});
  ExpectStep({1, 2, 1}, {requests[2], requests[0], requests[1]});
}

TEST_F(Timing, TwoDecodesThatFillTheBudgetEndBeforeTheThirdStarts) {
  limits.max_scheduled_tokens = 2;
  Start(limits, {1, 1, 1}, 3);
  for (int step = 0; step < 3; ++step) ExpectStep({1, 1}, {requests[0], requests[1]});
  for (int step = 0; step < 3; ++step) ExpectStep({1}, {requests[2]});
}

TEST_F(Timing, ABudgetOfOneTokenTakesAPromptOneByOne) {
  limits.max_scheduled_tokens = 1;
  Start(limits, {3}, 1);
  ExpectStep({1}, {});
  ExpectStep({1}, {});
  ExpectStep({1}, {requests[0]});
}

TEST_F(Timing, ChunksLetAShortPromptPassALongOne) {
  limits.chunk_size_tokens = 4;
  Start(limits, {10, 3}, 3);
  ExpectStep({4, 3}, {requests[1]});
  ExpectStep({1, 4}, {requests[1]});
  ExpectStep({1, 2}, {requests[1], requests[0]});
}

TEST_F(Timing, AChunkOfTwoTakesAPromptOfThreeInTwoSteps) {
  limits.chunk_size_tokens = 2;
  Start(limits, {3}, 1);
  ExpectStep({2}, {});
  ExpectStep({1}, {requests[0]});
}

TEST_F(Timing, MoreRequestsThanRowsWaitForAFreeRow) {
  limits.max_batch_size = 2;
  Start(limits, {2, 2, 2}, 2);
  ExpectStep({2, 2}, {requests[0], requests[1]});
  ExpectStep({1, 1}, {requests[0], requests[1]});
  ExpectStep({2}, {requests[2]});
}

// --- Nobody is blocked ----------------------------------------------------------------------------------------------

TEST(Scheduling, CompletedRequestsThatStayOpenDoNotHoldTheBatch) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.max_batch_size = 2;
  limits.max_resident_requests = 2;
  EngineHarness harness(limits);
  Requests requests;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(3, i), 2);
  }
  harness.Finish();
  EXPECT_TRUE(harness.engine_events.empty());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(harness.Of(requests[i]).endings.size(), 1u) << i;
}

TEST(Scheduling, ACompletedRequestGivesItsBlocksAndRecomputesThemLater) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 4;
  EngineHarness harness(limits);
  const auto a = harness.Create();
  const auto b = harness.Create();
  EngineHarness::Begin(*a, EngineHarness::Prompt(8), 3);
  harness.Finish();
  EngineHarness::Begin(*b, EngineHarness::Prompt(12, 9), 2);
  harness.Finish();
  EXPECT_TRUE(harness.engine_events.empty());
  EXPECT_EQ(BlocksOf(harness, *a), 0u);
  EXPECT_EQ(harness.Of(b).tokens, EngineHarness::Reference(EngineHarness::Prompt(12, 9), 2));
  const auto history = Joined(TokensOf(*a), EngineHarness::Prompt(2));
  harness.Of(a).tokens.clear();
  EngineHarness::Begin(*a, EngineHarness::Prompt(2), 3);
  harness.Finish();
  EXPECT_EQ(harness.Of(a).tokens, EngineHarness::Reference(history, 3));
}

TEST(Scheduling, TheCacheUsedLongestAgoGoesFirst) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 9;
  EngineHarness harness(limits);
  const auto old = harness.Create();
  const auto recent = harness.Create();
  const auto next = harness.Create();
  for (const auto& request : {recent, old, recent}) {
    EngineHarness::Begin(*request, EngineHarness::Prompt(5), 1);
    harness.Finish();
  }
  EngineHarness::Begin(*next, EngineHarness::Prompt(20), 1);
  harness.Finish();
  EXPECT_EQ(BlocksOf(harness, *old), 0u);
  EXPECT_GT(BlocksOf(harness, *recent), 0u);
}

TEST(Scheduling, ASequenceMayFillThePoolAndOneMore) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 4;
  EngineHarness harness(limits);
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(12), 10);
  harness.Finish();
  EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(EngineHarness::Prompt(12), 5));
  EXPECT_EQ(harness.Of(request).endings.at(0).finish_reason, FinishReason::kMaxSessionTokens);
}

TEST(Scheduling, APromptThatNeverFitsIsRefusedAndTheOthersRun) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 16;
  EngineHarness harness(limits);
  const auto large = harness.Create();
  ExpectRefused(harness, {large}, StatusCode::kInvalidArgument, "100 tokens, 64 slots",
                [&] { large->BeginTurn(EngineHarness::Prompt(100), nullptr); });
  Requests small;
  for (int i = 0; i < 3; ++i) {
    small.push_back(harness.Create());
    EngineHarness::Begin(*small.back(), EngineHarness::Prompt(8, i), 4);
  }
  harness.Finish();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(harness.Of(small[i]).endings.size(), 1u);
}

TEST(Scheduling, WhatDoesNotFitNowIsPassedByWhatDoes) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 16;
  EngineHarness harness(limits);
  const auto resident = harness.Create();
  EngineHarness::Begin(*resident, EngineHarness::Prompt(38), 24);
  harness.Step();
  const auto large = harness.Create();
  const auto small = harness.Create();
  EngineHarness::Begin(*large, EngineHarness::Prompt(40, 3), 4);
  EngineHarness::Begin(*small, EngineHarness::Prompt(4, 5), 4);
  for (int step = 0; step < 4; ++step) harness.Step();
  EXPECT_EQ(harness.Of(small).endings.size(), 1u);
  EXPECT_TRUE(harness.Of(large).tokens.empty());
  resident->Close();
  EXPECT_EQ(harness.Step().size(), 1u) << "the large one runs as soon as there is room";
  harness.Finish();
  EXPECT_EQ(harness.Of(large).tokens, EngineHarness::Reference(EngineHarness::Prompt(40, 3), 4));
  EXPECT_TRUE(harness.engine_events.empty());
}

TEST(Scheduling, WhatDoesNotFitNowRunsWithinItsBoundAllTheSame) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 16;
  limits.max_wait_steps = 8;
  EngineHarness harness(limits);
  const auto resident = harness.Create();
  EngineHarness::Begin(*resident, EngineHarness::Prompt(24), 30);
  harness.Step();
  const auto large = harness.Create();
  EngineHarness::Begin(*large, EngineHarness::Prompt(48, 3), 2);
  for (int step = 0; step < 8; ++step) harness.Step();
  EXPECT_FALSE(harness.Of(large).tokens.empty()) << "it preempts the resident when it has waited long enough";
  harness.Finish();
  EXPECT_EQ(harness.Of(large).tokens, EngineHarness::Reference(EngineHarness::Prompt(48, 3), 2));
  EXPECT_EQ(harness.Of(resident).tokens, EngineHarness::Reference(EngineHarness::Prompt(24), 30));
}

TEST(Scheduling, HigherPrioritiesAreAdmittedFirst) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.max_batch_size = 1;
  EngineHarness harness(limits);
  const auto low = harness.Create(0, -1);
  const auto middle = harness.Create(0, 0);
  const auto high = harness.Create(0, 3);
  for (const auto& request : {low, middle, high}) EngineHarness::Begin(*request, EngineHarness::Prompt(3), 2);
  Requests order;
  while (harness.engine->HasPendingRequests()) {
    for (const Event& event : harness.Step()) {
      if (event.flags & event_flags::kTurnFinished) order.push_back(event.request);
    }
  }
  EXPECT_EQ(order, (Requests{high, middle, low}));
}

TEST(Scheduling, PriorityDecidesWhoGivesWay) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 10;
  EngineHarness harness(limits);
  const auto low = harness.Create(0, -1);
  const auto high = harness.Create(0, 1);
  EngineHarness::Begin(*low, EngineHarness::Prompt(12), 24);
  EngineHarness::Begin(*high, EngineHarness::Prompt(12, 9), 24);
  while (harness.engine->GetStatistics().preemptions == 0) harness.Step();
  EXPECT_EQ(BlocksOf(harness, *low), 0u) << "though it came first";
  harness.Finish();
  EXPECT_EQ(harness.Of(low).tokens, EngineHarness::Reference(EngineHarness::Prompt(12), 24));
  EXPECT_EQ(harness.Of(high).tokens, EngineHarness::Reference(EngineHarness::Prompt(12, 9), 24));
}

TEST(Scheduling, WhoGaveWayIsNotTakenBackInTheSameStep) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 16;
  limits.max_wait_steps = 8;
  EngineHarness harness(limits);
  const auto request = harness.Create();
  const auto large = harness.Create();
  const auto small = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(13), 1);
  harness.Finish();
  EngineHarness::Begin(*large, EngineHarness::Prompt(28, 9), 30);
  EngineHarness::Begin(*small, EngineHarness::Prompt(3, 5), 30);
  harness.Step();
  EngineHarness::Begin(*request, EngineHarness::Prompt(26), 2);
  while (harness.engine->GetStatistics().preemptions == 0) harness.Step();
  // The small one went first and did not free enough, the large one freed more than enough for both.
  EXPECT_EQ(harness.engine->GetStatistics().preemptions, 2u);
  EXPECT_EQ(harness.executor->last_rows, 1u);
  EXPECT_EQ(BlocksOf(harness, *small), 0u);
  harness.Step();
  EXPECT_GT(BlocksOf(harness, *small), 0u) << "it is back one step later";
  harness.Finish();
  EXPECT_EQ(harness.Of(small).tokens, EngineHarness::Reference(EngineHarness::Prompt(3, 5), 30));
  EXPECT_EQ(harness.Of(large).tokens, EngineHarness::Reference(EngineHarness::Prompt(28, 9), 30));
}

// What each request was told, without regard to when.
std::vector<std::vector<std::string>> Stories(const EngineLimits& limits, uint64_t* preemptions) {
  EngineHarness harness(limits);
  Requests requests;
  std::map<RequestId, std::vector<std::string>> stories;
  for (int i = 0; i < 10; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(6 + i, i), 14 + i);
  }
  while (harness.engine->HasPendingRequests()) {
    for (const Event& event : harness.Step()) {
      stories[event.request->id()].push_back(Message(
          event.turn_id, ' ', event.flags, ' ', event.token, ' ', static_cast<uint32_t>(event.finish_reason), ' ',
          event.usage.prompt_tokens, ' ', event.usage.generated_tokens, ' ', event.usage.cached_prompt_tokens));
    }
  }
  *preemptions = harness.engine->GetStatistics().preemptions;
  std::vector<std::vector<std::string>> told;
  for (const auto& request : requests) told.push_back(stories[request->id()]);
  return told;
}

TEST(Scheduling, PreemptionShowsInNoEvent) {
  EngineLimits limits = EngineHarness::SmallLimits();
  uint64_t preemptions = 0;
  const auto expected = Stories(limits, &preemptions);
  EXPECT_EQ(preemptions, 0u);
  limits.num_blocks = 12;
  EXPECT_EQ(Stories(limits, &preemptions), expected);
  EXPECT_GT(preemptions, 0u);
}

// A queue many times longer than the batch is served mostly in its order: were all of it urgent at once, each step would
// throw away the caches of the one before.
TEST(Scheduling, ALongQueueCostsLittleRecomputation) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 8 * 16;
  limits.max_wait_steps = 128;  // half of it is more than a turn takes
  EngineHarness harness(limits);
  std::vector<std::shared_ptr<Request>> requests;
  constexpr uint64_t kRequests = 128, kPrompt = 8, kOutput = 40;
  for (uint64_t i = 0; i < kRequests; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(kPrompt, static_cast<TokenId>(i % 50)), kOutput);
  }
  harness.Finish();
  const uint64_t needed = kRequests * (kPrompt + kOutput - 1);
  EXPECT_LT(harness.engine->GetStatistics().scheduled_tokens, needed * 11 / 10);
}

// BeginTurn refuses what cannot fit, so a turn that outgrew the pool has to be made up.
TEST(Scheduling, ATurnThatOutgrewThePoolFailsAlone) {
  std::shared_ptr<Request> large;
  const auto hook = [&large](FaultPoint point) {
    if (point == FaultPoint::kReserveCache && large != nullptr) large->view().sequence_tokens = 5;
  };
  EngineHarness harness(EngineHarness::SmallLimits(), EngineHarness::Next, hook);
  large = harness.Create();
  const auto other = harness.Create();
  EngineHarness::Begin(*large, EngineHarness::Prompt(5), 4);
  EngineHarness::Begin(*other, EngineHarness::Prompt(5, 9), 4);
  large->view().sequence_tokens = 100000;
  large->view().last_progress_step = 0;
  const std::vector<Event> events = harness.Step();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].request, large);
  EXPECT_EQ(events[0].flags, event_flags::kTurnFinished | event_flags::kFailed);
  EXPECT_EQ(events[0].error_code, EventErrorCode::kRequestUnserviceable);
  EXPECT_EQ(events[0].failure, FailureKind::kNeverFits);
  harness.Finish();
  EXPECT_EQ(harness.Of(other).tokens, EngineHarness::Reference(EngineHarness::Prompt(5, 9), 4));
  EXPECT_THROW(large->BeginTurn(EngineHarness::Prompt(1), nullptr), Error);
  large->RewindToStartOfTurn(1);
  EngineHarness::Begin(*large, EngineHarness::Prompt(5), 4);
  harness.Finish();
  EXPECT_EQ(harness.Of(large).tokens, EngineHarness::Reference(EngineHarness::Prompt(5), 4));
}

}  // namespace
}  // namespace oga::testing

// Cancelling a turn in every state, and what follows: one ending, kept tokens, and a continuation that equals a fresh
// run.
#include <gtest/gtest.h>

#include "native/engine/engine_state.h"

namespace oga::testing {
namespace {

// A request alone in an engine, brought to some state; `generated` tokens of its first turn were taken.
struct Situation {
  const char* what;
  size_t prompt_tokens;
  void (*reach)(EngineHarness&, Request&);
  size_t filled_slots;
  size_t generated;
};

const std::vector<Situation>& LiveSituations() {
  static const std::vector<Situation> situations{
      {"queued", 10, [](EngineHarness&, Request&) {}, 0, 0},
      {"inside its first chunks", 40, [](EngineHarness& h, Request&) { h.Step(), h.Step(); }, 16, 0},
      {"one token before its first", 41,
       [](EngineHarness& h, Request&) {
         for (int i = 0; i < 5; ++i) h.Step();
       },
       40, 0},
      {"after its first token", 8, [](EngineHarness& h, Request&) { h.Step(); }, 8, 1},
      {"decoding", 10,
       [](EngineHarness& h, Request&) {
         for (int i = 0; i < 4; ++i) h.Step();
       },
       12, 3},
      {"at a block border", 6,
       [](EngineHarness& h, Request&) {
         for (int i = 0; i < 3; ++i) h.Step();
       },
       8, 3},
  };
  return situations;
}

EngineLimits ChunkedLimits() {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.chunk_size_tokens = 8;
  return limits;
}

TEST(CancelTurn, EndsALiveTurnOnceWhereverItStands) {
  for (const Situation& situation : LiveSituations()) {
    EngineHarness harness(ChunkedLimits());
    const auto request = harness.Create();
    EngineHarness::Begin(*request, EngineHarness::Prompt(situation.prompt_tokens), 30);
    situation.reach(harness, *request);
    const size_t executions = harness.executor->executions;
    EXPECT_TRUE(request->CancelTurn(1)) << situation.what;
    EXPECT_FALSE(request->CancelTurn(1)) << "a second time";
    EXPECT_EQ(request->state(), RequestState::kTurnComplete);
    EXPECT_TRUE(harness.engine->HasPendingRequests()) << "there is an ending to take";
    EXPECT_EQ(BlocksOf(harness, *request), (situation.filled_slots + 3) / 4) << "blocks set aside are given up";

    const std::vector<Event> events = harness.Step();
    ASSERT_EQ(events.size(), 1u) << situation.what;
    EXPECT_EQ(harness.executor->executions, executions) << "handing out the ending runs nothing";
    EXPECT_EQ(events[0].flags, event_flags::kTurnFinished);
    EXPECT_EQ(events[0].finish_reason, FinishReason::kCancelled);
    EXPECT_EQ(events[0].error_code, EventErrorCode::kNone);
    EXPECT_EQ(events[0].turn_id, 1u);
    EXPECT_EQ(events[0].token, 0);
    EXPECT_EQ(events[0].usage.prompt_tokens, situation.prompt_tokens);
    EXPECT_EQ(events[0].usage.generated_tokens, situation.generated);
    EXPECT_FALSE(harness.engine->HasPendingRequests());
  }
}

TEST(CancelTurn, AContinuationEqualsAFreshRunOverAllThatWasKept) {
  for (const Situation& situation : LiveSituations()) {
    for (const size_t input_tokens : {1u, 5u, 20u}) {
      EngineHarness harness(ChunkedLimits());
      const auto request = harness.Create();
      const auto prompt = EngineHarness::Prompt(situation.prompt_tokens);
      EngineHarness::Begin(*request, prompt, 30);
      situation.reach(harness, *request);
      request->CancelTurn(1);
      harness.Finish();
      const auto kept = Joined(prompt, EngineHarness::Reference(prompt, situation.generated));
      EXPECT_EQ(TokensOf(*request), kept) << situation.what;

      harness.Of(request).tokens.clear();
      const auto input = EngineHarness::Prompt(input_tokens, 33);
      EXPECT_EQ(EngineHarness::Begin(*request, input, 6), 2u);
      harness.Finish();
      EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(Joined(kept, input), 6)) << situation.what;
      const Event& end = harness.Of(request).endings.at(1);
      EXPECT_EQ(end.usage.prompt_tokens, input_tokens) << "the usage counts the new input only";
      EXPECT_EQ(end.usage.generated_tokens, 6u);
      EXPECT_EQ(end.turn_id, 2u);
    }
  }
}

TEST(CancelTurn, JoinsATokenThatWasNotTakenYet) {
  EngineHarness harness;
  const auto a = harness.Create();
  const auto b = harness.Create();
  const auto one = harness.engine->CreateEventBuffer(1);
  EngineHarness::Begin(*a, EngineHarness::Prompt(3), 8);
  EngineHarness::Begin(*b, EngineHarness::Prompt(3, 9), 8);
  harness.engine->Run(*one);
  EXPECT_TRUE(b->CancelTurn(1)) << "its token waits to be taken";
  const std::vector<Event> events = harness.Step();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].request, b);
  EXPECT_EQ(events[0].flags, event_flags::kToken | event_flags::kTurnFinished);
  EXPECT_EQ(events[0].finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(events[0].token, EngineHarness::Reference(EngineHarness::Prompt(3, 9), 1)[0]);
  EXPECT_EQ(events[0].usage.generated_tokens, 1u);
}

TEST(CancelTurn, ComesTooLateOnceTheTurnHasEnded) {
  EngineHarness harness;
  const auto a = harness.Create();
  const auto b = harness.Create();
  const auto one = harness.engine->CreateEventBuffer(1);
  EngineHarness::Begin(*a, EngineHarness::Prompt(3), 1);
  EngineHarness::Begin(*b, EngineHarness::Prompt(3, 9), 1);
  harness.engine->Run(*one);
  EXPECT_FALSE(b->CancelTurn(1)) << "it ended in that step, though nobody was told yet";
  const std::vector<Event> events = harness.Step();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].finish_reason, FinishReason::kMaxGeneratedTokens);
}

TEST(CancelTurn, IgnoresIdsOfOtherTurns) {
  EngineHarness harness;
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 1);
  harness.Finish();
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 4);
  harness.Step();
  const std::string before = StateOf(harness, {request});
  for (const TurnId id : {TurnId{0}, TurnId{1}, TurnId{3}, ~TurnId{0}}) EXPECT_FALSE(request->CancelTurn(id)) << id;
  EXPECT_EQ(StateOf(harness, {request}), before);
  harness.Finish();
  EXPECT_FALSE(request->CancelTurn(2));
  EXPECT_EQ(harness.Of(request).endings.size(), 2u);
}

TEST(CancelTurn, IsRefusedBeforeTheFirstTurn) {
  EngineHarness harness;
  const auto request = harness.Create();
  for (const TurnId id : {TurnId{0}, TurnId{1}}) {
    ExpectRefused(harness, {request}, StatusCode::kInvalidState, "no turn yet", [&] { request->CancelTurn(id); });
  }
}

TEST(CancelTurn, LeavesTheOthersAsTheyWouldBe) {
  EngineHarness harness(ChunkedLimits());
  Requests requests;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(5 + 4 * i, i), 12);
  }
  for (int i = 0; i < 6; i += 2) {
    harness.Step();
    EXPECT_TRUE(requests[i]->CancelTurn(1));
  }
  harness.Finish();
  for (int i = 0; i < 6; ++i) {
    const std::vector<TokenId>& tokens = harness.Of(requests[i]).tokens;
    const auto expected =
        EngineHarness::Reference(EngineHarness::Prompt(5 + 4 * i, i), i % 2 == 0 ? tokens.size() : 12);
    EXPECT_EQ(tokens, expected) << i;
    EXPECT_EQ(harness.Of(requests[i]).endings.size(), 1u) << i;
  }
}

TEST(CancelTurn, EndsATurnWhoseCacheWasTaken) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 10;
  EngineHarness harness(limits);
  const auto older = harness.Create();
  const auto younger = harness.Create();
  EngineHarness::Begin(*older, EngineHarness::Prompt(12), 28);
  EngineHarness::Begin(*younger, EngineHarness::Prompt(12, 9), 28);
  while (harness.engine->GetStatistics().preemptions == 0) harness.Step();
  ASSERT_EQ(BlocksOf(harness, *younger), 0u);
  const size_t generated = harness.Of(younger).tokens.size();
  EXPECT_TRUE(younger->CancelTurn(1));
  harness.Finish();
  ASSERT_EQ(harness.Of(younger).endings.size(), 1u);
  EXPECT_EQ(harness.Of(younger).endings[0].usage.generated_tokens, generated);
  harness.Of(younger).tokens.clear();
  EngineHarness::Begin(*younger, EngineHarness::Prompt(2), 3);
  harness.Finish();
  auto history = EngineHarness::Prompt(12, 9);
  history = Joined(history, EngineHarness::Reference(history, generated));
  EXPECT_EQ(harness.Of(younger).tokens, EngineHarness::Reference(Joined(history, EngineHarness::Prompt(2)), 3));
}

TEST(CancelTurn, TurnsCancelledInsideTheirPromptsDoNotLockEachOtherOut) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 10;
  limits.chunk_size_tokens = 12;
  EngineHarness harness(limits);
  const auto a = harness.Create();
  const auto b = harness.Create();
  EngineHarness::Begin(*a, EngineHarness::Prompt(16), 1);
  EngineHarness::Begin(*b, EngineHarness::Prompt(16, 3), 1);
  harness.Step();
  a->CancelTurn(1);
  b->CancelTurn(1);
  harness.Finish();
  ASSERT_EQ(BlocksOf(harness, *a) + BlocksOf(harness, *b), 6u);
  // Each holds three blocks without having produced a token, and wants six of the four that are left.
  EngineHarness::Begin(*a, EngineHarness::Prompt(20), 2);
  EngineHarness::Begin(*b, EngineHarness::Prompt(20, 3), 2);
  harness.Finish(100);
  const auto history = [](TokenId first) {
    return Joined(EngineHarness::Prompt(16, first), EngineHarness::Prompt(20, first));
  };
  EXPECT_EQ(harness.Of(a).tokens, EngineHarness::Reference(history(1), 2));
  EXPECT_EQ(harness.Of(b).tokens, EngineHarness::Reference(history(3), 2));
}

TEST(CancelTurn, TwentyQueuedOnesThatAreCancelledClosedOrAbandonedLeaveNothing) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.max_batch_size = 2;
  EngineHarness harness(limits);
  const auto first = harness.Create();
  const auto second = harness.Create();
  EngineHarness::Begin(*first, EngineHarness::Prompt(4), 60);
  EngineHarness::Begin(*second, EngineHarness::Prompt(4, 9), 60);
  harness.Step();
  Requests queued;
  for (int i = 0; i < 20; ++i) {
    queued.push_back(harness.Create());
    if (i % 3 == 2) queued.back()->AdoptHandle();
    EngineHarness::Begin(*queued.back(), EngineHarness::Prompt(10, i), 5);
  }
  for (int i = 0; i < 20; ++i) {
    if (i % 3 == 0) {
      EXPECT_TRUE(queued[i]->CancelTurn(1));
    } else if (i % 3 == 1) {
      queued[i]->Close();
    } else {
      queued[i]->ReleaseHandle();
    }
  }
  harness.Finish();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(harness.Of(queued[i]).endings.size(), i % 3 == 0 ? 1u : 0u) << i;
    EXPECT_TRUE(harness.Of(queued[i]).tokens.empty());
    EXPECT_EQ(queued[i]->state(), i % 3 == 0 ? RequestState::kTurnComplete : RequestState::kClosed);
  }
  EXPECT_EQ(harness.Of(first).tokens, EngineHarness::Reference(EngineHarness::Prompt(4), 60));
  first->Close();
  second->Close();
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 64u);
  EXPECT_EQ(harness.engine->GetStatistics().live_requests, 7u) << "the cancelled ones are still open";
  const auto whole = harness.Create();
  EngineHarness::Begin(*whole, EngineHarness::Prompt(127), 0);
  harness.Finish();
  EXPECT_EQ(harness.Of(whole).tokens, EngineHarness::Reference(EngineHarness::Prompt(127), 1));
}

}  // namespace
}  // namespace oga::testing

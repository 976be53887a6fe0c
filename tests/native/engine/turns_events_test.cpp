// Events: one ending per turn, the order of a step, buffers of any capacity, and what closing and abandoning take away.
#include <gtest/gtest.h>

#include <thread>

#include "native/engine/engine_state.h"

namespace oga::testing {
namespace {

// An event as comparable values. Requests are named by their id.
struct Told {
  RequestId request;
  TurnId turn;
  uint32_t flags;
  TokenId token;
  FinishReason reason;
  uint64_t prompt, generated;
  bool operator==(const Told&) const = default;
};

Told Tell(const Event& event) {
  return {event.request->id(),
          event.turn_id,
          event.flags,
          event.token,
          event.finish_reason,
          event.usage.prompt_tokens,
          event.usage.generated_tokens};
}

// Three requests of different lengths, two of which end in the same step.
void BeginThree(EngineHarness& harness, Requests& requests) {
  for (int i = 0; i < 3; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(3 + i, i), i == 0 ? 4 : 6);
  }
}

TEST(Events, OneStepPerRunInTheOrderOfTheCalls) {
  EngineHarness harness;
  Requests requests;
  BeginThree(harness, requests);
  for (int step = 1; step <= 4; ++step) {
    const std::vector<Event> events = harness.Step();
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(harness.executor->executions, static_cast<size_t>(step));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(events[i].request, requests[i]);
  }
}

TEST(Events, AnyCapacityTellsTheSameStory) {
  std::vector<Told> story;
  size_t executions = 0;
  for (const size_t capacity : {64u, 1u, 2u, 3u, 4u, 7u}) {
    EngineHarness harness;
    Requests requests;
    BeginThree(harness, requests);
    const auto buffer = harness.engine->CreateEventBuffer(capacity);
    const auto none = harness.engine->CreateEventBuffer(0);
    std::vector<Told> told;
    while (harness.engine->HasPendingRequests()) {
      harness.engine->Run(*none);
      const size_t before = harness.executor->executions;
      harness.engine->Run(*buffer);
      ASSERT_LE(buffer->size(), capacity);
      ASSERT_LE(harness.executor->executions, before + 1);
      for (size_t i = 0; i < buffer->size(); ++i) told.push_back(Tell(*buffer->at(i)));
    }
    if (story.empty()) {
      story = told;
      executions = harness.executor->executions;
    }
    EXPECT_EQ(told, story) << "capacity " << capacity;
    EXPECT_EQ(harness.executor->executions, executions) << "capacity " << capacity;
  }
  EXPECT_EQ(story.size(), 4u + 6 + 6);
}

TEST(Events, OfOneStepAreNeverMixedWithThoseOfTheNext) {
  EngineHarness harness;
  Requests requests;
  BeginThree(harness, requests);
  const auto two = harness.engine->CreateEventBuffer(2);
  for (int step = 1; step <= 3; ++step) {
    harness.engine->Run(*two);
    EXPECT_EQ(two->size(), 2u);
    harness.engine->Run(*two);
    EXPECT_EQ(two->size(), 1u);
    EXPECT_EQ(harness.executor->executions, static_cast<size_t>(step));
  }
}

TEST(Events, CarryUsageAndReasonAtTheEndOnly) {
  EngineHarness harness;
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 3);
  for (int step = 0; step < 2; ++step) {
    const std::vector<Event> events = harness.Step();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].flags, event_flags::kToken);
    EXPECT_EQ(events[0].finish_reason, FinishReason::kNone);
    EXPECT_EQ(events[0].usage.prompt_tokens, 0u);
    EXPECT_EQ(events[0].usage.generated_tokens, 0u);
    EXPECT_EQ(events[0].matched_stop_string_index, -1);
  }
  const std::vector<Event> last = harness.Step();
  ASSERT_EQ(last.size(), 1u) << "the last token and the ending are one event";
  EXPECT_EQ(last[0].flags, event_flags::kToken | event_flags::kTurnFinished);
  EXPECT_EQ(last[0].finish_reason, FinishReason::kMaxGeneratedTokens);
  EXPECT_EQ(last[0].usage.prompt_tokens, 3u);
  EXPECT_EQ(last[0].usage.generated_tokens, 3u);
  EXPECT_EQ(last[0].usage.cached_prompt_tokens, 0u);
}

TEST(Events, DecodesComeBeforePrompts) {
  EngineHarness harness;
  const auto prompt = harness.Create();
  const auto decode = harness.Create();
  EngineHarness::Begin(*decode, EngineHarness::Prompt(2), 9);
  harness.Step();
  EngineHarness::Begin(*prompt, EngineHarness::Prompt(2), 9);
  const std::vector<Event> events = harness.Step();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].request, decode);
  EXPECT_EQ(events[1].request, prompt);
}

TEST(Events, APartOfAPromptHasNoneAndStaysPending) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.chunk_size_tokens = 4;
  EngineHarness harness(limits);
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(10), 2);
  for (int chunk = 0; chunk < 2; ++chunk) {
    EXPECT_TRUE(harness.Step().empty());
    EXPECT_TRUE(harness.engine->HasPendingRequests());
    EXPECT_EQ(request->state(), RequestState::kActive);
  }
  EXPECT_EQ(harness.Step().size(), 1u);
}

TEST(Events, AnIdleEngineHasNone) {
  EngineHarness harness;
  const auto request = harness.Create();
  EXPECT_FALSE(harness.engine->HasPendingRequests());
  EXPECT_TRUE(harness.Step().empty());
  EngineHarness::Begin(*request, EngineHarness::Prompt(2), 1);
  harness.Finish();
  EXPECT_TRUE(harness.Step().empty());
  EXPECT_FALSE(harness.engine->HasPendingRequests());
  EXPECT_EQ(harness.executor->executions, 1u);
}

TEST(Events, EveryEosIdEndsATurnAndIsNeitherToldNorKept) {
  for (const TokenId eos : {EngineHarness::kEos, EngineHarness::kEos - 1}) {
    const auto next = [eos](std::span<const TokenId> history) {
      return history.size() == 6 ? eos : EngineHarness::Next(history);
    };
    EngineHarness harness(EngineHarness::SmallLimits(), next);
    const auto request = harness.Create();
    EngineHarness::Begin(*request, EngineHarness::Prompt(4), 9);
    harness.Step();
    harness.Step();
    const std::vector<Event> events = harness.Step();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].flags, event_flags::kTurnFinished);
    EXPECT_EQ(events[0].token, 0);
    EXPECT_EQ(events[0].finish_reason, FinishReason::kEos);
    EXPECT_EQ(events[0].usage.generated_tokens, 2u);
    EXPECT_EQ(request->tokens().size(), 6u);
    // The next fragment brings its own turn boundary.
    const auto history = Joined(TokensOf(*request), {eos, 5});
    harness.Of(request).tokens.clear();
    EngineHarness::Begin(*request, std::vector<TokenId>{eos, 5}, 4);
    harness.Finish();
    EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(history, 4, next));
  }
}

TEST(Events, AnEosAtTheFirstTokenEndsATurnWithoutOutput) {
  EngineHarness harness(EngineHarness::SmallLimits(), [](std::span<const TokenId>) { return EngineHarness::kEos; });
  const auto request = harness.Create();
  EngineHarness::Begin(*request, EngineHarness::Prompt(4), 1);
  const std::vector<Event> events = harness.Step();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].finish_reason, FinishReason::kEos) << "also where the limit would end it";
  EXPECT_EQ(events[0].usage.generated_tokens, 0u);
  EXPECT_EQ(BlocksOf(harness, *request), 1u);
}

// --- Close and abandonment ------------------------------------------------------------------------------------------

TEST(Close, InAnyStateTakesEventsAndBlocksAwayAtOnce) {
  struct Case {
    const char* what;
    void (*reach)(EngineHarness&, Request&);
  };
  const std::vector<Case> cases{
      {"created", [](EngineHarness&, Request&) {}},
      {"queued", [](EngineHarness&, Request& r) { EngineHarness::Begin(r, EngineHarness::Prompt(20), 3); }},
      {"inside its prompt",
       [](EngineHarness& h, Request& r) { EngineHarness::Begin(r, EngineHarness::Prompt(20), 3), h.Step(); }},
      {"decoding",
       [](EngineHarness& h, Request& r) {
         EngineHarness::Begin(r, EngineHarness::Prompt(4), 9);
         h.Step(), h.Step();
       }},
      {"with a token to take",
       [](EngineHarness& h, Request& r) {
         EngineHarness::Begin(r, EngineHarness::Prompt(4), 9);
         h.Step();
         h.engine->Run(*h.engine->CreateEventBuffer(1));
       }},
      {"cancelled",
       [](EngineHarness& h, Request& r) {
         EngineHarness::Begin(r, EngineHarness::Prompt(20), 3), h.Step();
         r.CancelTurn(1);
       }},
      {"complete",
       [](EngineHarness& h, Request& r) { EngineHarness::Begin(r, EngineHarness::Prompt(4), 1), h.Finish(); }},
  };
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.chunk_size_tokens = 8;
  for (const Case& closing : cases) {
    EngineHarness harness(limits);
    const auto neighbour = harness.Create();
    const auto request = harness.Create();
    closing.reach(harness, *request);
    request->Close();
    request->Close();
    EXPECT_EQ(request->state(), RequestState::kClosed) << closing.what;
    EXPECT_FALSE(harness.engine->HasPendingRequests()) << closing.what;
    EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 64u) << closing.what;
    EXPECT_EQ(harness.engine->GetStatistics().live_requests, 1u);
    EXPECT_TRUE(harness.Step().empty()) << closing.what;
    EngineHarness::Begin(*neighbour, EngineHarness::Prompt(3), 2);
    harness.Finish();
    EXPECT_EQ(harness.Of(neighbour).tokens, EngineHarness::Reference(EngineHarness::Prompt(3), 2));
  }
}

TEST(Close, PurgesOnlyItsOwnEvents) {
  EngineHarness harness;
  Requests requests;
  BeginThree(harness, requests);
  const auto one = harness.engine->CreateEventBuffer(1);
  harness.engine->Run(*one);
  requests[1]->Close();
  const std::vector<Event> rest = harness.Step();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].request, requests[2]);
  EXPECT_EQ(harness.executor->executions, 1u);
  harness.Finish();
  EXPECT_EQ(TokensOf(*requests[2]),
            Joined(EngineHarness::Prompt(5, 2), EngineHarness::Reference(EngineHarness::Prompt(5, 2), 6)));
}

TEST(Abandonment, ByAnotherThreadPurgesEventsAtTheNextBoundary) {
  EngineHarness harness;
  Requests requests;
  BeginThree(harness, requests);
  requests[2]->AdoptHandle();
  const auto two = harness.engine->CreateEventBuffer(2);
  harness.engine->Run(*two);
  std::thread([&] { requests[2]->ReleaseHandle(); }).join();
  harness.engine->Run(*two);
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ(two->at(0)->request, requests[0]) << "the event that was left over is gone, so this run was the next step";
  EXPECT_EQ(requests[2]->state(), RequestState::kClosed);
  EXPECT_EQ(harness.engine->GetStatistics().live_requests, 2u);
}

// An event names its request after the host let go of the handle. A call through it is the next boundary.
TEST(Abandonment, ACallOnTheRequestItselfFindsItClosed) {
  const std::vector<void (*)(Request&)> calls{
      [](Request& request) { request.BeginTurn(EngineHarness::Prompt(2), nullptr); },
      [](Request& request) { request.CancelTurn(1); },
      [](Request& request) { request.RewindToStartOfTurn(1); },
      [](Request& request) { request.Fork(); },
  };
  for (const auto call : calls) {
    EngineHarness harness;
    const auto request = harness.Create();
    request->AdoptHandle();
    EngineHarness::Begin(*request, EngineHarness::Prompt(6), 1);
    harness.Finish();
    request->ReleaseHandle();
    try {
      call(*request);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidState) << error.message();
    }
    EXPECT_EQ(request->state(), RequestState::kClosed);
    EXPECT_EQ(harness.engine->GetStatistics().live_requests, 0u);
    EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 64u);
    harness.engine->Validate();
  }
}

TEST(Abandonment, OfManyAtOnceFreesAllOfThem) {
  EngineHarness harness;
  Requests requests;
  for (int i = 0; i < 40; ++i) {
    requests.push_back(harness.Create());
    if (i > 0) requests.back()->AdoptHandle();
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(3, i), 20);
  }
  harness.Step();
  std::thread([&] {
    for (int i = 1; i < 40; ++i) requests[i]->ReleaseHandle();
  }).join();
  harness.Finish();
  EXPECT_EQ(harness.engine->GetStatistics().live_requests, 1u);
  EXPECT_EQ(harness.Of(requests[0]).tokens, EngineHarness::Reference(EngineHarness::Prompt(3, 0), 20));
}

}  // namespace
}  // namespace oga::testing

// What BeginTurn and CreateRequest accept: limits, ids, inputs; and that a refusal changes nothing.
#include <gtest/gtest.h>

#include <limits>

#include "native/engine/engine_state.h"
#include "native/engine/request_access.h"

namespace oga::testing {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

StatusCode CodeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return StatusCode::kOk;
}

// --- Sessions -------------------------------------------------------------------------------------------------------

TEST(Session, ItsLimitComesFromTheHostTheModelOrThePool) {
  struct Case {
    uint64_t model_max_length;
    uint32_t num_blocks;
    uint64_t asked;
    uint64_t limit;  // 0: refused
  };
  const std::vector<Case> cases{
      {0, 64, 0, 128},   {0, 64, 1, 1},       {0, 64, 128, 128}, {0, 64, 129, 0},   {0, 64, kHuge, 0},
      {100, 64, 0, 100}, {100, 64, 101, 101}, {500, 64, 0, 128}, {100, 64, 129, 0}, {0, 4, 0, 17},
      {0, 4, 17, 17},    {0, 4, 18, 0},       {100, 4, 0, 17},
  };
  for (const Case& session : cases) {
    EngineLimits limits = EngineHarness::SmallLimits();
    limits.num_blocks = session.num_blocks;
    SearchDefaults search;
    search.max_length_tokens = session.model_max_length;
    EngineHarness harness(limits, EngineHarness::Next, {}, search);
    if (session.limit == 0) {
      ExpectRefused(harness, {}, StatusCode::kInvalidArgument, std::to_string(session.asked),
                    [&] { harness.Create(session.asked); });
    } else {
      EXPECT_EQ(harness.Create(session.asked)->max_session_tokens(), session.limit) << session.asked;
    }
  }
}

TEST(Session, RefusesAModelWhoseSearchAnEngineCannotDo) {
  SearchDefaults beams;
  beams.num_beams = 4;
  SearchDefaults minimum;
  minimum.min_length_tokens = 4;
  for (const auto& [search, name] : {std::pair{beams, "search.num_beams is 4"}, {minimum, "search.min_length is 4"}}) {
    EngineHarness harness(EngineHarness::SmallLimits(), EngineHarness::Next, {}, search);
    try {
      harness.Create();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kUnsupported);
      EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
    }
  }
}

TEST(Session, AnInputMustLeaveRoomForOneToken) {
  struct Case {
    uint64_t session;
    size_t prompt;
    bool accepted;
  };
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.context_length_tokens = 64;
  for (const uint32_t chunk : {0u, 5u}) {
    limits.chunk_size_tokens = chunk;
    for (const Case& input : std::vector<Case>{{0, 62, true},
                                               {0, 63, true},
                                               {0, 64, false},
                                               {0, 65, false},
                                               {5, 4, true},
                                               {5, 5, false},
                                               {4, 3, true},
                                               {4, 4, false},
                                               {1, 1, false},
                                               {2, 1, true}}) {
      EngineHarness harness(limits);
      const auto request = harness.Create(input.session);
      const auto prompt = EngineHarness::Prompt(input.prompt);
      if (!input.accepted) {
        ExpectRefused(harness, {request}, StatusCode::kInvalidArgument, std::to_string(input.prompt),
                      [&] { request->BeginTurn(prompt, nullptr); });
        continue;
      }
      request->BeginTurn(prompt, nullptr);
      harness.Finish();
      const size_t room = (input.session == 0 ? 64 : input.session) - input.prompt;
      EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(prompt, room));
      ASSERT_EQ(harness.Of(request).endings.size(), 1u);
      EXPECT_EQ(harness.Of(request).endings[0].finish_reason, FinishReason::kMaxSessionTokens);
      EXPECT_EQ(harness.Of(request).endings[0].flags, event_flags::kToken | event_flags::kTurnFinished);
      EXPECT_EQ(harness.Of(request).endings[0].usage.generated_tokens, room);
    }
  }
}

TEST(Session, CountsContinuationsToo) {
  EngineHarness harness;
  const auto request = harness.Create(20);
  EngineHarness::Begin(*request, EngineHarness::Prompt(8), 4);
  harness.Finish();
  ExpectRefused(harness, {request}, StatusCode::kInvalidArgument, "fills the session",
                [&] { request->BeginTurn(EngineHarness::Prompt(8), nullptr); });
  EXPECT_EQ(request->BeginTurn(EngineHarness::Prompt(7), nullptr), 2u);
  harness.Finish();
  EXPECT_EQ(request->tokens().size(), 20u);
  EXPECT_EQ(harness.Of(request).endings[1].finish_reason, FinishReason::kMaxSessionTokens);
  EXPECT_EQ(harness.Of(request).endings[1].usage.prompt_tokens, 7u);
  EXPECT_EQ(harness.Of(request).endings[1].usage.generated_tokens, 1u);
  ExpectRefused(harness, {request}, StatusCode::kInvalidArgument, "the session is full",
                [&] { request->BeginTurn(EngineHarness::Prompt(1), nullptr); });
}

TEST(Session, AsManyMayBeCreatedAsTheHostLikes) {
  EngineHarness harness;
  Requests requests;
  for (int i = 0; i < 50; ++i) {
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), EngineHarness::Prompt(3, i), 2);
  }
  harness.Finish();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(harness.Of(requests[i]).tokens, EngineHarness::Reference(EngineHarness::Prompt(3, i), 2)) << i;
  }
  EXPECT_TRUE(harness.engine_events.empty()) << "completed ones that stay open block nobody";
}

// --- Turn limits ----------------------------------------------------------------------------------------------------

TEST(TurnLimits, DecideWhereATurnEnds) {
  struct Case {
    uint64_t min, max;
    size_t prompt;
    StatusCode code;
    size_t generated;
    FinishReason finish;
  };
  using enum FinishReason;
  const std::vector<Case> cases{
      {0, 0, 8, StatusCode::kOk, 12, kMaxSessionTokens},
      {0, 1, 8, StatusCode::kOk, 1, kMaxGeneratedTokens},
      {0, 12, 8, StatusCode::kOk, 12, kMaxGeneratedTokens},
      {0, 13, 8, StatusCode::kOk, 12, kMaxSessionTokens},
      {0, uint64_t{1} << 31, 8, StatusCode::kOk, 12, kMaxSessionTokens},
      {0, uint64_t{1} << 63, 8, StatusCode::kOk, 12, kMaxSessionTokens},
      {0, kHuge, 8, StatusCode::kOk, 12, kMaxSessionTokens},
      {2, 2, 8, StatusCode::kOk, 2, kMaxGeneratedTokens},
      {12, 0, 8, StatusCode::kOk, 12, kMaxSessionTokens},
      {19, 0, 1, StatusCode::kOk, 19, kMaxSessionTokens},
      {5, 2, 8, StatusCode::kInvalidArgument, 0, kNone},
      {13, 0, 8, StatusCode::kInvalidArgument, 0, kNone},
      {1000000, 0, 8, StatusCode::kInvalidArgument, 0, kNone},
      {kHuge, 0, 8, StatusCode::kInvalidArgument, 0, kNone},
      {kHuge, kHuge, 8, StatusCode::kInvalidArgument, 0, kNone},
  };
  for (const Case& turn : cases) {
    const std::string what = Message("min ", turn.min, " max ", turn.max);
    EngineHarness harness;
    const auto request = harness.Create(20);
    const auto options = request->CreateTurnOptions();
    options->SetMinGeneratedTokens(turn.min);
    options->SetMaxGeneratedTokens(turn.max);
    const auto prompt = EngineHarness::Prompt(turn.prompt);
    const auto begin = [&] { request->BeginTurn(prompt, options.get()); };
    if (turn.code != StatusCode::kOk) {
      ExpectRefused(harness, {request}, turn.code, what, begin);
      continue;
    }
    begin();
    harness.Finish();
    EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(prompt, turn.generated)) << what;
    EXPECT_EQ(harness.Of(request).endings.at(0).finish_reason, turn.finish) << what;
  }
}

TEST(TurnLimits, OptionsActOnTheTurnTheyAreGivenTo) {
  EngineHarness harness;
  const auto request = harness.Create(40);
  const auto options = request->CreateTurnOptions();
  options->SetMaxGeneratedTokens(2);
  for (int turn = 0; turn < 2; ++turn) {
    request->BeginTurn(EngineHarness::Prompt(2), options.get());
    harness.Finish();
  }
  request->BeginTurn(EngineHarness::Prompt(2), nullptr);
  harness.Finish();
  const std::vector<Event>& endings = harness.Of(request).endings;
  EXPECT_EQ(endings[0].usage.generated_tokens, 2u);
  EXPECT_EQ(endings[1].usage.generated_tokens, 2u);
  EXPECT_EQ(endings[2].finish_reason, FinishReason::kMaxSessionTokens)
      << "a turn without options has no limit of its own";
}

// --- Ids and refusals -----------------------------------------------------------------------------------------------

TEST(BeginTurn, NumbersTurnsAndARefusalTakesNoNumber) {
  EngineHarness harness;
  const auto request = harness.Create();
  EXPECT_THROW(request->BeginTurn({}, nullptr), Error);
  EXPECT_EQ(EngineHarness::Begin(*request, EngineHarness::Prompt(3), 1), 1u);
  harness.Finish();
  EXPECT_THROW(request->BeginTurn(std::vector<TokenId>{-1}, nullptr), Error);
  EXPECT_EQ(EngineHarness::Begin(*request, EngineHarness::Prompt(3), 1), 2u);
  harness.Finish();
  EXPECT_EQ(EngineHarness::Begin(*request, EngineHarness::Prompt(3), 1), 3u);
}

TEST(BeginTurn, RefusesWhenEveryTurnIdWasUsed) {
  EngineHarness harness;
  const auto request = harness.Create();
  RequestAccess::SetLastTurnId(*request, kHuge - 1);
  EXPECT_EQ(EngineHarness::Begin(*request, EngineHarness::Prompt(3), 1), kHuge);
  harness.Finish();
  ExpectRefused(harness, {request}, StatusCode::kInvalidState, "no id is left",
                [&] { request->BeginTurn(EngineHarness::Prompt(1), nullptr); });
  request->RewindToStartOfTurn(kHuge);
  EXPECT_THROW(request->BeginTurn(EngineHarness::Prompt(1), nullptr), Error) << "a rewound id is not used again either";
}

TEST(BeginTurn, RefusesIllegalInputsWhileOthersRun) {
  EngineHarness harness;
  const auto a = harness.Create();
  const auto b = harness.Create();
  const auto request = harness.Create();
  EngineHarness::Begin(*a, EngineHarness::Prompt(5), 12);
  EngineHarness::Begin(*b, EngineHarness::Prompt(5, 9), 12);
  EngineHarness::Begin(*request, EngineHarness::Prompt(4, 3), 2);
  harness.Step();
  harness.Step();
  const TokenId least = std::numeric_limits<TokenId>::min();
  const TokenId most = std::numeric_limits<TokenId>::max();
  for (const TokenId id : {-1, EngineHarness::kVocab, EngineHarness::kVocab + 1, most, least}) {
    for (const size_t position : {0u, 2u}) {
      auto input = EngineHarness::Prompt(3);
      input[position] = id;
      ExpectRefused(harness, {a, b, request}, StatusCode::kInvalidArgument, std::to_string(id),
                    [&] { request->BeginTurn(input, nullptr); });
    }
    harness.Step();
  }
  ExpectRefused(harness, {a, b, request}, StatusCode::kInvalidArgument, "empty",
                [&] { request->BeginTurn({}, nullptr); });
  const TokenId one = 1;
  const std::span<const TokenId> endless(&one, size_t{1} << 60);
  ExpectRefused(harness, {a, b, request}, StatusCode::kInvalidArgument, "a count that is never read",
                [&] { request->BeginTurn(endless, nullptr); });
  harness.Finish();
  EXPECT_EQ(harness.Of(a).tokens, EngineHarness::Reference(EngineHarness::Prompt(5), 12));
  EXPECT_EQ(harness.Of(b).tokens, EngineHarness::Reference(EngineHarness::Prompt(5, 9), 12));
  EXPECT_EQ(EngineHarness::Begin(*request, EngineHarness::Prompt(3), 1), 2u);
}

TEST(BeginTurn, RefusesOptionsOfAnotherRequest) {
  EngineHarness harness;
  const auto request = harness.Create();
  const auto other = harness.Create();
  const auto options = other->CreateTurnOptions();
  ExpectRefused(harness, {request, other}, StatusCode::kInvalidArgument, "foreign options",
                [&] { request->BeginTurn(EngineHarness::Prompt(3), options.get()); });
}

TEST(BeginTurn, RefusesOptionsThatWouldNotAct) {
  struct Case {
    const char* what;
    bool model_samples;
    int32_t model_top_k;
    std::function<void(TurnOptions&)> set;
    bool accepted;
  };
  const std::vector<Case> cases{
      {"greedy with a temperature", false, 50, [](TurnOptions& o) { o.SetTemperature(0.5f); }, false},
      {"greedy with a top_p", false, 50, [](TurnOptions& o) { o.SetTopP(0.5f); }, false},
      {"greedy with a top_k", false, 50, [](TurnOptions& o) { o.SetTopK(5); }, false},
      {"greedy with what is off anyway", false, 50,
       [](TurnOptions& o) { o.SetTopK(1), o.SetTopP(1.0f), o.SetTemperature(0); }, true},
      {"sampling with its own top_k 1", false, 50, [](TurnOptions& o) { o.SetDoSample(true), o.SetTopK(1); }, true},
      {"sampling over a model that pins greedy", true, 1, [](TurnOptions& o) { o.SetDoSample(true); }, false},
      {"the same with its own top_k", true, 1, [](TurnOptions& o) { o.SetDoSample(true), o.SetTopK(3); }, true},
      {"a top_k above the vocabulary", false, 50, [](TurnOptions& o) { o.SetDoSample(true), o.SetTopK(1000); }, true},
  };
  for (const Case& turn : cases) {
    SearchDefaults search;
    search.do_sample = turn.model_samples;
    search.top_k = turn.model_top_k;
    EngineHarness harness(EngineHarness::SmallLimits(), EngineHarness::Next, {}, search);
    const auto request = harness.Create();
    const auto options = request->CreateTurnOptions();
    turn.set(*options);
    const auto begin = [&] { request->BeginTurn(EngineHarness::Prompt(3), options.get()); };
    if (turn.accepted) {
      EXPECT_EQ(CodeOf(begin), StatusCode::kOk) << turn.what;
    } else {
      ExpectRefused(harness, {request}, StatusCode::kInvalidArgument, turn.what, begin);
    }
  }
}

TEST(BeginTurn, RefusesARequestThatIsNotAtRest) {
  EngineHarness harness;
  const auto request = harness.Create();
  const auto other = harness.Create();
  const auto begin = [&] { request->BeginTurn(EngineHarness::Prompt(2), nullptr); };
  EngineHarness::Begin(*request, EngineHarness::Prompt(3), 2);
  ExpectRefused(harness, {request}, StatusCode::kInvalidState, "queued", begin);
  harness.Step();
  ExpectRefused(harness, {request}, StatusCode::kInvalidState, "active", begin);
  EngineHarness::Begin(*other, EngineHarness::Prompt(3), 2);
  const auto small = harness.engine->CreateEventBuffer(1);
  const auto empty = harness.engine->CreateEventBuffer(0);
  request->CancelTurn(1);
  ExpectRefused(harness, {request}, StatusCode::kInvalidState, "with an event to take", begin);
  harness.engine->Run(*empty);
  ExpectRefused(harness, {request}, StatusCode::kInvalidState, "a run that took nothing", begin);
  harness.engine->Run(*small);
  begin();
  EXPECT_EQ(request->turn_id(), 2u);
}

TEST(BeginTurn, DoesNotMindAnotherRequestsEvents) {
  EngineHarness harness;
  const auto request = harness.Create();
  const auto other = harness.Create();
  EngineHarness::Begin(*other, EngineHarness::Prompt(3), 2);
  other->CancelTurn(1);
  EXPECT_EQ(request->BeginTurn(EngineHarness::Prompt(2), nullptr), 1u);
}

TEST(BeginTurn, RefusesAClosedRequestAndADestroyedEngine) {
  EngineHarness harness;
  const auto closed = harness.Create();
  const auto orphan = harness.Create();
  closed->Close();
  EXPECT_EQ(CodeOf([&] { closed->BeginTurn(EngineHarness::Prompt(2), nullptr); }), StatusCode::kInvalidState);
  EXPECT_EQ(CodeOf([&] { closed->CancelTurn(1); }), StatusCode::kInvalidState);
  EXPECT_EQ(CodeOf([&] { closed->RewindToStartOfTurn(1); }), StatusCode::kInvalidState);
  EXPECT_EQ(CodeOf([&] { closed->Fork(); }), StatusCode::kInvalidState);
  harness.engine.reset();
  EXPECT_EQ(orphan->state(), RequestState::kClosed);
  EXPECT_EQ(CodeOf([&] { orphan->BeginTurn(EngineHarness::Prompt(2), nullptr); }), StatusCode::kInvalidState);
  EXPECT_EQ(CodeOf([&] { orphan->CancelTurn(1); }), StatusCode::kInvalidState);
  EXPECT_NO_THROW(orphan->Close());
}

TEST(BeginTurn, OrderOfCallsIsTheOrderOfServiceWhateverTheOrderOfCreation) {
  EngineHarness harness;
  const auto first = harness.Create();
  const auto second = harness.Create();
  const auto third = harness.Create();
  EngineHarness::Begin(*third, EngineHarness::Prompt(3, 3), 2);
  EngineHarness::Begin(*first, EngineHarness::Prompt(3, 1), 2);
  EngineHarness::Begin(*second, EngineHarness::Prompt(3, 2), 2);
  for (int step = 0; step < 2; ++step) {
    const std::vector<Event> events = harness.Step();
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].request, third);
    EXPECT_EQ(events[1].request, first);
    EXPECT_EQ(events[2].request, second);
  }
}

}  // namespace
}  // namespace oga::testing

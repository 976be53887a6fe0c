#include "engine/request.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "base/error.h"
#include "native/engine/request_access.h"
#include "support/invariants.h"

namespace oga::testing {
namespace {

constexpr int32_t kVocab = 50;
using Tokens = std::vector<TokenId>;

Tokens TokensOf(const Request& request) { return {request.tokens().begin(), request.tokens().end()}; }

// A row that computes the next `tokens` pending ones.
RowPlan RowOf(const Request& request, uint32_t tokens) {
  RowPlan row;
  row.past_tokens = request.view().cached_tokens;
  row.pending_tokens = request.view().pending_tokens();
  row.scheduled_tokens = tokens;
  return row;
}

// One committed step that computes everything pending and appends `token`.
void AppendToken(Request& request, TokenId token) {
  request.ReserveToken();
  RowResult result;
  result.appends = true;
  result.token = token;
  request.CommitRow(RowOf(request, request.view().pending_tokens()), result, 1);
}

void CompleteTurn(Request& request, const Tokens& input, const Tokens& output) {
  request.StartTurn(input, {}, kVocab);
  for (const TokenId token : output) AppendToken(request, token);
  request.EndTurn();
}

TEST(Request, GoesFromCreatedThroughQueuedAndActiveToComplete) {
  const auto request = LoneRequest();
  EXPECT_EQ(request->state(), RequestState::kCreated);
  EXPECT_FALSE(request->turn_live());
  request->StartTurn(Tokens{1, 2, 3}, {}, kVocab);
  EXPECT_EQ(request->state(), RequestState::kQueued);
  EXPECT_TRUE(request->turn_live());
  request->Validate();
  RowResult chunk;
  request->CommitRow(RowOf(*request, 2), chunk, 4);
  EXPECT_EQ(request->state(), RequestState::kActive);
  EXPECT_EQ(request->view().pending_tokens(), 1u);
  EXPECT_FALSE(request->view().preemptible) << "a chunk is not a token";
  EXPECT_EQ(request->view().last_progress_step, 4u);
  AppendToken(*request, 9);
  EXPECT_TRUE(request->view().decoding);
  EXPECT_TRUE(request->view().preemptible);
  request->Validate();
  request->EndTurn();
  EXPECT_EQ(request->state(), RequestState::kTurnComplete);
  EXPECT_FALSE(request->view().live);
  EXPECT_EQ(TokensOf(*request), (Tokens{1, 2, 3, 9}));
  EXPECT_EQ(request->usage().prompt_tokens, 3u);
  EXPECT_EQ(request->usage().generated_tokens, 1u);
  request->Validate();
}

TEST(Request, CountsTurnsAndFindsThoseThatArePartOfTheSequence) {
  const auto request = LoneRequest();
  CompleteTurn(*request, {1, 2}, {3});
  CompleteTurn(*request, {4}, {5, 6});
  CompleteTurn(*request, {7}, {8});
  EXPECT_EQ(request->turn_id(), 3u);
  ASSERT_NE(request->FindTurn(2), nullptr);
  EXPECT_EQ(request->FindTurn(2)->start_tokens, 3u);
  EXPECT_EQ(request->FindTurn(0), nullptr);
  EXPECT_EQ(request->FindTurn(4), nullptr);
  request->TruncateToTurn(*request->FindTurn(2));
  EXPECT_EQ(TokensOf(*request), (Tokens{1, 2, 3}));
  EXPECT_EQ(request->FindTurn(2), nullptr);
  EXPECT_EQ(request->turn_id(), 3u) << "ids are not used again";
  request->Validate();
}

TEST(Request, JudgesWhatATokenMeansForItsTurn) {
  struct Case {
    const char* what;
    uint64_t max_generated, min_session;
    TokenId token;
    bool appends;
    FinishReason finish;
  };
  const Tokens eos{40, 41, 42};
  const std::vector<Case> cases{
      {"an ordinary token", 0, 100, 5, true, FinishReason::kNone},
      {"the first EOS id", 0, 100, 40, false, FinishReason::kEos},
      {"the last EOS id", 0, 100, 42, false, FinishReason::kEos},
      {"the last token the turn allows", 1, 100, 5, true, FinishReason::kMaxGeneratedTokens},
      {"one before the last", 2, 100, 5, true, FinishReason::kNone},
      {"the last token the session allows", 0, 4, 5, true, FinishReason::kMaxSessionTokens},
      {"one before that", 0, 5, 5, true, FinishReason::kNone},
      {"the last of both", 1, 4, 5, true, FinishReason::kMaxGeneratedTokens},
      {"EOS at both limits", 1, 4, 41, false, FinishReason::kEos},
      {"a limit near 2^64", std::numeric_limits<uint64_t>::max(), 100, 5, true, FinishReason::kNone},
  };
  for (const Case& judged : cases) {
    const auto request = LoneRequest(judged.min_session);
    SamplingSettings settings;
    settings.max_generated_tokens = judged.max_generated;
    request->StartTurn(Tokens{1, 2, 3}, {.settings = settings}, kVocab);
    RowResult result;
    request->Judge(judged.token, eos, result);
    EXPECT_EQ(result.appends, judged.appends) << judged.what;
    EXPECT_EQ(result.finish, judged.finish) << judged.what;
    EXPECT_EQ(request->usage().generated_tokens, 0u) << "judging changes nothing";
  }
}

TEST(Request, MakesRoomForATurnBeforeItStarts) {
  for (const uint64_t limit : {uint64_t{0}, uint64_t{20}, std::numeric_limits<uint64_t>::max()}) {
    const auto request = LoneRequest(100);
    SamplingSettings settings;
    settings.max_generated_tokens = limit;
    request->StartTurn(Tokens{1, 2, 3}, {.settings = settings}, kVocab);
    const TokenId* place = request->tokens().data();
    for (TokenId token = 0; token < 20; ++token) AppendToken(*request, token);
    EXPECT_EQ(request->tokens().data(), place) << "decoding moved the sequence with max_generated_tokens " << limit;
  }
}

TEST(Request, ALongTurnMovesItsSequenceRarely) {
  const auto request = LoneRequest(100000);
  request->StartTurn(Tokens{1}, {}, kVocab);
  const TokenId* place = request->tokens().data();
  int moves = 0;
  for (int i = 0; i < 90000; ++i) {
    AppendToken(*request, 1);
    moves += request->tokens().data() != place;
    place = request->tokens().data();
  }
  EXPECT_LE(moves, 6);
}

TEST(Request, CollectsTheTokensToPenalizeWhileAPenaltyActs) {
  const auto request = LoneRequest();
  CompleteTurn(*request, {7, 3}, {7});
  EXPECT_TRUE(request->penalized_tokens().empty());
  SamplingSettings settings;
  settings.repetition_penalty = 1.5f;
  request->StartTurn(Tokens{3, 9}, {.settings = settings}, kVocab);
  const auto penalized = [&] { return Tokens(request->penalized_tokens().begin(), request->penalized_tokens().end()); };
  EXPECT_EQ(penalized(), (Tokens{7, 3, 9})) << "prompt and output of every turn";
  AppendToken(*request, 20);
  AppendToken(*request, 9);
  EXPECT_EQ(penalized(), (Tokens{7, 3, 9, 20}));
  request->EndTurn();
  request->TruncateToTurn(*request->FindTurn(2));
  request->StartTurn(Tokens{4}, {.settings = settings}, kVocab);
  EXPECT_EQ(penalized(), (Tokens{7, 3, 4}));
}

TEST(Request, AnExplicitSeedStaysUntilItsTurnIsRewound) {
  const auto request = LoneRequest(100, 0, /*seed=*/7);
  SamplingSettings seeded;
  seeded.seed = 33;
  CompleteTurn(*request, {1}, {2});
  request->StartTurn(Tokens{3}, {.settings = seeded}, kVocab);
  EXPECT_EQ(request->seed(), 33u);
  request->EndTurn();
  CompleteTurn(*request, {4}, {5});
  EXPECT_EQ(request->seed(), 33u) << "an unseeded turn continues the stream";
  request->TruncateToTurn(*request->FindTurn(3));
  EXPECT_EQ(request->seed(), 33u);
  request->TruncateToTurn(*request->FindTurn(2));
  EXPECT_EQ(request->seed(), 7u) << "the seed went with the turn that set it";
}

TEST(Request, ACopyTakesTheSequenceAndKeepsItsOwnSeed) {
  const auto source = LoneRequest(100, 0, 7);
  const auto copy = LoneRequest(100, 1, 8);
  CompleteTurn(*source, {1, 2}, {3});
  CompleteTurn(*source, {4}, {5});
  copy->CopySequence(*source);
  EXPECT_EQ(TokensOf(*copy), TokensOf(*source));
  EXPECT_EQ(copy->turn_id(), 2u);
  EXPECT_EQ(copy->state(), RequestState::kTurnComplete);
  EXPECT_EQ(copy->view().cached_tokens, 0u);
  copy->Validate();
  copy->TruncateToTurn(*copy->FindTurn(1));
  EXPECT_EQ(copy->seed(), 8u);
  EXPECT_EQ(TokensOf(*source), (Tokens{1, 2, 3, 4, 5}));
}

TEST(Request, ForgetsThatItsTailIsSharedWhenTheTurnEnds) {
  const auto request = LoneRequest();
  request->StartTurn(Tokens{1, 2}, {}, kVocab);
  request->view().tail_shared = true;
  request->EndTurn();
  EXPECT_FALSE(request->view().tail_shared);
}

TEST(Request, ADetachedOneIsClosedAndHoldsNoTokens) {
  const auto request = LoneRequest();
  CompleteTurn(*request, {1, 2}, {3});
  request->Detach();
  EXPECT_EQ(request->state(), RequestState::kClosed);
  EXPECT_TRUE(request->tokens().empty());
  EXPECT_EQ(request->index(), kNoRequest);
  EXPECT_THROW(request->BeginTurn(Tokens{1}, nullptr), Error);
  EXPECT_NO_THROW(request->Close());
}

TEST(Request, ItsHandleKeepsItAliveAndReleasingMarksItAbandoned) {
  auto flag = std::make_shared<std::atomic<bool>>(false);
  auto request = std::make_shared<Request>(std::weak_ptr<Engine>(), flag, 0, 1, 100, 0, 7);
  request->AdoptHandle();
  Request* handle = request.get();
  const std::weak_ptr<Request> watch = request;
  request.reset();
  ASSERT_FALSE(watch.expired());
  EXPECT_FALSE(handle->abandoned());
  request = watch.lock();
  std::thread([handle] { handle->ReleaseHandle(); }).join();
  EXPECT_TRUE(request->abandoned());
  EXPECT_TRUE(flag->load());
  request.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(Request, TheReleaseOfTheLastShareDestroysIt) {
  auto request = LoneRequest();
  request->AdoptHandle();
  Request* handle = request.get();
  const std::weak_ptr<Request> watch = request;
  request.reset();
  handle->ReleaseHandle();
  EXPECT_TRUE(watch.expired());
}

TEST(Request, ValidateNamesR1WhenALiveTurnHasNothingToCompute) {
  const auto request = LoneRequest();
  request->StartTurn(Tokens{1, 2}, {}, kVocab);
  request->view().cached_tokens = 2;
  EXPECT_TRUE(Breaks(*request, "R1"));
}

TEST(Request, ValidateNamesR2WhenTheViewDisagreesAboutTheTurn) {
  const auto request = LoneRequest();
  request->view().live = true;
  EXPECT_TRUE(Breaks(*request, "R2"));
  request->view().live = false;
  request->StartTurn(Tokens{1, 2}, {}, kVocab);
  request->view().live = false;
  EXPECT_TRUE(Breaks(*request, "R2"));
}

TEST(Request, ValidateNamesR3WhenTwoTurnsStartAtOnePosition) {
  const auto request = LoneRequest();
  CompleteTurn(*request, {1}, {});
  CompleteTurn(*request, {}, {});
  CompleteTurn(*request, {2}, {});
  EXPECT_TRUE(Breaks(*request, "R3"));
}

TEST(Request, ValidateNamesR3WhenATurnIdWasNotHandedOut) {
  const auto request = LoneRequest();
  CompleteTurn(*request, {1}, {});
  RequestAccess::SetLastTurnId(*request, 0);
  EXPECT_TRUE(Breaks(*request, "R3"));
}

TEST(Request, ValidateNamesR4WhenTheViewHasAnotherLength) {
  const auto request = LoneRequest();
  request->StartTurn(Tokens{1, 2}, {}, kVocab);
  request->view().sequence_tokens = 3;
  EXPECT_TRUE(Breaks(*request, "R4"));
}

TEST(Request, ValidateNamesR5WhenTheSequenceOutgrowsItsLimit) {
  const auto request = LoneRequest(3);
  request->StartTurn(Tokens{1, 2}, {}, kVocab);
  AppendToken(*request, 3);
  EXPECT_NO_THROW(request->Validate());
  AppendToken(*request, 4);
  EXPECT_TRUE(Breaks(*request, "R5"));
}

}  // namespace
}  // namespace oga::testing

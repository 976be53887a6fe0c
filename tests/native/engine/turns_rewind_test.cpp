// Rewinding to a completed turn: what vanishes, what stays, and that the same input gives the same tokens again.
#include <gtest/gtest.h>

#include "native/engine/engine_state.h"

namespace oga::testing {
namespace {

// Three turns of `request`, each ended by its limit. Their outputs are those of the reference.
struct Conversation {
  std::vector<std::vector<TokenId>> inputs{EngineHarness::Prompt(6), EngineHarness::Prompt(5, 20),
                                           EngineHarness::Prompt(4, 40)};
  std::vector<size_t> output_tokens{3, 6, 2};
  std::vector<size_t> starts{0, 9, 20};

  std::vector<TokenId> Until(size_t turn) const {
    std::vector<TokenId> sequence;
    for (size_t i = 0; i < turn; ++i) {
      sequence = Joined(sequence, inputs[i]);
      sequence = Joined(sequence, EngineHarness::Reference(sequence, output_tokens[i]));
    }
    return sequence;
  }

  void Play(EngineHarness& harness, const std::shared_ptr<Request>& request, size_t first = 0, size_t last = 3) const {
    for (size_t i = first; i < last; ++i) {
      EngineHarness::Begin(*request, inputs[i], output_tokens[i]);
      harness.Finish();
    }
  }
};

TEST(Rewind, ToEachTurnKeepsTheBlocksBeforeIt) {
  const Conversation conversation;
  for (TurnId turn = 1; turn <= 3; ++turn) {
    EngineHarness harness;
    const auto request = harness.Create();
    conversation.Play(harness, request);
    ASSERT_EQ(BlocksOf(harness, *request), 7u) << "26 tokens, the last of them not in the cache";
    request->RewindToStartOfTurn(turn);
    EXPECT_EQ(TokensOf(*request), conversation.Until(turn - 1));
    EXPECT_EQ(request->view().cached_tokens, conversation.starts[turn - 1]);
    EXPECT_EQ(BlocksOf(harness, *request), (conversation.starts[turn - 1] + 3) / 4) << turn;
    EXPECT_FALSE(harness.engine->HasPendingRequests()) << "there is no event for it";
    for (TurnId gone = turn; gone <= 3; ++gone) EXPECT_EQ(request->FindTurn(gone), nullptr);
    for (TurnId kept = 1; kept < turn; ++kept) EXPECT_NE(request->FindTurn(kept), nullptr);
  }
}

TEST(Rewind, TheSameInputGivesTheSameTokensUnderANewId) {
  const Conversation conversation;
  for (TurnId turn = 1; turn <= 3; ++turn) {
    EngineHarness harness;
    const auto request = harness.Create();
    conversation.Play(harness, request);
    request->RewindToStartOfTurn(turn);
    harness.executor->record_rows = true;
    EXPECT_EQ(EngineHarness::Begin(*request, conversation.inputs[turn - 1], 1), 4u);
    harness.Step();
    EXPECT_EQ(harness.executor->last_row_tokens.at(0), conversation.inputs[turn - 1])
        << "nothing before it is recomputed";
    harness.Finish();
    request->RewindToStartOfTurn(4);
    conversation.Play(harness, request, turn - 1);
    EXPECT_EQ(TokensOf(*request), conversation.Until(3));
    EXPECT_EQ(request->turn_id(), 4 + (3 - turn) + 1);
  }
}

TEST(Rewind, AnotherInputGivesWhatAFreshRunGives) {
  const Conversation conversation;
  EngineHarness harness;
  const auto request = harness.Create();
  conversation.Play(harness, request);
  request->RewindToStartOfTurn(2);
  harness.Of(request).tokens.clear();
  EngineHarness::Begin(*request, EngineHarness::Prompt(11, 51), 9);
  harness.Finish();
  const auto history = Joined(conversation.Until(1), EngineHarness::Prompt(11, 51));
  EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(history, 9));
}

TEST(Rewind, OfACancelledTurnForgetsItsInput) {
  const Conversation conversation;
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.chunk_size_tokens = 4;
  for (const int steps : {0, 1, 4}) {
    EngineHarness harness(limits);
    const auto request = harness.Create();
    conversation.Play(harness, request, 0, 1);
    EngineHarness::Begin(*request, EngineHarness::Prompt(13, 7), 20);
    for (int i = 0; i < steps; ++i) harness.Step();
    request->CancelTurn(2);
    harness.Finish();
    request->RewindToStartOfTurn(2);
    EXPECT_EQ(TokensOf(*request), conversation.Until(1));
    conversation.Play(harness, request, 1, 3);
    EXPECT_EQ(TokensOf(*request), conversation.Until(3)) << steps;
  }
}

TEST(Rewind, ToTheFirstTurnLeavesARequestThatBeginsAnew) {
  const Conversation conversation;
  EngineHarness harness;
  const auto request = harness.Create();
  conversation.Play(harness, request);
  request->RewindToStartOfTurn(1);
  EXPECT_TRUE(request->tokens().empty());
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 64u);
  EXPECT_FALSE(request->CancelTurn(3)) << "there were turns, none is live";
  conversation.Play(harness, request);
  EXPECT_EQ(TokensOf(*request), conversation.Until(3));
}

TEST(Rewind, WorksAfterTheCacheWasTaken) {
  const Conversation conversation;
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 8;
  EngineHarness harness(limits);
  const auto request = harness.Create();
  conversation.Play(harness, request);
  const auto other = harness.Create();
  EngineHarness::Begin(*other, EngineHarness::Prompt(30), 1);
  harness.Finish();
  ASSERT_EQ(BlocksOf(harness, *request), 0u);
  request->RewindToStartOfTurn(3);
  conversation.Play(harness, request, 2);
  EXPECT_EQ(TokensOf(*request), conversation.Until(3));
}

TEST(Rewind, IsRefusedWithoutAChangeWhereItMakesNoSense) {
  EngineHarness harness;
  const auto request = harness.Create();
  const auto refused = [&](StatusCode code, TurnId id, const char* what) {
    ExpectRefused(harness, {request}, code, what, [&] { request->RewindToStartOfTurn(id); });
  };
  refused(StatusCode::kNotFound, 0, "before the first turn");
  refused(StatusCode::kNotFound, 1, "before the first turn");
  EngineHarness::Begin(*request, EngineHarness::Prompt(6), 2);
  refused(StatusCode::kInvalidState, 1, "queued");
  harness.Step();
  refused(StatusCode::kInvalidState, 1, "active");
  request->CancelTurn(1);
  refused(StatusCode::kInvalidState, 1, "with an event to take");
  harness.Finish();
  EngineHarness::Begin(*request, EngineHarness::Prompt(6), 2);
  harness.Finish();
  for (const TurnId id : {TurnId{0}, TurnId{3}, ~TurnId{0}})
    refused(StatusCode::kNotFound, id, "an id that is not there");
  request->RewindToStartOfTurn(2);
  refused(StatusCode::kNotFound, 2, "already rewound");
}

TEST(Rewind, BringsTheSeedBack) {
  EngineHarness harness;
  harness.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId>) {
    std::fill(logits.begin(), logits.begin() + 60, 0.0f);
    std::fill(logits.begin() + 60, logits.end(), -100.0f);
  };
  const auto request = harness.Create();
  const auto unseeded = request->CreateTurnOptions();
  unseeded->SetDoSample(true);
  unseeded->SetTopK(0);
  unseeded->SetMaxGeneratedTokens(10);
  const auto seeded = request->CreateTurnOptions();
  seeded->SetDoSample(true);
  seeded->SetMaxGeneratedTokens(10);
  seeded->SetSeed(5);
  request->BeginTurn(EngineHarness::Prompt(3), unseeded.get());
  harness.Finish();
  const std::vector<TokenId> first = TokensOf(*request);
  request->BeginTurn(EngineHarness::Prompt(3), seeded.get());
  harness.Finish();
  request->RewindToStartOfTurn(1);
  request->BeginTurn(EngineHarness::Prompt(3), unseeded.get());
  harness.Finish();
  EXPECT_EQ(TokensOf(*request), first) << "the seed of the turn that vanished must not stay";
}

}  // namespace
}  // namespace oga::testing

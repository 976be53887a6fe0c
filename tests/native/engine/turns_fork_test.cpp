// Forking: two requests with one past. Their tokens are those of two fresh runs, whatever they share and whoever ends
// first.
#include <gtest/gtest.h>

#include <cmath>

#include "native/engine/engine_state.h"

namespace oga::testing {
namespace {

std::vector<TokenId> Played(const std::vector<TokenId>& history, size_t tokens) {
  return Joined(history, EngineHarness::Reference(history, tokens));
}

// A request after one turn of `prompt_tokens` and `generated` tokens.
std::shared_ptr<Request> Parent(EngineHarness& harness, size_t prompt_tokens, size_t generated) {
  auto parent = harness.Create();
  EngineHarness::Begin(*parent, EngineHarness::Prompt(prompt_tokens), generated);
  harness.Finish();
  harness.Of(parent).tokens.clear();
  return parent;
}

TEST(Fork, SharesEveryBlockUntilSomebodyWrites) {
  EngineHarness harness;
  const auto parent = Parent(harness, 8, 3);  // 10 tokens in the cache: two full blocks and half a one
  const uint64_t free = harness.engine->GetStatistics().free_blocks;
  const auto child = parent->Fork();
  EXPECT_EQ(child->turn_id(), 1u);
  EXPECT_EQ(child->state(), RequestState::kTurnComplete);
  EXPECT_EQ(TokensOf(*child), TokensOf(*parent));
  EXPECT_EQ(child->max_session_tokens(), parent->max_session_tokens());
  EXPECT_EQ(BlocksOf(harness, *child), 3u);
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, free);
  EXPECT_EQ(EngineHarness::Begin(*child, EngineHarness::Prompt(1, 30), 1), 2u) << "turn ids go on";
  harness.Finish();
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, free - 1) << "only the half block was copied";
  child->Close();
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, free);
}

TEST(Fork, ParentAndChildGoOnIndependently) {
  // Around a block border: the cache holds one token less than the sequence.
  for (const size_t prompt_tokens : {5u, 6u, 7u, 8u, 9u}) {
    for (const bool together : {false, true}) {
      EngineHarness harness;
      const auto parent = Parent(harness, prompt_tokens, 3);
      const auto child = parent->Fork();
      const auto past = Played(EngineHarness::Prompt(prompt_tokens), 3);
      EngineHarness::Begin(*child, EngineHarness::Prompt(2, 30), 9);
      if (!together) harness.Finish();
      EngineHarness::Begin(*parent, EngineHarness::Prompt(3, 50), 9);
      harness.Finish();
      EXPECT_EQ(TokensOf(*child), Played(Joined(past, EngineHarness::Prompt(2, 30)), 9)) << prompt_tokens;
      EXPECT_EQ(TokensOf(*parent), Played(Joined(past, EngineHarness::Prompt(3, 50)), 9)) << prompt_tokens;
      EXPECT_EQ(harness.Of(child).endings.size(), 1u);
      EXPECT_EQ(harness.Of(child).endings[0].usage.prompt_tokens, 2u);
    }
  }
}

TEST(Fork, OfAForkAndManyFromOneAllEqualFreshRuns) {
  EngineHarness harness;
  const auto parent = Parent(harness, 9, 2);
  const auto past = TokensOf(*parent);
  const auto child = parent->Fork();
  EngineHarness::Begin(*child, EngineHarness::Prompt(3, 11), 4);
  harness.Finish();
  const auto child_past = TokensOf(*child);
  Requests family{child->Fork(), child->Fork(), parent->Fork(), parent, child};
  for (size_t i = 0; i < family.size(); ++i) EngineHarness::Begin(*family[i], EngineHarness::Prompt(2, 20 + i), 6);
  harness.Finish();
  for (size_t i = 0; i < family.size(); ++i) {
    const bool of_child = i != 2 && i != 3;
    const auto history = Joined(of_child ? child_past : past, EngineHarness::Prompt(2, 20 + i));
    EXPECT_EQ(TokensOf(*family[i]), Played(history, 6)) << i;
    family[i]->Close();
  }
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 64u);
}

TEST(Fork, AChildOutlivesItsParent) {
  EngineHarness harness;
  const auto parent = Parent(harness, 6, 4);
  const auto past = TokensOf(*parent);
  const auto child = parent->Fork();
  EngineHarness::Begin(*child, EngineHarness::Prompt(2, 30), 12);
  harness.Step();
  harness.Step();
  parent->Close();
  harness.Finish();
  EXPECT_EQ(TokensOf(*child), Played(Joined(past, EngineHarness::Prompt(2, 30)), 12));
  child->Close();
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 64u);
}

TEST(Fork, AParentMayRewindIntoWhatItShares) {
  EngineHarness harness;
  const auto parent = Parent(harness, 6, 3);
  EngineHarness::Begin(*parent, EngineHarness::Prompt(4, 40), 3);
  harness.Finish();
  const auto past = TokensOf(*parent);
  const auto child = parent->Fork();
  parent->RewindToStartOfTurn(2);
  EngineHarness::Begin(*parent, EngineHarness::Prompt(5, 13), 5);
  EngineHarness::Begin(*child, EngineHarness::Prompt(1, 14), 5);
  harness.Finish();
  const auto first = Played(EngineHarness::Prompt(6), 3);
  EXPECT_EQ(TokensOf(*parent), Played(Joined(first, EngineHarness::Prompt(5, 13)), 5));
  EXPECT_EQ(TokensOf(*child), Played(Joined(past, EngineHarness::Prompt(1, 14)), 5));
}

TEST(Fork, AChildRewindsTheTurnsItTookOver) {
  EngineHarness harness;
  const auto parent = Parent(harness, 6, 3);
  EngineHarness::Begin(*parent, EngineHarness::Prompt(4, 40), 3);
  harness.Finish();
  const auto past = TokensOf(*parent);
  const auto child = parent->Fork();
  child->RewindToStartOfTurn(2);
  EXPECT_EQ(EngineHarness::Begin(*child, EngineHarness::Prompt(4, 40), 3), 3u);
  harness.Finish();
  EXPECT_EQ(TokensOf(*child), past);
  EXPECT_EQ(TokensOf(*parent), past);
}

TEST(Fork, HoldsUnderPressure) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 14;
  EngineHarness harness(limits);
  const auto parent = Parent(harness, 14, 4);
  const auto past = TokensOf(*parent);
  Requests family{parent};
  for (int i = 0; i < 4; ++i) family.push_back(parent->Fork());
  for (size_t i = 0; i < family.size(); ++i) EngineHarness::Begin(*family[i], EngineHarness::Prompt(3, 10 + i), 18);
  harness.Finish();
  for (size_t i = 0; i < family.size(); ++i) {
    EXPECT_EQ(TokensOf(*family[i]), Played(Joined(past, EngineHarness::Prompt(3, 10 + i)), 18)) << i;
    EXPECT_EQ(harness.Of(family[i]).endings.size(), i == 0 ? 2u : 1u);
  }
  EXPECT_GT(harness.engine->GetStatistics().preemptions, 0u);
  for (const auto& request : family) request->Close();
  EXPECT_EQ(harness.engine->GetStatistics().free_blocks, 14u);
}

TEST(Fork, OfARequestWithoutACacheRecomputes) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 8;
  EngineHarness harness(limits);
  const auto parent = Parent(harness, 9, 3);
  const auto past = TokensOf(*parent);
  const auto other = harness.Create();
  EngineHarness::Begin(*other, EngineHarness::Prompt(30), 1);
  harness.Finish();
  ASSERT_EQ(BlocksOf(harness, *parent), 0u);
  other->Close();
  const auto child = parent->Fork();
  EngineHarness::Begin(*child, EngineHarness::Prompt(2, 8), 5);
  harness.Finish();
  EXPECT_EQ(TokensOf(*child), Played(Joined(past, EngineHarness::Prompt(2, 8)), 5));
}

TEST(Fork, BeyondTheResidentsThatAreAllowedItSharesNothingAndStillWorks) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.max_resident_requests = 2;
  EngineHarness harness(limits);
  const auto parent = Parent(harness, 9, 3);
  const auto past = TokensOf(*parent);
  Requests children;
  for (int i = 0; i < 4; ++i) children.push_back(parent->Fork());
  EXPECT_EQ(harness.engine->GetStatistics().resident_requests, 2u);
  for (size_t i = 0; i < children.size(); ++i) EngineHarness::Begin(*children[i], EngineHarness::Prompt(2, 8 + i), 5);
  harness.Finish();
  for (size_t i = 0; i < children.size(); ++i) {
    EXPECT_EQ(TokensOf(*children[i]), Played(Joined(past, EngineHarness::Prompt(2, 8 + i)), 5)) << i;
  }
}

TEST(Fork, AFailedStepThatWasToCopyTheTailLeavesNoTrace) {
  EngineHarness harness;
  const auto parent = Parent(harness, 6, 1);
  const auto past = TokensOf(*parent);
  const auto child = parent->Fork();
  EngineHarness::Begin(*child, EngineHarness::Prompt(2, 8), 4);
  for (int i = 0; i < 3; ++i) harness.executor->outcomes.push_back({.status = ExecutionStatus::kRetryable});
  harness.Finish();
  EXPECT_EQ(TokensOf(*child), Played(Joined(past, EngineHarness::Prompt(2, 8)), 4));
  EngineHarness::Begin(*parent, EngineHarness::Prompt(2, 9), 4);
  harness.Finish();
  EXPECT_EQ(TokensOf(*parent), Played(Joined(past, EngineHarness::Prompt(2, 9)), 4));
}

// Whether a tail is shared is noted when a step is planned. A note that outlived its turn made the cache refuse a plan.
TEST(Fork, ATurnThatNeverWroteItsSharedTailDoesNotRememberIt) {
  for (const bool rewinds : {false, true}) {
    EngineHarness harness;
    const auto parent = Parent(harness, 6, 1);
    const auto child = parent->Fork();
    EngineHarness::Begin(*child, EngineHarness::Prompt(2), 1);
    harness.executor->outcomes.push_back({.status = ExecutionStatus::kRetryable});
    harness.Step();
    child->CancelTurn(2);
    harness.Finish();
    if (rewinds) child->RewindToStartOfTurn(1);
    parent->Close();
    const auto other = harness.Create();
    EngineHarness::Begin(*other, EngineHarness::Prompt(2), 1);
    harness.Finish();
    const auto history = Joined(TokensOf(*child), EngineHarness::Prompt(2, 5));
    EngineHarness::Begin(*child, EngineHarness::Prompt(2, 5), 3);
    harness.Finish();
    EXPECT_EQ(TokensOf(*child), Played(history, 3));
    EXPECT_EQ(harness.Of(child).endings.back().finish_reason, FinishReason::kMaxGeneratedTokens);
  }
}

TEST(Fork, DrawsDifferently) {
  EngineHarness harness;
  harness.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId>) {
    std::fill(logits.begin(), logits.begin() + 60, 0.0f);
    std::fill(logits.begin() + 60, logits.end(), -100.0f);
  };
  const auto parent = harness.Create();
  const auto begin = [&](const std::shared_ptr<Request>& request, bool seeded) {
    const auto options = request->CreateTurnOptions();
    options->SetDoSample(true);
    options->SetTopK(0);
    options->SetMaxGeneratedTokens(16);
    if (seeded) options->SetSeed(3);
    request->BeginTurn(EngineHarness::Prompt(2), options.get());
  };
  begin(parent, false);
  harness.Finish();
  for (const bool seeded : {false, true}) {
    const auto child = parent->Fork();
    const auto sibling = parent->Fork();
    begin(child, seeded);
    begin(sibling, seeded);
    harness.Finish();
    EXPECT_EQ(TokensOf(*child) == TokensOf(*sibling), seeded) << "only what is seeded alike is drawn alike";
  }
  const auto child = parent->Fork();
  child->RewindToStartOfTurn(1);
  begin(child, false);
  harness.Finish();
  EXPECT_NE(TokensOf(*child), TokensOf(*parent)) << "also where it repeats a turn of its parent";
}

TEST(Fork, IsRefusedWithoutAChangeWhereThereIsNoSequenceAtRest) {
  EngineHarness harness;
  const auto request = harness.Create();
  const auto refused = [&](const char* what) {
    ExpectRefused(harness, {request}, StatusCode::kInvalidState, what, [&] { request->Fork(); });
    EXPECT_EQ(harness.engine->GetStatistics().live_requests, 1u);
  };
  refused("created");
  EngineHarness::Begin(*request, EngineHarness::Prompt(6), 2);
  refused("queued");
  harness.Step();
  refused("active");
  request->CancelTurn(1);
  refused("with an event to take");
  harness.Finish();
  harness.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId>) { logits[0] = std::nanf(""); };
  EngineHarness::Begin(*request, EngineHarness::Prompt(6), 2);
  harness.Finish();
  refused("failed");
}

}  // namespace
}  // namespace oga::testing

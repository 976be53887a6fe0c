// Log-probabilities of turns, through the engine: of what distribution, on which events, and that neither batch, chunks,
// cache nor rollbacks change them.
#include <gtest/gtest.h>

#include <cmath>

#include "native/engine/sampling_host.h"

namespace oga::testing {
namespace {

using search::ComputeLogprobs;
using search::TokenLogprobs;

std::vector<float> LogitsAfter(std::span<const TokenId> history) {
  std::vector<float> logits(kVocab);
  HashedLogits(logits, history);
  return logits;
}

void ExpectEqual(const TokenLogprobs& found, const TokenLogprobs& wanted) {
  EXPECT_EQ(found.tokens, wanted.tokens);
  EXPECT_EQ(found.logprobs, wanted.logprobs);
  EXPECT_EQ(found.ranks, wanted.ranks);
}

struct Told {
  Tokens tokens;
  std::vector<std::shared_ptr<const TokenLogprobs>> logprobs;
  std::shared_ptr<const PromptLogprobs> prompt;
  size_t events_with_prompt = 0;
  Event ending;
};

std::map<const Request*, Told> Read(Host& host) {
  const auto buffer = host.engine()->CreateEventBuffer(64);
  std::map<const Request*, Told> all;
  while (host.engine()->HasPendingRequests()) {
    host.engine()->Run(*buffer);
    for (size_t i = 0; i < buffer->size(); ++i) {
      const Event& event = *buffer->at(i);
      Told& told = all[event.request.get()];
      if (event.prompt_logprobs != nullptr) {
        told.prompt = event.prompt_logprobs;
        ++told.events_with_prompt;
      }
      if (event.flags & event_flags::kToken) {
        told.tokens.push_back(event.token);
        told.logprobs.push_back(event.logprobs);
      }
      if (event.flags & event_flags::kTurnFinished) told.ending = event;
    }
  }
  return all;
}

Told Tell(Host& host, const Tokens& input, const Configure& configure) {
  const auto request = host.Create();
  host.Begin(*request, input, configure);
  return Read(host)[request.get()];
}

const Tokens kInput{5, 6, 7, 8, 9};

TEST(Logprobs, AreTheModelsOwnWhateverTheOptionsOfTheTurn) {
  Host host(HashedLogits);
  const Told told = Tell(host, kInput, [](TurnOptions& options) {
    options.SetMaxGeneratedTokens(6);
    options.SetLogprobs(4, false);
    options.SetLogprobTokens({0, 63});
    options.SetRepetitionPenalty(1.7f);
    options.SetTemperature(0.3f);
    options.SetDoSample(true);
    options.SetAllowedTokens({1, 2, 3});
  });
  Tokens history = kInput;
  ASSERT_EQ(told.tokens.size(), 6u);
  for (size_t i = 0; i < told.tokens.size(); ++i) {
    ExpectEqual(*told.logprobs[i], ComputeLogprobs(LogitsAfter(history), told.tokens[i], 4, Tokens{0, 63}));
    history.push_back(told.tokens[i]);
  }
}

TEST(Logprobs, OfTheProcessedDistributionKnowWhatWasExcluded) {
  Host host(HashedLogits);
  const Told told = Tell(host, kInput, [](TurnOptions& options) {
    options.SetMaxGeneratedTokens(3);
    options.SetLogprobs(20, true);
    options.SetAllowedTokens({1, 2, 3});
    options.SetLogprobTokens({9});
  });
  for (const auto& logprobs : told.logprobs) {
    ASSERT_EQ(logprobs->tokens.size(), 1u + 3 + 1) << "only three tokens have a probability";
    double sum = 0;
    for (size_t i = 1; i <= 3; ++i) sum += std::exp(logprobs->logprobs[i]);
    EXPECT_NEAR(sum, 1.0, 1e-6);
    EXPECT_EQ(logprobs->logprobs.back(), -std::numeric_limits<float>::infinity());
  }
}

TEST(Logprobs, AreThereOnlyWhenAskedFor) {
  Host host(HashedLogits);
  const Told told = Tell(host, kInput, [](TurnOptions& options) { options.SetMaxGeneratedTokens(2); });
  for (const auto& logprobs : told.logprobs) EXPECT_EQ(logprobs, nullptr);
  EXPECT_EQ(told.prompt, nullptr);
}

TEST(Logprobs, AnUnsetOptionIsOffAgain) {
  Host host(HashedLogits);
  const Told told = Tell(host, kInput, [](TurnOptions& options) {
    options.SetMaxGeneratedTokens(1);
    options.SetLogprobs(3, false);
    options.SetLogprobs(-1, false);
    options.SetPromptLogprobs(3);
    options.SetPromptLogprobs(-1);
  });
  EXPECT_EQ(told.logprobs.front(), nullptr);
  EXPECT_EQ(told.prompt, nullptr);
}

TEST(PromptLogprobs, AreThoseOfOneWholePass) {
  Host host(HashedLogits);
  const Told told = Tell(host, kInput, [](TurnOptions& options) {
    options.SetMaxGeneratedTokens(3);
    options.SetPromptLogprobs(2);
  });
  ASSERT_NE(told.prompt, nullptr);
  EXPECT_EQ(told.events_with_prompt, 1u);
  ASSERT_EQ(told.prompt->size(), kInput.size());
  EXPECT_TRUE(told.prompt->front().tokens.empty()) << "nothing predicts the first token";
  for (size_t i = 1; i < kInput.size(); ++i) {
    const auto wanted = ComputeLogprobs(LogitsAfter(std::span(kInput).first(i)), kInput[i], 2, {});
    ExpectEqual((*told.prompt)[i], wanted);
  }
}

// A continuation's input is predicted from the last token before it, whatever of that is in the cache.
TEST(PromptLogprobs, OfAContinuationBeginAfterTheTurnsBefore) {
  for (const bool rewound : {false, true}) {
    Host host(HashedLogits);
    const auto request = host.Create();
    host.Begin(*request, kInput, [](TurnOptions& options) { options.SetMaxGeneratedTokens(4); });
    Read(host);
    if (rewound) {
      host.Begin(*request, {1, 2, 3}, [](TurnOptions& options) { options.SetMaxGeneratedTokens(2); });
      Read(host);
      request->RewindToStartOfTurn(2);
    }
    const Tokens before(request->tokens().begin(), request->tokens().end());
    const Tokens input{20, 21, 22};
    host.Begin(*request, input, [](TurnOptions& options) {
      options.SetMaxGeneratedTokens(2);
      options.SetPromptLogprobs(1);
    });
    const Told told = Read(host)[request.get()];
    ASSERT_EQ(told.prompt->size(), input.size());
    Tokens history = before;
    for (size_t i = 0; i < input.size(); ++i) {
      ExpectEqual((*told.prompt)[i], ComputeLogprobs(LogitsAfter(history), input[i], 1, {}));
      history.push_back(input[i]);
    }
  }
}

// Chunks, neighbours, a cache that holds the prompt already, a small pool that preempts: the same numbers.
TEST(PromptLogprobs, DoNotDependOnHowThePromptWasComputed) {
  Tokens input;
  for (TokenId i = 0; i < 90; ++i) input.push_back((i * 7) % 50);
  const Configure scored = [](TurnOptions& options) {
    options.SetMaxGeneratedTokens(2);
    options.SetPromptLogprobs(3);
    options.SetLogprobs(1, false);
  };
  Host alone(HashedLogits);
  const Told wanted = Tell(alone, input, scored);
  for (const uint32_t chunk : {0u, 1u, 5u}) {
    EngineLimits limits = EngineHarness::SmallLimits();
    limits.chunk_size_tokens = chunk;
    limits.num_blocks = 48;
    limits.prefix_caching = true;
    Host host(HashedLogits, limits);
    Tell(host, input, [](TurnOptions& options) { options.SetMaxGeneratedTokens(1); });  // fills the prefix cache
    std::vector<std::shared_ptr<Request>> requests;
    for (int i = 0; i < 3; ++i) {
      requests.push_back(host.Create());
      host.Begin(*requests.back(), input, scored);
    }
    auto all = Read(host);
    for (const auto& request : requests) {
      const Told& told = all[request.get()];
      EXPECT_EQ(told.tokens, wanted.tokens);
      ASSERT_EQ(told.prompt->size(), wanted.prompt->size());
      for (size_t i = 0; i < input.size(); ++i) ExpectEqual((*told.prompt)[i], (*wanted.prompt)[i]);
      EXPECT_EQ(told.ending.usage.cached_prompt_tokens, 0u);
    }
  }
}

TEST(PromptLogprobs, APromptOfOneTokenHasNothingToScore) {
  Host host(HashedLogits);
  const Told told = Tell(host, {5}, [](TurnOptions& options) {
    options.SetMaxGeneratedTokens(1);
    options.SetPromptLogprobs(2);
  });
  ASSERT_EQ(told.prompt->size(), 1u);
  EXPECT_TRUE(told.prompt->front().tokens.empty());
}

TEST(PromptLogprobs, ATurnThatEndsEarlyTellsWhatItHas) {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.chunk_size_tokens = 2;
  Host host(HashedLogits, limits);
  const auto request = host.Create();
  host.Begin(*request, kInput, [](TurnOptions& options) { options.SetPromptLogprobs(2); });
  const auto buffer = host.engine()->CreateEventBuffer(4);
  host.engine()->Run(*buffer);
  request->CancelTurn(1);
  const Told told = Read(host)[request.get()];
  EXPECT_EQ(told.prompt->size(), 3u) << "two tokens were computed, which predict the second and the third";
}

TEST(PromptLogprobs, APromptWithBadLogitsFailsItsTurnOnly) {
  Host host([](std::span<float> logits, std::span<const TokenId> history) {
    HashedLogits(logits, history);
    if (history.size() == 2 && history[0] == 5) logits[3] = std::numeric_limits<float>::quiet_NaN();
  });
  const auto bad = host.Create();
  const auto good = host.Create();
  const Configure scored = [](TurnOptions& options) {
    options.SetMaxGeneratedTokens(2);
    options.SetPromptLogprobs(0);
  };
  host.Begin(*bad, kInput, scored);
  host.Begin(*good, {6, 7, 8}, scored);
  auto all = Read(host);
  EXPECT_EQ(all[bad.get()].ending.finish_reason, FinishReason::kFailed);
  EXPECT_EQ(all[bad.get()].ending.failure, FailureKind::kBadLogits);
  EXPECT_EQ(all[good.get()].ending.finish_reason, FinishReason::kMaxGeneratedTokens);
}

TEST(Logprobs, IllegalValuesAreRefusedAndTheOldOnesStay) {
  Host host(HashedLogits);
  const auto request = host.Create();
  const auto options = request->CreateTurnOptions();
  options->SetLogprobs(5, true);
  for (const int32_t top : {-2, 21, 1 << 30}) {
    EXPECT_THROW(options->SetLogprobs(top, false), Error);
    EXPECT_THROW(options->SetPromptLogprobs(top), Error);
  }
  EXPECT_THROW(options->SetLogprobTokens({-1}), Error);
  EXPECT_THROW(options->SetLogprobTokens(Tokens(1025, 1)), Error);
  EXPECT_EQ(options->values().logprobs.top, 5);
  EXPECT_TRUE(options->values().logprobs.processed);
  options->SetLogprobTokens({kVocab});
  EXPECT_THROW(request->BeginTurn(kInput, options.get()), Error) << "beyond the vocabulary";
  EXPECT_EQ(request->state(), RequestState::kCreated);
}

TEST(PromptLogprobs, NeedAGraphThatGivesLogitsOfAnyToken) {
  ModelTraits traits = Host::Traits();
  traits.logits_of_any_token = false;
  Host host(HashedLogits, EngineHarness::SmallLimits(), traits);
  const auto request = host.Create();
  EXPECT_THROW(host.Begin(*request, kInput, [](TurnOptions& options) { options.SetPromptLogprobs(1); }), Error);
  EXPECT_EQ(host.Begin(*request, kInput, [](TurnOptions&) {}), 1u);
}

}  // namespace
}  // namespace oga::testing

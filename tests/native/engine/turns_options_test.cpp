// The options of a turn as the engine takes them: what the setters refuse, what BeginTurn refuses, and how lists of tokens
// and endings act.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "native/engine/sampling_host.h"

namespace oga::testing {
namespace {

TEST(TurnOptions, AnIllegalValueIsRefusedInTheSetterAndTheOldOneStays) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Host host(HashedLogits);
  const auto request = host.Create();
  const auto options = request->CreateTurnOptions();
  options->SetNumber("temperature", 0.5);
  const std::pair<const char*, double> illegal[] = {{"temperature", -0.1},
                                                    {"temperature", kNan},
                                                    {"temperature", kInf},
                                                    {"top_k", -1},
                                                    {"top_k", 2.5},
                                                    {"top_p", 1.0001},
                                                    {"top_p", kNan},
                                                    {"min_p", 1.1},
                                                    {"min_p", -0.1},
                                                    {"typical_p", 1.5},
                                                    {"xtc_probability", -1},
                                                    {"top_n_sigma", -1},
                                                    {"repetition_penalty", 0},
                                                    {"presence_penalty", kInf},
                                                    {"dry_base", 0.5},
                                                    {"dry_allowed_length", 0},
                                                    {"seed", -1},
                                                    {"seed", 0.5},
                                                    {"max_generated_tokens", -1}};
  for (const auto& [name, value] : illegal) {
    try {
      options->SetNumber(name, value);
      ADD_FAILURE() << name << " = " << value << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(error.message().find(Message(name, " is ")), 0u) << error.message();
    }
  }
  EXPECT_THROW(options->SetNumber("ignore_eos", 1), Error);
  EXPECT_THROW(options->SetBool("top_k", true), Error);
  EXPECT_THROW(options->SetBool("topk", true), Error);
  EXPECT_EQ(options->values().temperature, 0.5f);
  EXPECT_FALSE(options->values().top_k || options->values().min_p || options->values().seed);
}

TEST(TurnOptions, NumbersByNameAndByTypeAreTheSame) {
  Host host(HashedLogits);
  const auto request = host.Create();
  const auto by_name = request->CreateTurnOptions();
  const auto by_type = request->CreateTurnOptions();
  by_name->SetNumber("top_p", 0.9);
  by_name->SetNumber("max_generated_tokens", 7);
  by_name->SetNumber("no_repeat_ngram_size", 3);
  by_name->SetNumber("seed", 9007199254740992.0);
  by_name->SetBool("ignore_eos", true);
  by_type->SetTopP(0.9f);
  by_type->SetMaxGeneratedTokens(7);
  by_type->SetNoRepeatNgramSize(3);
  by_type->SetSeed(uint64_t{1} << 53);
  by_type->SetIgnoreEos(true);
  EXPECT_EQ(by_name->values().top_p, by_type->values().top_p);
  EXPECT_EQ(by_name->values().max_generated_tokens, by_type->values().max_generated_tokens);
  EXPECT_EQ(by_name->values().no_repeat_ngram_size, by_type->values().no_repeat_ngram_size);
  EXPECT_EQ(by_name->values().seed, by_type->values().seed);
  EXPECT_EQ(by_name->values().ignore_eos, by_type->values().ignore_eos);
}

// --- Lists -------------------------------------------------------------------------------------------------------------

TEST(TurnOptions, IdsBeyondTheVocabularyAreRefusedWhenTheTurnBeginsAndNothingChanges) {
  Host host(HashedLogits);
  const auto request = host.Create();
  const std::pair<const char*, Configure> lists[] = {
      {"logit_bias",
       [](TurnOptions& options) {
         options.SetLogitBias({{kVocab, 1.0f}});
       }},
      {"stop_tokens",
       [](TurnOptions& options) {
         options.SetStopTokens({1, kVocab});
       }},
      {"banned_sequences",
       [](TurnOptions& options) {
         options.SetBannedSequences({{1, kVocab}});
       }},
      {"allowed_tokens", [](TurnOptions& options) { options.SetAllowedTokens({kVocab}); }},
      {"dry_breakers", [](TurnOptions& options) { options.SetDryBreakers({kVocab}); }}};
  for (const auto& [name, configure] : lists) {
    try {
      host.Begin(*request, {1, 2}, configure);
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(error.message(), Message(name, " names token 64; the vocabulary has ids 0 to 63"));
    }
  }
  EXPECT_EQ(request->tokens().size(), 0u);
  EXPECT_EQ(host.Begin(*request, {1, 2}, [](TurnOptions& options) { options.SetMaxGeneratedTokens(1); }), 1u);
}

TEST(TurnOptions, ListsThatAreIllegalAloneAreRefusedInTheSetterAndTheOldOnesStay) {
  Host host(HashedLogits);
  const auto request = host.Create();
  const auto options = request->CreateTurnOptions();
  options->SetLogitBias({{3, 1.0f}});
  options->SetStopTokens({4});
  options->SetBannedSequences({{5, 6}});
  EXPECT_THROW(options->SetLogitBias({{3, std::nanf("")}}), Error);
  EXPECT_THROW(options->SetLogitBias({{3, 1.0f}, {3, 2.0f}}), Error);
  EXPECT_THROW(options->SetStopTokens({7, -1}), Error);
  EXPECT_THROW(options->SetBannedSequences({{1}, {}}), Error);
  EXPECT_THROW(options->SetAllowedTokens({-5}), Error);
  EXPECT_THROW(options->SetDryBreakers({-5}), Error);
  EXPECT_EQ(options->values().logit_bias.at(0).bias, 1.0f);
  EXPECT_EQ(options->values().stop_tokens, (Tokens{4}));
  EXPECT_EQ(options->values().banned_sequences, (std::vector<Tokens>{{5, 6}}));
  EXPECT_TRUE(options->values().allowed_tokens.empty());
  options->Reset();
  EXPECT_TRUE(options->values().stop_tokens.empty());
}

TEST(TurnOptions, BiasBansAndAllowedTokensSteerTheOutput) {
  Host host(NegativeLogits);
  const auto generate = [&](const Configure& configure) {
    return host
        .Generate({1},
                  [&](TurnOptions& options) {
                    options.SetMaxGeneratedTokens(4);
                    configure(options);
                  })
        .tokens;
  };
  EXPECT_EQ(generate([](TurnOptions&) {}), (Tokens{3, 3, 3, 3}));
  EXPECT_EQ(generate([](TurnOptions& options) {
              options.SetLogitBias({{3, -5.0f}, {9, 1.0f}});
            }),
            (Tokens{9, 9, 9, 9}));
  EXPECT_EQ(generate([](TurnOptions& options) {
              options.SetBannedSequences({{3, 3}});
            }),
            (Tokens{3, 4, 3, 4}))
      << "only a second 3 in a row is banned";
  EXPECT_EQ(generate([](TurnOptions& options) {
              options.SetBannedSequences({{3}, {1, 4}});
            }),
            (Tokens{0, 4, 4, 4}))
      << "the prompt is part of the sequence";
  EXPECT_EQ(generate([](TurnOptions& options) { options.SetAllowedTokens({20, 4}); }), (Tokens{4, 4, 4, 4}));
  EXPECT_EQ(generate([](TurnOptions& options) { options.SetNoRepeatNgramSize(2); }), (Tokens{3, 3, 4, 3}));
}

// --- OB-18: EOS ids, stop tokens and the minimum -----------------------------------------------------------------------

// The third output token of a one-token prompt is one of the EOS ids; else 7.
void EosThird(std::span<float> logits, std::span<const TokenId> history) {
  std::fill(logits.begin(), logits.end(), 0.0f);
  logits[history.size() == 3 ? kEos + 1 : 7] = 5.0f;
}

// EOS ids first, then 7.
void AlwaysEos(std::span<float> logits, std::span<const TokenId>) {
  std::fill(logits.begin(), logits.end(), 0.0f);
  for (TokenId token = kEos - 1; token <= kEos + 1; ++token) logits[static_cast<size_t>(token)] = 9.0f;
  logits[7] = 5.0f;
}

TEST(TurnOptions, NoEosIdIsChosenBelowTheMinimumAndTheNextTokenMayBeOne) {
  const std::vector<Tokens> orders{{kEos, kEos + 1, kEos - 1}, {kEos - 1, kEos, kEos + 1}, {kEos + 1, kEos - 1, kEos}};
  for (const Tokens& order : orders) {
    ModelTraits traits = Host::Traits();
    traits.eos_token_ids = order;
    Host host(AlwaysEos, EngineHarness::SmallLimits(), traits);
    for (const uint64_t minimum : {0u, 1u, 3u, 10u}) {
      const Collected turn = host.Generate({1}, [&](TurnOptions& options) { options.SetMinGeneratedTokens(minimum); });
      EXPECT_EQ(turn.tokens, Tokens(minimum, 7));
      ASSERT_EQ(turn.endings.size(), 1u);
      EXPECT_EQ(turn.endings[0].finish_reason, FinishReason::kEos);
      EXPECT_EQ(turn.endings[0].usage.generated_tokens, minimum);
    }
  }
}

TEST(TurnOptions, IgnoredEosIdsAreOrdinaryTokens) {
  Host host(EosThird);
  const Collected turn = host.Generate({1}, [](TurnOptions& options) {
    options.SetIgnoreEos(true);
    options.SetMaxGeneratedTokens(6);
  });
  EXPECT_EQ(turn.tokens, (Tokens{7, 7, kEos + 1, 7, 7, 7}));
  EXPECT_EQ(turn.endings[0].finish_reason, FinishReason::kMaxGeneratedTokens);
}

TEST(TurnOptions, AStopTokenEndsTheTurnAlsoWhenEosIdsAreIgnored) {
  Host host(EosThird);
  const auto request = host.Create();
  host.Begin(*request, {1}, [](TurnOptions& options) {
    options.SetIgnoreEos(true);
    options.SetStopTokens({5, kEos + 1});
  });
  const Collected turn = host.RunToEnd()[request.get()];
  EXPECT_EQ(turn.tokens, (Tokens{7, 7, kEos + 1}));
  ASSERT_EQ(turn.endings.size(), 1u);
  EXPECT_EQ(turn.endings[0].finish_reason, FinishReason::kEos);
  EXPECT_EQ(turn.endings[0].usage.generated_tokens, 3u);
  EXPECT_EQ(request->tokens().size(), 4u);
}

TEST(TurnOptions, TheMinimumKeepsStopTokensBackToo) {
  Host host(NegativeLogits);
  const Collected turn = host.Generate({1}, [](TurnOptions& options) {
    options.SetStopTokens({3});
    options.SetMinGeneratedTokens(2);
  });
  EXPECT_EQ(turn.tokens, (Tokens{4, 4, 3}));
  EXPECT_EQ(turn.endings[0].finish_reason, FinishReason::kEos);
}

TEST(TurnOptions, AStopTokenIsKeptAndTheNextTurnContinuesAfterIt) {
  Host host(NegativeLogits);
  const auto request = host.Create();
  host.Begin(*request, {1, 2}, [](TurnOptions& options) { options.SetStopTokens({3}); });
  const Collected first = host.RunToEnd()[request.get()];
  EXPECT_EQ(first.tokens, (Tokens{3}));
  EXPECT_EQ(first.endings[0].flags, event_flags::kToken | event_flags::kTurnFinished);
  EXPECT_EQ(first.endings[0].finish_reason, FinishReason::kEos);
  host.Begin(*request, {9}, [](TurnOptions& options) { options.SetMaxGeneratedTokens(1); });
  host.RunToEnd();
  EXPECT_EQ(Tokens(request->tokens().begin(), request->tokens().end()), (Tokens{1, 2, 3, 9, 3}));
}

TEST(TurnOptions, AStopTokenWinsOverALimitReachedByTheSameToken) {
  Host host(NegativeLogits);
  const Collected turn = host.Generate({1}, [](TurnOptions& options) {
    options.SetStopTokens({3});
    options.SetMaxGeneratedTokens(1);
  });
  EXPECT_EQ(turn.endings[0].finish_reason, FinishReason::kEos);
}

TEST(TurnOptions, AnEosIdAmongTheStopTokensEndsTheTurnUnseenAsEver) {
  Host host(AlwaysEos);
  const Collected turn = host.Generate({1}, [](TurnOptions& options) { options.SetStopTokens({kEos - 1}); });
  EXPECT_TRUE(turn.tokens.empty());
  EXPECT_EQ(turn.endings[0].finish_reason, FinishReason::kEos);
}

// --- OB-22: nothing is left to choose ----------------------------------------------------------------------------------

TEST(TurnOptions, ATurnThatRunsOutOfTokensFailsAloneAndCanBeRewound) {
  Host host(HashedLogits);
  const auto plain = [](TurnOptions& options) { options.SetMaxGeneratedTokens(12); };
  const Tokens expected = host.Generate({4, 5}, plain).tokens;
  const auto neighbour = host.Create();
  const auto dead_end = host.Create();
  host.Begin(*neighbour, {4, 5}, plain);
  const TurnId turn = host.Begin(*dead_end, {1}, [](TurnOptions& options) {
    options.SetAllowedTokens({5, 6, 7});
    options.SetNoRepeatNgramSize(1);
  });
  auto collected = host.RunToEnd();
  EXPECT_EQ(collected[neighbour.get()].tokens, expected);
  const Collected& failed = collected[dead_end.get()];
  EXPECT_EQ(std::set<TokenId>(failed.tokens.begin(), failed.tokens.end()), (std::set<TokenId>{5, 6, 7}));
  ASSERT_EQ(failed.endings.size(), 1u);
  EXPECT_EQ(failed.endings[0].finish_reason, FinishReason::kFailed);
  EXPECT_EQ(failed.endings[0].flags, event_flags::kTurnFinished | event_flags::kFailed);
  EXPECT_EQ(failed.endings[0].error_code, EventErrorCode::kRequestUnserviceable);
  EXPECT_EQ(failed.endings[0].failure, FailureKind::kNoAllowedToken);
  dead_end->RewindToStartOfTurn(turn);
  host.Begin(*dead_end, {4, 5}, plain);
  EXPECT_EQ(host.RunToEnd()[dead_end.get()].tokens, expected);
}

TEST(TurnOptions, ABiasAgainstEveryTokenLeavesThemAll) {
  Host host(NegativeLogits);
  const Collected turn = host.Generate({1}, [](TurnOptions& options) {
    std::vector<TokenBias> biases;
    for (TokenId token = 0; token < kVocab; ++token) biases.push_back({token, -100.0f});
    options.SetLogitBias(biases);
    options.SetMinGeneratedTokens(3);
    options.SetMaxGeneratedTokens(3);
  });
  EXPECT_EQ(turn.tokens, (Tokens{3, 3, 3}));
}

TEST(TurnOptions, ATurnThatCouldNotEvenBeginIsRefused) {
  Host host(NegativeLogits);
  const auto request = host.Create();
  EXPECT_THROW(host.Begin(*request, {1},
                          [](TurnOptions& options) {
                            options.SetAllowedTokens({kEos, kEos + 1});
                            options.SetMinGeneratedTokens(20);
                          }),
               Error);
  EXPECT_EQ(request->turn_id(), 0u);
}

}  // namespace
}  // namespace oga::testing

// What the sampling options of a turn do to whole turns: penalties over turns and chunks, padding, and draws that depend on
// nobody else. The stages themselves are tested in tests/native/search.
#include <gtest/gtest.h>

#include "native/engine/sampling_host.h"

namespace oga::testing {
namespace {

// --- OB-17: penalties -------------------------------------------------------------------------------------------------

TEST(SamplingChain, TheRepetitionPenaltySeesThePromptTheOutputAndEarlierTurns) {
  for (const uint32_t chunk : {0u, 1u, 3u}) {
    EngineLimits limits = EngineHarness::SmallLimits();
    limits.chunk_size_tokens = chunk;
    Host host(NegativeLogits, limits);
    const auto penalty = [](TurnOptions& options) {
      options.SetRepetitionPenalty(1.5f);
      options.SetMaxGeneratedTokens(5);
    };
    const auto request = host.Create();
    host.Begin(*request, {3, 4, 4, 3, 4}, penalty);
    EXPECT_EQ(host.RunToEnd()[request.get()].tokens, (Tokens{0, 1, 2, 5, 6})) << "each token once";
    host.Begin(*request, {8, 7}, penalty);
    EXPECT_EQ(host.RunToEnd()[request.get()].tokens, (Tokens{9, 10, 11, 12, 13}));
  }
}

TEST(SamplingChain, PresenceAndFrequencySeeTheOutputOfTheTurnOnly) {
  Host host(NegativeLogits);
  const auto presence = [](TurnOptions& options) {
    options.SetPresencePenalty(0.3f);
    options.SetMaxGeneratedTokens(5);
  };
  const auto frequency = [](TurnOptions& options) {
    options.SetFrequencyPenalty(0.3f);
    options.SetMaxGeneratedTokens(5);
  };
  const auto request = host.Create();
  for (int turn = 0; turn < 2; ++turn) {
    host.Begin(*request, {3, 3, 3}, presence);
    EXPECT_EQ(host.RunToEnd()[request.get()].tokens, (Tokens{3, 4, 3, 3, 3})) << "3 is at -1.3 from its first time on";
    host.Begin(*request, {3, 3, 3}, frequency);
    EXPECT_EQ(host.RunToEnd()[request.get()].tokens, (Tokens{3, 4, 3, 0, 1})) << "3 is at -1.3, then at -1.6";
  }
}

TEST(SamplingChain, OptionsThatAreOffChangeNothing) {
  Host host(HashedLogits);
  const auto sampled = [&](const Configure& configure) {
    return host
        .Generate({5, 6, 7},
                  [&](TurnOptions& options) {
                    options.SetDoSample(true);
                    options.SetTopK(0);
                    options.SetTemperature(0.8f);
                    options.SetSeed(5);
                    options.SetMaxGeneratedTokens(20);
                    configure(options);
                  })
        .tokens;
  };
  const Tokens expected = sampled([](TurnOptions&) {});
  for (const SamplingOption& option : kSamplingOptions) {
    if (option.stage == OptionStage::kTurn || option.stage == OptionStage::kMode) continue;
    std::visit(
        [&](auto fields) {
          for (const double value : {static_cast<double>(fields.off), static_cast<double>(fields.also_off)}) {
            const bool greedy = (option.name == "temperature" && value == 0) || (option.name == "top_k" && value == 1);
            if (greedy || option.name == "temperature") continue;
            EXPECT_EQ(sampled([&](TurnOptions& options) { options.SetNumber(option.name, value); }), expected)
                << option.name << " = " << value;
          }
        },
        option.fields);
  }
}

// --- OB-15: domains, alone and mixed in one batch ----------------------------------------------------------------------

std::vector<std::pair<std::string, Configure>> GreedyForms() {
  const auto sampling = [](const Configure& configure) {
    return [configure](TurnOptions& options) {
      options.SetDoSample(true);
      options.SetMaxGeneratedTokens(8);
      configure(options);
    };
  };
  return {{"do_sample false", [](TurnOptions& options) { options.SetMaxGeneratedTokens(8); }},
          {"temperature 0", sampling([](TurnOptions& options) {
             options.SetTemperature(0.0f);
             options.SetTopP(0.5f);
             options.SetTopK(40);
             options.SetMinP(0.3f);
             options.SetSeed(3);
           })},
          {"temperature -0", sampling([](TurnOptions& options) { options.SetTemperature(-0.0f); })},
          {"temperature 1e-7", sampling([](TurnOptions& options) { options.SetTemperature(1e-7f); })},
          {"temperature 1e-4", sampling([](TurnOptions& options) { options.SetTemperature(1e-4f); })},
          {"top_k 1", sampling([](TurnOptions& options) { options.SetTopK(1); })},
          {"top_p 1e-7", sampling([](TurnOptions& options) { options.SetTopP(1e-7f); })},
          {"min_p 1", sampling([](TurnOptions& options) { options.SetMinP(1.0f); })},
          {"top_n_sigma 1e-7", sampling([](TurnOptions& options) { options.SetTopNSigma(1e-7f); })}};
}

std::vector<std::pair<std::string, Configure>> SampledForms() {
  std::vector<std::pair<std::string, Configure>> forms;
  const auto add = [&](const char* name, double value) {
    forms.emplace_back(Message(name, " = ", value), [name, value](TurnOptions& options) {
      options.SetDoSample(true);
      options.SetTopK(0);
      options.SetSeed(17);
      options.SetMaxGeneratedTokens(8);
      options.SetNumber(name, value);
    });
  };
  for (const double value : {0.3, 1.0, 2.0, 1e6}) add("temperature", value);
  for (const double value : {0.0, 2.0, double{kVocab}, kVocab + 1.0, 2147483647.0}) add("top_k", value);
  for (const char* name : {"top_p", "typical_p", "min_p", "xtc_probability"}) {
    for (const double value : {0.0, 1e-7, 0.4, 1.0}) add(name, value);
  }
  for (const double value : {0.0, 0.5, 1e6}) add("top_n_sigma", value);
  add("repetition_penalty", 1.3);
  add("presence_penalty", 1.0);
  add("frequency_penalty", -0.5);
  add("no_repeat_ngram_size", 2);
  add("dry_multiplier", 0.8);
  return forms;
}

TEST(SamplingChain, EveryWayToAskForTheMostLikelyTokenGivesIt) {
  Host host(HashedLogits);
  const Tokens greedy = host.Generate({9, 8}, GreedyForms()[0].second).tokens;
  ASSERT_EQ(greedy.size(), 8u);
  for (const auto& [name, configure] : GreedyForms())
    EXPECT_EQ(host.Generate({9, 8}, configure).tokens, greedy) << name;
}

TEST(SamplingChain, RowsOfOneBatchWithDifferentOptionsGenerateWhatEachDoesAlone) {
  std::vector<std::pair<std::string, Configure>> forms = GreedyForms();
  for (auto& form : SampledForms()) forms.push_back(std::move(form));
  Host alone(HashedLogits);
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.max_batch_size = 64;
  limits.max_resident_requests = 64;
  limits.num_blocks = 512;
  Host together(HashedLogits, limits);
  std::vector<std::shared_ptr<Request>> requests;
  for (const auto& [name, configure] : forms) {
    requests.push_back(together.Create());
    together.Begin(*requests.back(), {9, 8}, configure);
  }
  auto collected = together.RunToEnd();
  for (size_t i = 0; i < forms.size(); ++i) {
    const Collected& batched = collected[requests[i].get()];
    EXPECT_EQ(batched.tokens.size(), 8u) << forms[i].first;
    EXPECT_EQ(batched.tokens, alone.Generate({9, 8}, forms[i].second).tokens) << forms[i].first;
  }
}

// --- OB-53: logits wider than the tokenizer ----------------------------------------------------------------------------

// The padding is what the model likes best.
void PaddedLogits(std::span<float> logits, std::span<const TokenId> history) {
  HashedLogits(logits, history);
  for (size_t i = 50; i < logits.size(); ++i) logits[i] = i == 55 ? std::numeric_limits<float>::infinity() : 90.0f;
}

TEST(SamplingChain, PaddingOfTheVocabularyIsNeverSampled) {
  ModelTraits traits;
  traits.vocab_size = kVocab;
  traits.sampleable_tokens = 50;
  traits.eos_token_ids = {49};
  Host padded(PaddedLogits, EngineHarness::SmallLimits(), traits);
  Host plain(HashedLogits, EngineHarness::SmallLimits(), traits);
  std::vector<std::pair<std::string, Configure>> forms = GreedyForms();
  for (auto& form : SampledForms()) forms.push_back(std::move(form));
  forms.emplace_back("lists", [](TurnOptions& options) {
    options.SetLogitBias({{60, 100.0f}, {3, 1.0f}});
    options.SetStopTokens({60});
    options.SetBannedSequences({{3, 60}, {60, 3}});
    options.SetAllowedTokens({3, 4, 5, 60});
    options.SetMaxGeneratedTokens(8);
  });
  std::vector<std::shared_ptr<Request>> requests;
  for (const auto& [name, configure] : forms) {
    // The prompt holds padding too: nothing keeps a host from that.
    requests.push_back(padded.Create());
    padded.Begin(*requests.back(), {9, 60}, configure);
  }
  auto batched = padded.RunToEnd();
  for (size_t i = 0; i < forms.size(); ++i) {
    const Tokens& tokens = batched[requests[i].get()].tokens;
    for (const TokenId token : tokens) EXPECT_LT(token, 50) << forms[i].first;
    EXPECT_EQ(tokens, plain.Generate({9, 60}, forms[i].second).tokens) << forms[i].first;
  }
}

// --- Seeds -------------------------------------------------------------------------------------------------------------

void Everything(TurnOptions& options) {
  options.SetDoSample(true);
  options.SetSeed(99);
  options.SetTemperature(1.3f);
  options.SetTopK(30);
  options.SetTypicalP(0.97f);
  options.SetTopP(0.97f);
  options.SetMinP(0.02f);
  options.SetTopNSigma(3.0f);
  options.SetXtcProbability(0.5f);
  options.SetXtcThreshold(0.05f);
  options.SetRepetitionPenalty(1.1f);
  options.SetPresencePenalty(0.2f);
  options.SetFrequencyPenalty(0.1f);
  options.SetNoRepeatNgramSize(4);
  options.SetDryMultiplier(0.8f);
  options.SetMaxGeneratedTokens(30);
}

TEST(SamplingChain, ASeedReproducesAloneInABatchAndAfterPreemption) {
  const Tokens prompt{7, 3, 7, 3, 9};
  Host alone(HashedLogits);
  const Tokens expected = alone.Generate(prompt, Everything).tokens;
  ASSERT_EQ(expected.size(), 30u);
  EXPECT_EQ(alone.Generate(prompt, Everything).tokens, expected);

  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 24;
  limits.chunk_size_tokens = 2;
  Host crowded(HashedLogits, limits);
  std::vector<std::shared_ptr<Request>> seeded;
  for (int i = 0; i < 16; ++i) {
    const auto other = crowded.Create();
    crowded.Begin(*other, EngineHarness::Prompt(9, i), [](TurnOptions& options) {
      options.SetDoSample(true);
      options.SetMaxGeneratedTokens(25);
    });
    if (i % 4 != 0) continue;
    seeded.push_back(crowded.Create());
    crowded.Begin(*seeded.back(), prompt, Everything);
  }
  auto collected = crowded.RunToEnd();
  EXPECT_GT(crowded.engine()->GetStatistics().preemptions, 0u);
  for (const auto& request : seeded) EXPECT_EQ(collected[request.get()].tokens, expected);
}

TEST(SamplingChain, ARewoundTurnGeneratesTheSameAgain) {
  Host host(HashedLogits);
  const auto request = host.Create();
  host.Begin(*request, {1, 2, 3}, Everything);
  host.RunToEnd();
  const TurnId turn = host.Begin(*request, {4, 5}, Everything);
  const Tokens first = host.RunToEnd()[request.get()].tokens;
  request->RewindToStartOfTurn(turn);
  host.Begin(*request, {4, 5}, Everything);
  EXPECT_EQ(host.RunToEnd()[request.get()].tokens, first);
}

}  // namespace
}  // namespace oga::testing

// Seeds, minimums and penalties as a host sees them through whole turns: what is drawn depends on the seed and the
// position, and on nothing around the row.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "native/engine/engine_state.h"
#include "search/sampler.h"

namespace oga::testing {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

// Equal logits for every token but the EOS ids, so that each draw is one of sixty.
void Flat(std::span<float> logits, std::span<const TokenId>) {
  std::fill(logits.begin(), logits.begin() + 60, 0.0f);
  std::fill(logits.begin() + 60, logits.end(), -100.0f);
}

// Logits that differ in every position and with every history, some of them negative.
void Hashed(std::span<float> logits, std::span<const TokenId> history) {
  const auto hash = static_cast<uint64_t>(HashedNext(history, 1 << 30));
  for (size_t i = 0; i < 60; ++i) logits[i] = static_cast<float>((hash * (2 * i + 1) >> 9) % 1000) / 400.0f - 1.25f;
  std::fill(logits.begin() + 60, logits.end(), -100.0f);
}

struct Turn {
  std::optional<uint64_t> seed = std::nullopt;
  bool sampled = true;
  uint64_t tokens = 16;
  float temperature = 0.8f;
};

void BeginSampled(Request& request, const std::vector<TokenId>& input, const Turn& turn) {
  const auto options = request.CreateTurnOptions();
  options->SetDoSample(turn.sampled);
  if (turn.sampled) {
    options->SetTopK(0);
    options->SetTemperature(turn.temperature);
  }
  if (turn.seed) options->SetSeed(*turn.seed);
  options->SetMaxGeneratedTokens(turn.tokens);
  request.BeginTurn(input, options.get());
}

// What a request draws alone.
std::vector<TokenId> Alone(const std::vector<TokenId>& prompt, const Turn& turn) {
  EngineHarness harness;
  harness.executor->edit_logits = Hashed;
  const auto request = harness.Create();
  BeginSampled(*request, prompt, turn);
  harness.Finish();
  return harness.Of(request).tokens;
}

TEST(Seeds, TheSameSeedDrawsTheSameTokensAndEverySeedCounts) {
  std::vector<std::vector<TokenId>> streams;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, kHuge}) {
    const auto stream = Alone(EngineHarness::Prompt(4), {.seed = seed});
    EXPECT_EQ(stream.size(), 16u);
    EXPECT_EQ(Alone(EngineHarness::Prompt(4), {.seed = seed}), stream) << seed;
    streams.push_back(stream);
  }
  std::sort(streams.begin(), streams.end());
  EXPECT_EQ(std::adjacent_find(streams.begin(), streams.end()), streams.end());
}

TEST(Seeds, EachTokenIsTheDrawOfItsPosition) {
  EngineHarness harness;
  harness.executor->edit_logits = Hashed;
  const auto request = harness.Create();
  BeginSampled(*request, EngineHarness::Prompt(4), {.seed = 11});
  harness.Finish();
  SamplingSettings settings;
  settings.do_sample = true;
  settings.temperature = Turn{}.temperature;
  search::Sampler sampler(EngineHarness::kVocab);
  std::vector<float> logits(EngineHarness::kVocab);
  auto history = EngineHarness::Prompt(4);
  for (const TokenId token : harness.Of(request).tokens) {
    Hashed(logits, history);
    search::SampleInputs inputs;
    inputs.logits = logits;
    inputs.settings = &settings;
    inputs.seed = 11;
    inputs.position = history.size();
    ASSERT_EQ(sampler.Sample(inputs).token, token) << history.size();
    history.push_back(token);
  }
  EXPECT_EQ(history.size(), 20u);
}

TEST(Seeds, UnseededRequestsDiffer) {
  EngineHarness harness;
  harness.executor->edit_logits = Flat;
  const auto a = harness.Create();
  const auto b = harness.Create();
  BeginSampled(*a, EngineHarness::Prompt(4), {});
  BeginSampled(*b, EngineHarness::Prompt(4), {});
  harness.Finish();
  EXPECT_NE(harness.Of(a).tokens, harness.Of(b).tokens);
}

TEST(Seeds, AnUnseededTurnContinuesTheStreamOfASeededOne) {
  std::vector<std::vector<TokenId>> runs;
  for (int run = 0; run < 2; ++run) {
    EngineHarness harness;
    harness.executor->edit_logits = Hashed;
    const auto request = harness.Create();
    BeginSampled(*request, EngineHarness::Prompt(4), {.seed = 5});
    harness.Finish();
    BeginSampled(*request, EngineHarness::Prompt(3), {});
    harness.Finish();
    runs.push_back(harness.Of(request).tokens);
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(Seeds, AGreedyTurnInBetweenTakesNoDraws) {
  std::vector<std::vector<TokenId>> last_turns;
  for (const bool greedy_turn : {true, false}) {
    EngineHarness harness;
    harness.executor->edit_logits = Flat;
    const auto request = harness.Create();
    BeginSampled(*request, EngineHarness::Prompt(4), {.seed = 5, .tokens = 4});
    harness.Finish();
    if (greedy_turn) {
      BeginSampled(*request, EngineHarness::Prompt(2), {.sampled = false, .tokens = 3});
      harness.Finish();
      harness.Of(request).tokens.clear();
      BeginSampled(*request, EngineHarness::Prompt(1), {});
    } else {  // the same number of tokens, all given
      harness.Of(request).tokens.clear();
      BeginSampled(*request, EngineHarness::Prompt(6), {});
    }
    harness.Finish();
    last_turns.push_back(harness.Of(request).tokens);
  }
  EXPECT_EQ(last_turns[0], last_turns[1]);
}

TEST(Seeds, NeighboursAndTheRowOfTheBatchDoNotMatter) {
  const auto prompt = EngineHarness::Prompt(5);
  const Turn turn{.seed = 42, .tokens = 40};
  const auto expected = Alone(prompt, turn);
  for (const int before : {0, 1, 5}) {
    for (const bool neighbours_seeded : {false, true}) {
      EngineHarness harness;
      harness.executor->edit_logits = Hashed;
      Requests others;
      const auto join = [&] {
        others.push_back(harness.Create());
        const size_t i = others.size();
        BeginSampled(*others.back(), EngineHarness::Prompt(2 + i % 7, static_cast<TokenId>(i)),
                     {.seed = neighbours_seeded ? std::optional<uint64_t>(7 + i) : std::nullopt, .tokens = 3 + i % 5});
      };
      for (int i = 0; i < before; ++i) join();
      const auto request = harness.Create();
      const auto twin = harness.Create();
      BeginSampled(*request, prompt, turn);
      BeginSampled(*twin, prompt, turn);
      while (harness.engine->HasPendingRequests()) {
        if (others.size() < 15) join();
        if (others.size() % 4 == 3) others[others.size() / 2]->Close();
        harness.Step();
      }
      EXPECT_EQ(harness.Of(request).tokens, expected) << before << ' ' << neighbours_seeded;
      EXPECT_EQ(harness.Of(twin).tokens, expected) << "two copies in one batch draw alike";
    }
  }
}

TEST(Seeds, PreemptionChunkingAndRetriesDoNotMatter) {
  Turn turn{.tokens = 24};
  std::vector<std::vector<TokenId>> expected;
  for (int i = 0; i < 8; ++i) {
    turn.seed = i;
    expected.push_back(Alone(EngineHarness::Prompt(7 + i, i), turn));
  }
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.num_blocks = 20;
  limits.max_scheduled_tokens = 13;
  limits.chunk_size_tokens = 3;
  EngineHarness harness(limits);
  harness.executor->edit_logits = Hashed;
  for (int i = 0; i < 30; ++i) {
    harness.executor->outcomes.push_back({.status = i % 3 == 0 ? ExecutionStatus::kRetryable : ExecutionStatus::kOk});
  }
  Requests requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back(harness.Create());
    turn.seed = i;
    BeginSampled(*requests.back(), EngineHarness::Prompt(7 + i, i), turn);
  }
  harness.Finish();
  EXPECT_GT(harness.engine->GetStatistics().preemptions, 0u);
  EXPECT_GT(harness.engine->GetStatistics().rolled_back_steps, 0u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(harness.Of(requests[i]).tokens, expected[i]) << i;
}

TEST(Sampling, GreedyAndSampledRowsShareABatch) {
  EngineHarness harness;
  harness.executor->edit_logits = Hashed;
  const auto greedy = harness.Create();
  const auto sampled = harness.Create();
  const auto tiny = harness.Create();
  BeginSampled(*sampled, EngineHarness::Prompt(4), {.seed = 9});
  BeginSampled(*greedy, EngineHarness::Prompt(4), {.sampled = false});
  BeginSampled(*tiny, EngineHarness::Prompt(4), {.seed = 9, .temperature = 1e-7f});
  harness.Finish();
  EXPECT_EQ(harness.Of(greedy).tokens, Alone(EngineHarness::Prompt(4), {.sampled = false}));
  EXPECT_EQ(harness.Of(sampled).tokens, Alone(EngineHarness::Prompt(4), {.seed = 9}));
  EXPECT_EQ(harness.Of(tiny).tokens, harness.Of(greedy).tokens) << "a temperature next to nothing is argmax";
  EXPECT_NE(harness.Of(sampled).tokens, harness.Of(greedy).tokens);
}

// --- Minimum --------------------------------------------------------------------------------------------------------

TEST(MinGenerated, MasksEveryEosIdUntilItIsReached) {
  for (const uint64_t minimum : {0u, 1u, 5u}) {
    EngineHarness harness;
    harness.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId>) {
      logits[EngineHarness::kEos] = 30.0f;
      logits[EngineHarness::kEos - 1] = 20.0f;
    };
    const auto request = harness.Create();
    const auto options = request->CreateTurnOptions();
    options->SetMinGeneratedTokens(minimum);
    request->BeginTurn(EngineHarness::Prompt(4), options.get());
    harness.Finish();
    EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(EngineHarness::Prompt(4), minimum))
        << "the best of the others, and an EOS as the very next one";
    EXPECT_EQ(harness.Of(request).endings.at(0).finish_reason, FinishReason::kEos);
    EXPECT_EQ(harness.Of(request).endings.at(0).usage.generated_tokens, minimum);
  }
}

TEST(MinGenerated, CountsTheTurnAndNotTheRequest) {
  EngineHarness harness;
  harness.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId>) {
    logits[EngineHarness::kEos] = 30.0f;
  };
  const auto request = harness.Create();
  const auto options = request->CreateTurnOptions();
  options->SetMinGeneratedTokens(3);
  for (int turn = 0; turn < 2; ++turn) {
    request->BeginTurn(EngineHarness::Prompt(2), options.get());
    harness.Finish();
    EXPECT_EQ(harness.Of(request).endings.at(turn).usage.generated_tokens, 3u);
  }
}

TEST(MinGenerated, TakesTheLowestIdAmongEqualsWhileEosIsMasked) {
  EngineHarness harness;
  harness.executor->edit_logits = [](std::span<float> logits, std::span<const TokenId>) {
    std::fill(logits.begin(), logits.end(), 0.0f);
  };
  const auto request = harness.Create();
  const auto options = request->CreateTurnOptions();
  options->SetMinGeneratedTokens(2);
  options->SetMaxGeneratedTokens(2);
  request->BeginTurn(EngineHarness::Prompt(2), options.get());
  harness.Finish();
  EXPECT_EQ(harness.Of(request).tokens, (std::vector<TokenId>{0, 0}));
}

// --- Repetition penalty ---------------------------------------------------------------------------------------------

// The rule, said once: a penalized token's positive logit is divided, any other multiplied.
std::vector<TokenId> PenalizedReference(std::vector<TokenId> history, size_t tokens, float penalty) {
  std::vector<TokenId> generated;
  std::vector<float> logits(EngineHarness::kVocab);
  while (generated.size() < tokens) {
    Hashed(logits, history);
    for (TokenId token = 0; token < EngineHarness::kVocab; ++token) {
      if (std::find(history.begin(), history.end(), token) == history.end()) continue;
      logits[token] = logits[token] > 0 ? logits[token] / penalty : logits[token] * penalty;
    }
    generated.push_back(static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    history.push_back(generated.back());
  }
  return generated;
}

TEST(RepetitionPenalty, SeesPromptAndOutputOfTheWholeRequest) {
  for (const uint32_t chunk : {0u, 3u}) {
    for (const uint32_t blocks : {64u, 14u}) {
      EngineLimits limits = EngineHarness::SmallLimits();
      limits.chunk_size_tokens = chunk;
      limits.num_blocks = blocks;
      EngineHarness harness(limits);
      harness.executor->edit_logits = Hashed;
      Requests requests;
      for (int i = 0; i < 4; ++i) requests.push_back(harness.Create());
      for (int turn = 0; turn < 2; ++turn) {
        std::vector<std::vector<TokenId>> expected;
        for (int i = 0; i < 4; ++i) {
          const auto input = EngineHarness::Prompt(9, i);
          expected.push_back(PenalizedReference(Joined(TokensOf(*requests[i]), input), 10, 1.5f));
          const auto options = requests[i]->CreateTurnOptions();
          options->SetRepetitionPenalty(1.5f);
          options->SetMaxGeneratedTokens(10);
          requests[i]->BeginTurn(input, options.get());
        }
        harness.Finish();
        for (int i = 0; i < 4; ++i) {
          EXPECT_EQ(harness.Of(requests[i]).tokens, expected[i]) << turn;
          harness.Of(requests[i]).tokens.clear();
        }
      }
    }
  }
}

TEST(RepetitionPenalty, OfOneIsOff) {
  EngineHarness harness;
  harness.executor->edit_logits = Hashed;
  const auto request = harness.Create();
  const auto options = request->CreateTurnOptions();
  options->SetRepetitionPenalty(1.0f);
  options->SetMaxGeneratedTokens(12);
  request->BeginTurn(EngineHarness::Prompt(5), options.get());
  harness.Finish();
  EXPECT_EQ(harness.Of(request).tokens, Alone(EngineHarness::Prompt(5), {.sampled = false, .tokens = 12}));
}

}  // namespace
}  // namespace oga::testing

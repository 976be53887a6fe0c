// The prefix cache as a host sees it: tokens never change, usage and counters tell what was shared.
#include <gtest/gtest.h>

#include <random>

#include "native/engine/engine_harness.h"

namespace oga::testing {
namespace {

EngineLimits CachingLimits() {
  EngineLimits limits = EngineHarness::SmallLimits();
  limits.prefix_caching = true;
  return limits;
}

// Generates and closes; returns the cached prompt tokens.
uint64_t CachedOf(EngineHarness& harness, const std::vector<TokenId>& prompt, size_t tokens = 3, uint64_t salt = 0) {
  const auto request = harness.engine->CreateRequest({0, 0, salt});
  EngineHarness::Begin(*request, prompt, tokens);
  harness.Finish();
  EXPECT_EQ(harness.Of(request).tokens, EngineHarness::Reference(prompt, tokens));
  const uint64_t cached = harness.Of(request).endings.at(0).usage.cached_prompt_tokens;
  EXPECT_EQ(harness.Of(request).endings.at(0).usage.prompt_tokens, prompt.size());
  harness.collected.clear();
  request->Close();
  return cached;
}

TEST(PrefixCache, SharesWholeBlocksAndComputesAtLeastOneToken) {
  EngineHarness harness(CachingLimits());
  const auto prompt = EngineHarness::Prompt(13);
  EXPECT_EQ(CachedOf(harness, prompt), 0u);
  EXPECT_EQ(CachedOf(harness, prompt), 12u);
  const auto aligned = EngineHarness::Prompt(12);
  EXPECT_EQ(CachedOf(harness, aligned), 8u) << "one token is always computed";
  auto diverging = prompt;
  diverging[8] = 59;
  EXPECT_EQ(CachedOf(harness, diverging), 8u);
  auto early = prompt;
  early[5] = 59;
  EXPECT_EQ(CachedOf(harness, early), 4u);
  const EngineStatistics statistics = harness.engine->GetStatistics();
  EXPECT_EQ(statistics.prefix_queries, 5u);
  EXPECT_EQ(statistics.prefix_hits, 4u);
  EXPECT_EQ(statistics.prefix_tokens_saved, 12u + 8u + 8u + 4u);
}

TEST(PrefixCache, SharesWithARequestThatIsStillOpen) {
  EngineHarness harness(CachingLimits());
  const auto first = harness.Create();
  EngineHarness::Begin(*first, EngineHarness::Prompt(13), 20);
  harness.Step();
  EXPECT_EQ(CachedOf(harness, EngineHarness::Prompt(13)), 12u);
}

TEST(PrefixCache, SharesGeneratedText) {
  EngineHarness harness(CachingLimits());
  const auto prompt = EngineHarness::Prompt(5);
  CachedOf(harness, prompt, 6);
  auto replay = prompt;
  for (const TokenId token : EngineHarness::Reference(prompt, 6)) replay.push_back(token);
  EXPECT_EQ(CachedOf(harness, replay), 8u);
}

TEST(PrefixCache, ComputesACommonBeginningOnceForRequestsThatArriveTogether) {
  EngineHarness harness(CachingLimits());
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 6; ++i) {
    auto prompt = EngineHarness::Prompt(40);
    prompt.push_back(i);
    requests.push_back(harness.Create());
    EngineHarness::Begin(*requests.back(), prompt, 3);
  }
  harness.Finish();
  uint64_t cached = 0;
  for (int i = 0; i < 6; ++i) {
    auto prompt = EngineHarness::Prompt(40);
    prompt.push_back(i);
    EXPECT_EQ(harness.Of(requests[i]).tokens, EngineHarness::Reference(prompt, 3));
    cached += harness.Of(requests[i]).endings.at(0).usage.cached_prompt_tokens;
  }
  EXPECT_EQ(cached, 5u * 40u);
  EXPECT_EQ(harness.engine->GetStatistics().scheduled_tokens, 41u + 5u * 1u + 6u * 2u);
}

TEST(PrefixCache, DoesNotHoldBackWhatDoesNotShare) {
  EngineHarness harness(CachingLimits());
  const auto a = harness.Create();
  const auto b = harness.Create();
  EngineHarness::Begin(*a, EngineHarness::Prompt(20, 1), 3);
  EngineHarness::Begin(*b, EngineHarness::Prompt(20, 2), 3);
  harness.Step();
  EXPECT_EQ(harness.executor->last_rows, 2u);
}

TEST(PrefixCache, IsolatesSalts) {
  EngineHarness harness(CachingLimits());
  const auto prompt = EngineHarness::Prompt(13);
  EXPECT_EQ(CachedOf(harness, prompt, 3, 1), 0u);
  EXPECT_EQ(CachedOf(harness, prompt, 3, 2), 0u);
  EXPECT_EQ(CachedOf(harness, prompt, 3, 1), 12u);
}

TEST(PrefixCache, ServesRewindsForksAndContinuationsThatLostTheirCache) {
  EngineHarness harness(CachingLimits());
  const auto prompt = EngineHarness::Prompt(13);
  const auto request = harness.Create();
  EngineHarness::Begin(*request, prompt, 2);
  harness.Finish();
  request->RewindToStartOfTurn(1);
  EngineHarness::Begin(*request, prompt, 2);
  harness.Finish();
  EXPECT_EQ(harness.Of(request).endings.at(1).usage.cached_prompt_tokens, 12u);
  const auto fork = request->Fork();
  EngineHarness::Begin(*fork, {std::vector<TokenId>{5, 6, 7}}, 4);
  EngineHarness::Begin(*request, {std::vector<TokenId>{5, 6, 8}}, 4);
  harness.Finish();
  auto history = prompt;
  for (const TokenId token : EngineHarness::Reference(prompt, 2)) history.push_back(token);
  auto forked = history;
  forked.insert(forked.end(), {5, 6, 7});
  EXPECT_EQ(harness.Of(fork).tokens, EngineHarness::Reference(forked, 4));
}

TEST(PrefixCache, NeverBlocksAnAdmissionAndGivesEverythingBack) {
  EngineLimits limits = CachingLimits();
  limits.num_blocks = 12;
  EngineHarness harness(limits);
  for (int i = 0; i < 20; ++i) CachedOf(harness, EngineHarness::Prompt(30, i), 5);
  const EngineStatistics statistics = harness.engine->GetStatistics();
  EXPECT_EQ(statistics.free_blocks, 12u);
  EXPECT_GT(statistics.prefix_evictions, 0u);
  harness.engine->DropPrefixCache();
  EXPECT_EQ(harness.engine->GetStatistics().cached_blocks, 0u);
}

TEST(PrefixCache, OffMeansOff) {
  EngineHarness harness;
  CachedOf(harness, EngineHarness::Prompt(13));
  EXPECT_EQ(CachedOf(harness, EngineHarness::Prompt(13)), 0u);
  EXPECT_EQ(harness.engine->GetStatistics().cached_blocks, 0u);
  EXPECT_FALSE(harness.engine->GetCapabilities().prefix_caching);
}

// Prompts that are nearly the same: swapped blocks, the same tokens in another order, another parent, another salt. Each
// is compared with what its history alone determines.
TEST(PrefixCache, NearTwinsAreNeverTakenForOneAnother) {
  EngineLimits limits = CachingLimits();
  limits.num_blocks = 24;
  for (const bool weak : {false, true}) {
    EngineHarness harness(limits);
    if (weak) {
      EngineParts parts;
      parts.limits = limits;
      parts.traits.vocab_size = EngineHarness::kVocab;
      parts.block_hash = [](const HashKey&, const BlockHash&, uint64_t, std::span<const TokenId>) noexcept {
        return BlockHash{1, 1};
      };
      parts.validate = true;
      auto scripted = std::make_unique<ScriptedExecutor>(limits, EngineHarness::kVocab, EngineHarness::Next);
      harness.executor = scripted.get();
      parts.executor = std::move(scripted);
      harness.engine = Engine::Create(std::move(parts));
      harness.buffer = harness.engine->CreateEventBuffer(64);
    }
    std::mt19937 random(11);
    uint64_t cached = 0;
    for (int pair = 0; pair < 500; ++pair) {
      auto prompt = EngineHarness::Prompt(16 + random() % 9, static_cast<TokenId>(random() % 3));
      switch (random() % 4) {
        case 0: std::swap_ranges(prompt.begin(), prompt.begin() + 4, prompt.begin() + 4); break;
        case 1: std::shuffle(prompt.begin() + 4, prompt.begin() + 8, random); break;
        case 2: prompt[random() % 4] = 59; break;
        default: break;
      }
      cached += CachedOf(harness, prompt, 2, random() % 2);
    }
    EXPECT_GT(cached, 500u) << "the test means nothing without hits";
  }
}

TEST(PrefixCache, HitsAtEveryBlockBorderAndBeyond) {
  for (size_t length = 1; length <= 3 * 4 + 1; ++length) {
    EngineHarness harness(CachingLimits());
    const auto prompt = EngineHarness::Prompt(length);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(CachedOf(harness, prompt), i == 0 ? 0 : (length - 1) / 4 * 4) << length;
    }
    const auto a = harness.Create();
    const auto b = harness.Create();
    EngineHarness::Begin(*a, prompt, 3);
    EngineHarness::Begin(*b, prompt, 3);
    harness.Finish();
    EXPECT_EQ(harness.Of(a).tokens, EngineHarness::Reference(prompt, 3));
    EXPECT_EQ(harness.Of(b).tokens, EngineHarness::Reference(prompt, 3));
  }
}

}  // namespace
}  // namespace oga::testing

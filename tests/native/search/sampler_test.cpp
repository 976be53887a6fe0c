#include "search/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/check.h"
#include "native/search/reference_sampler.h"

namespace oga::search {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using Row = std::vector<float>;
using Tokens = std::vector<TokenId>;

SamplingSettings Greedy() { return {}; }

SamplingSettings Sampling(float temperature, int32_t top_k = 0, float top_p = 1.0f) {
  SamplingSettings settings;
  settings.greedy = false;
  settings.temperature = temperature;
  settings.top_k = top_k;
  settings.top_p = top_p;
  return settings;
}

struct Extras {
  Tokens penalized;
  Tokens masked;
  uint64_t seed = 1;
  uint64_t position = 0;
};

SampleOutcome SampleRow(const Row& row, const SamplingSettings& settings, const Extras& extras = {}) {
  Sampler sampler(static_cast<int32_t>(row.size()));
  return sampler.Sample({row, &settings, extras.penalized, extras.masked, extras.seed, extras.position});
}

TokenId TokenOf(const Row& row, const SamplingSettings& settings, const Extras& extras = {}) {
  const SampleOutcome outcome = SampleRow(row, settings, extras);
  EXPECT_EQ(outcome.status, SampleStatus::kOk);
  return outcome.token;
}

// The tokens that appear in a thousand draws.
std::vector<bool> Support(const Row& row, const SamplingSettings& settings, Extras extras = {}) {
  std::vector<bool> seen(row.size());
  for (extras.position = 0; extras.position < 1000; ++extras.position) {
    seen[static_cast<size_t>(TokenOf(row, settings, extras))] = true;
  }
  return seen;
}

// Each setting of the token choice once, so that what must hold for all of them is checked for all of them.
std::vector<SamplingSettings> EverySetting() {
  return {Greedy(),          Sampling(1.0f),          Sampling(1e-7f),        Sampling(1e6f),
          Sampling(0.7f, 2), Sampling(0.7f, 0, 0.5f), Sampling(0.7f, 3, 0.9f)};
}

TEST(Sampler, GreedyTakesTheLargestLogit) {
  EXPECT_EQ(TokenOf({0.0f, -1.0f, 3.0f, 2.0f}, Greedy()), 2);
  Row row(1000, -5.0f);
  for (const size_t best : {0u, 1u, 15u, 16u, 17u, 500u, 998u, 999u}) {
    row[best] = 1.0f;
    EXPECT_EQ(TokenOf(row, Greedy()), static_cast<TokenId>(best));
    row[best] = -5.0f;
  }
}

TEST(Sampler, GreedyTakesTheLowestIdOfEqualLogits) {
  EXPECT_EQ(TokenOf(Row(100, 0.25f), Greedy()), 0);
  EXPECT_EQ(TokenOf({-1.0f, 2.0f, 2.0f, 2.0f}, Greedy()), 1);
  EXPECT_EQ(TokenOf({-1.0f, -0.0f, 0.0f}, Greedy()), 1);
}

TEST(Sampler, GreedyWorksForEveryVocabularySize) {
  for (int32_t vocab = 1; vocab <= 70; ++vocab) {
    Row row(static_cast<size_t>(vocab), -2.0f);
    row.back() = -1.0f;
    EXPECT_EQ(TokenOf(row, Greedy()), vocab - 1);
  }
}

TEST(Sampler, RowsWithoutMeaningAreBad) {
  for (const SamplingSettings& settings : EverySetting()) {
    for (const float bad : {kNan, -kNan, kInf}) {
      for (const size_t where : {0u, 20u, 36u}) {
        Row row(37, 0.5f);
        row[where] = bad;
        EXPECT_EQ(SampleRow(row, settings).status, SampleStatus::kBadLogits);
        // The row is judged as the model gave it: a mask or a penalty does not make it good.
        const auto token = static_cast<TokenId>(where);
        EXPECT_EQ(SampleRow(row, settings, {{}, {token}}).status, SampleStatus::kBadLogits);
      }
    }
    EXPECT_EQ(SampleRow(Row(37, -kInf), settings).status, SampleStatus::kBadLogits);
  }
}

TEST(Sampler, MinusInfinityIsNeverChosenAndDoesNotSpoilTheRow) {
  const Row row{-kInf, 0.0f, -kInf, -3.0f, -kInf};
  for (const SamplingSettings& settings : EverySetting()) {
    const std::vector<bool> seen = Support(row, settings);
    EXPECT_TRUE(seen[1]);
    EXPECT_FALSE(seen[0] || seen[2] || seen[4]);
  }
}

TEST(Sampler, AMaskedTokenIsNeverChosen) {
  const Row row{5.0f, 9.0f, 5.0f, 8.0f};
  EXPECT_EQ(TokenOf(row, Greedy(), {{}, {1}}), 3);
  EXPECT_EQ(TokenOf(row, Greedy(), {{}, {1, 3}}), 0);
  for (const SamplingSettings& settings : EverySetting()) {
    const std::vector<bool> seen = Support(row, settings, {{}, {1, 3}});
    EXPECT_FALSE(seen[1] || seen[3]);
  }
}

TEST(Sampler, MaskedIdsBeyondTheRowAreHarmless) {
  EXPECT_EQ(TokenOf({1.0f, 2.0f}, Greedy(), {{}, {2, 1000000, -1}}), 1);
}

TEST(Sampler, AFullMaskLeavesNoCandidate) {
  for (const SamplingSettings& settings : EverySetting()) {
    EXPECT_EQ(SampleRow({1.0f, 2.0f, 3.0f}, settings, {{}, {0, 1, 2}}).status, SampleStatus::kNoCandidate);
    EXPECT_EQ(SampleRow({1.0f, -kInf, -kInf}, settings, {{}, {0}}).status, SampleStatus::kNoCandidate);
  }
}

TEST(Sampler, ThePenaltyDividesPositiveLogitsAndMultipliesOthers) {
  SamplingSettings settings = Greedy();
  settings.repetition_penalty = 2.0f;
  EXPECT_EQ(TokenOf({4.0f, 1.9f, 2.1f}, settings, {{0}, {}}), 2);
  EXPECT_EQ(TokenOf({4.0f, 1.9f, 1.8f}, settings, {{0}, {}}), 0);
  EXPECT_EQ(TokenOf({-1.0f, -1.9f, -2.1f}, settings, {{0}, {}}), 1);
  EXPECT_EQ(TokenOf({-1.0f, -2.1f, -2.2f}, settings, {{0}, {}}), 0);
  EXPECT_EQ(TokenOf({0.0f, -0.1f}, settings, {{0}, {}}), 0);
}

TEST(Sampler, APenaltyBelowOneMakesRepetitionMoreLikely) {
  SamplingSettings settings = Greedy();
  settings.repetition_penalty = 0.5f;
  EXPECT_EQ(TokenOf({1.0f, 1.5f}, settings, {{0}, {}}), 0);
  EXPECT_EQ(TokenOf({-2.0f, -1.5f}, settings, {{0}, {}}), 0);
}

TEST(Sampler, APenaltyOfOneIsBitIdenticalToNone) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, 4.0f);
  for (uint64_t round = 0; round < 500; ++round) {
    Row row(50);
    for (float& logit : row) logit = normal(random);
    const Tokens all = [] {
      Tokens tokens;
      for (TokenId token = 0; token < 50; ++token) tokens.push_back(token);
      return tokens;
    }();
    for (const SamplingSettings& settings : EverySetting()) {
      EXPECT_EQ(TokenOf(row, settings, {all, {}, 5, round}), TokenOf(row, settings, {{}, {}, 5, round}));
    }
  }
}

TEST(Sampler, AnExtremePenaltyLeavesFiniteScores) {
  for (SamplingSettings settings : EverySetting()) {
    settings.repetition_penalty = 1e-38f;
    EXPECT_EQ(TokenOf({1e10f, 2.0f, 1.0f}, settings, {{0}, {}}), 0);
    settings.repetition_penalty = 1e38f;
    EXPECT_EQ(TokenOf({-1e10f, -kInf}, settings, {{0}, {}}), 0);
    EXPECT_EQ(TokenOf({-1e10f, -kInf}, settings, {{0, 1}, {}}), 0);
  }
}

TEST(Sampler, APenalizedMinusInfinityStaysImpossible) {
  SamplingSettings settings = Sampling(1.0f);
  settings.repetition_penalty = 0.5f;
  EXPECT_EQ(TokenOf({-kInf, -50.0f}, settings, {{0}, {}}), 1);
}

TEST(Sampler, ATinyTemperatureIsArgmax) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  for (uint64_t round = 0; round < 2000; ++round) {
    Row row(200);
    for (float& logit : row) logit = normal(random);
    row[random() % row.size()] += 20.0f;
    const TokenId best = TokenOf(row, Greedy());
    for (const float temperature : {1e-7f, 1e-20f, std::numeric_limits<float>::denorm_min()}) {
      EXPECT_EQ(TokenOf(row, Sampling(temperature), {{}, {}, 9, round}), best);
    }
  }
}

TEST(Sampler, ExtremeTemperaturesAndLogitsGiveAToken) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const Row row{-kMax, kMax, 0.0f, -kInf, 1.0f};
  for (const float temperature : {std::numeric_limits<float>::denorm_min(), 1e-4f, 1.0f, 1e6f, kMax}) {
    for (const float top_p : {1e-7f, 0.5f, 1.0f}) {
      for (const int32_t top_k : {0, 2, 3}) {
        const std::vector<bool> seen = Support(row, Sampling(temperature, top_k, top_p));
        EXPECT_TRUE(seen[1]);
        EXPECT_FALSE(seen[3]);
      }
    }
  }
}

TEST(Sampler, TheMostLikelyTokenIsNeverDropped) {
  const Row row{0.1f, 0.3f, 0.2f};
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 1e-7f)), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 2, 1e-7f)), (std::vector<bool>{false, true, false}));
}

TEST(Sampler, TopKAndTopPBreakTiesByLowestId) {
  const Row row(8, 1.5f);
  EXPECT_EQ(Support(row, Sampling(1.0f, 3)), (std::vector<bool>{true, true, true, false, false, false, false, false}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 0.5f)),
            (std::vector<bool>{true, true, true, true, false, false, false, false}));
  // -0 and 0 are one score.
  EXPECT_EQ(Support({-0.0f, 7.0f, 0.0f, 7.0f}, Sampling(1e6f, 3)), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(Support({0.0f, 7.0f, -0.0f, 7.0f}, Sampling(1e6f, 3)), (std::vector<bool>{true, true, false, true}));
}

TEST(Sampler, TopKKeepsFewerWhenFewerAreFinite) {
  EXPECT_EQ(Support({-kInf, 1.0f, -kInf, 1.0f, -kInf}, Sampling(1.0f, 4)),
            (std::vector<bool>{false, true, false, true, false}));
}

TEST(Sampler, TopPActsOnWhatTopKLeft) {
  // Alone 0.6 would need two of the four equal tokens and more; within the top two, 0.6 of them is both.
  const Row row(4, 0.0f);
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 0.6f)), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 2, 0.6f)), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 2, 0.4f)), (std::vector<bool>{true, false, false, false}));
}

TEST(Sampler, DrawsDependOnSeedAndPositionOnly) {
  const Row row(64, 0.0f);
  Sampler shared(64);
  const SamplingSettings settings = Sampling(1.0f);
  int different_seed = 0;
  int different_position = 0;
  for (uint64_t position = 0; position < 200; ++position) {
    const TokenId alone = TokenOf(row, settings, {{}, {}, 11, position});
    const TokenId other_seed = shared.Sample({row, &settings, {}, {}, 12, position}).token;
    const TokenId after_others = shared.Sample({row, &settings, {}, {}, 11, position}).token;
    EXPECT_EQ(after_others, alone);
    different_seed += other_seed != alone;
    different_position += shared.Sample({row, &settings, {}, {}, 11, position + 1}).token != alone;
  }
  EXPECT_GT(different_seed, 150);
  EXPECT_GT(different_position, 150);
}

TEST(Sampler, ARowOfAnotherWidthIsABrokenContract) {
  const Row row(3, 0.0f);
  const SamplingSettings settings = Greedy();
  EXPECT_THROW(Sampler(4).Sample({row, &settings, {}, {}, 0, 0}), ContractError);
}

// Rows of every kind against the reference: spread, flat, full of ties, with holes, penalised and masked.
class SamplerAgainstReference : public testing::Test {
 protected:
  Row RandomRow(size_t vocab) {
    Row row(vocab);
    const int kind = Pick(4);
    std::normal_distribution<float> normal(0.0f, kind == 0 ? 5.0f : 1.0f);
    for (float& logit : row) {
      logit = normal(random_);
      if (kind == 2) logit = std::round(logit);
      if (kind == 3 && Pick(3) == 0) logit = -kInf;
    }
    row[static_cast<size_t>(Pick(static_cast<int>(vocab)))] = 1.0f;
    return row;
  }

  Tokens RandomTokens(size_t vocab, int most) {
    std::vector<bool> chosen(vocab);
    for (int i = Pick(most + 1); i > 0; --i) chosen[static_cast<size_t>(Pick(static_cast<int>(vocab)))] = true;
    Tokens tokens;
    for (size_t i = 0; i < vocab; ++i) {
      if (chosen[i]) tokens.push_back(static_cast<TokenId>(i));
    }
    return tokens;
  }

  SamplingSettings RandomSettings(int vocab) {
    constexpr float kTemperatures[] = {1e-7f, 1e-4f, 0.3f, 0.7f, 1.0f, 2.0f, 1e6f};
    SamplingSettings settings = Sampling(kTemperatures[Pick(7)]);
    settings.greedy = Pick(8) == 0;
    if (Pick(2) == 0) settings.top_k = 1 + Pick(vocab + 3);
    if (Pick(2) == 0) settings.top_p = std::uniform_real_distribution<float>(0.01f, 0.99f)(random_);
    if (Pick(3) == 0) settings.repetition_penalty = 0.5f + 0.25f * static_cast<float>(Pick(8));
    return settings;
  }

  int Pick(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  std::mt19937 random_{20240601};
};

TEST_F(SamplerAgainstReference, ChoosesTheSameTokenInThousandsOfRows) {
  int no_candidate = 0;
  for (uint64_t round = 0; round < 20000; ++round) {
    const auto vocab = static_cast<size_t>(1 + Pick(round % 10 == 0 ? 400 : 40));
    const Row row = RandomRow(vocab);
    const Tokens penalized = RandomTokens(vocab, 10);
    const Tokens masked = RandomTokens(vocab, 3);
    const SamplingSettings settings = RandomSettings(static_cast<int>(vocab));
    const SampleInputs inputs{row, &settings, penalized, masked, round * 7919, round};

    const Distribution expected = ReferenceDistribution(inputs);
    const SampleOutcome outcome = Sampler(static_cast<int32_t>(vocab)).Sample(inputs);
    if (expected.empty()) {
      ASSERT_EQ(outcome.status, SampleStatus::kNoCandidate) << "round " << round;
      ++no_candidate;
      continue;
    }
    ASSERT_EQ(outcome.status, SampleStatus::kOk) << "round " << round;
    ASSERT_EQ(outcome.token, ReferenceDraw(inputs, expected)) << "round " << round;
  }
  EXPECT_GT(no_candidate, 0);
}

TEST_F(SamplerAgainstReference, ChoosesTheSameTokenInWideRows) {
  constexpr size_t kVocab = 20000;
  Sampler sampler(kVocab);
  for (uint64_t round = 0; round < 90; ++round) {
    Row row = RandomRow(kVocab);
    if (round % 10 == 1) std::sort(row.begin(), row.end());
    SamplingSettings settings = RandomSettings(kVocab);
    if (round % 2 == 1) settings.top_k = 1 + Pick(100);
    const SampleInputs inputs{row, &settings, {}, {}, round, 1000 + round};
    ASSERT_EQ(sampler.Sample(inputs).token, ReferenceDraw(inputs, ReferenceDistribution(inputs))) << "round " << round;
  }
}

}  // namespace
}  // namespace oga::search

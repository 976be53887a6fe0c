#include "search/sampler.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "base/check.h"
#include "native/search/row_case.h"

namespace oga::search {
namespace {

SamplingSettings With(void (*change)(SamplingSettings&)) {
  SamplingSettings settings = Sampling(0.9f);
  change(settings);
  return settings;
}

// Each setting of the token choice once, so that what must hold for all of them is checked for all of them. Not XTC,
// which alone may drop the most likely token.
std::vector<SamplingSettings> EverySetting() {
  return {Greedy(),
          Sampling(1.0f),
          Sampling(1e-7f),
          Sampling(1e6f),
          Sampling(0.7f, 2),
          Sampling(0.7f, 0, 0.5f),
          Sampling(0.7f, 3, 0.9f),
          With([](SamplingSettings& settings) { settings.typical_p = 0.6f; }),
          With([](SamplingSettings& settings) { settings.min_p = 0.2f; }),
          With([](SamplingSettings& settings) { settings.top_n_sigma = 1.0f; }),
          With([](SamplingSettings& settings) {
            settings.typical_p = 0.95f;
            settings.top_p = 0.95f;
            settings.min_p = 0.01f;
            settings.top_n_sigma = 3.0f;
          })};
}

// A case in which `tokens` would end the turn, which it may not.
RowCase WithoutEnds(const Row& row, const SamplingSettings& settings, const Tokens& tokens) {
  RowCase result = CaseOf(row, settings);
  result.eos_token_ids = tokens;
  result.may_end = false;
  return result;
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
        EXPECT_EQ(OutcomeOf(CaseOf(row, settings)).status, SampleStatus::kBadLogits);
        // The row is judged as the model gave it: a mask does not make it good.
        EXPECT_EQ(OutcomeOf(WithoutEnds(row, settings, {static_cast<TokenId>(where)})).status,
                  SampleStatus::kBadLogits);
      }
    }
    EXPECT_EQ(OutcomeOf(CaseOf(Row(37, -kInf), settings)).status, SampleStatus::kBadLogits);
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

TEST(Sampler, ATokenThatMayNotEndTheTurnIsNeverChosen) {
  const Row row{5.0f, 9.0f, 5.0f, 8.0f};
  EXPECT_EQ(TokenOf(WithoutEnds(row, Greedy(), {1})), 3);
  EXPECT_EQ(TokenOf(WithoutEnds(row, Greedy(), {1, 3})), 0);
  for (const SamplingSettings& settings : EverySetting()) {
    const std::vector<bool> seen = Support(WithoutEnds(row, settings, {1, 3}));
    EXPECT_FALSE(seen[1] || seen[3]);
  }
}

TEST(Sampler, EosIdsBeyondTheRowAreHarmless) {
  EXPECT_EQ(TokenOf(WithoutEnds({1.0f, 2.0f}, Greedy(), {2, 1000000, -1})), 1);
}

TEST(Sampler, AFullMaskLeavesNoCandidate) {
  for (const SamplingSettings& settings : EverySetting()) {
    EXPECT_EQ(OutcomeOf(WithoutEnds({1.0f, 2.0f, 3.0f}, settings, {0, 1, 2})).status, SampleStatus::kNoCandidate);
    EXPECT_EQ(OutcomeOf(WithoutEnds({1.0f, -kInf, -kInf}, settings, {0})).status, SampleStatus::kNoCandidate);
  }
}

TEST(Sampler, PaddingOfTheVocabularyIsNeverChosen) {
  Row row{1.0f, 2.0f, 0.5f, 90.0f, 80.0f};
  for (const float padding : {90.0f, kInf, kNan}) {
    row[4] = padding;
    for (const SamplingSettings& settings : EverySetting()) {
      RowCase padded = CaseOf(row, settings);
      padded.sampleable_tokens = 3;
      const std::vector<bool> seen = Support(padded);
      EXPECT_TRUE(seen[1]);
      EXPECT_FALSE(seen[3] || seen[4]);
    }
  }
}

// Ids of the padding may stand in the sequence and in any list, and a grammar may even allow them.
TEST(Sampler, PaddingIsHarmlessWhereverItIsNamed) {
  RowCase row = CaseOf({1.0f, 2.0f, 0.5f, 90.0f, 80.0f}, Sampling(1.0f));
  row.sampleable_tokens = 3;
  row.sequence = {4, 3, 4, 3, 4};
  row.eos_token_ids = {3};
  row.may_end = false;
  row.grammar = {true, true, false, true, true};
  row.settings.repetition_penalty = 1.5f;
  row.settings.presence_penalty = 1.0f;
  row.settings.no_repeat_ngram_size = 2;
  row.settings.dry_multiplier = 1.0f;
  row.settings.dry_breakers = {3};
  row.settings.logit_bias = {{4, 100.0f}};
  row.settings.stop_tokens = {4};
  row.settings.banned_sequences = {{3}, {4, 3}};
  row.settings.allowed_bitmask = Bitmask(5, {0, 1, 3, 4});
  EXPECT_EQ(Support(row), (std::vector<bool>{true, true, false, false, false}));
}

TEST(Sampler, ATinyTemperatureIsArgmax) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  for (uint64_t round = 0; round < 2000; ++round) {
    RowCase row = CaseOf(Row(200), Greedy());
    for (float& logit : row.logits) logit = normal(random);
    row.logits[random() % 200] += 20.0f;
    row.position = round;
    const TokenId best = TokenOf(row);
    for (const float temperature : {1e-7f, 1e-20f, std::numeric_limits<float>::denorm_min()}) {
      row.settings = Sampling(temperature);
      EXPECT_EQ(TokenOf(row), best);
    }
  }
}

TEST(Sampler, ExtremeTemperaturesAndLogitsGiveAToken) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const Row row{-kMax, kMax, 0.0f, -kInf, 1.0f};
  for (const float temperature : {std::numeric_limits<float>::denorm_min(), 1e-4f, 1.0f, 1e6f, kMax}) {
    for (SamplingSettings settings : EverySetting()) {
      if (settings.do_sample) settings.temperature = temperature;
      const std::vector<bool> seen = Support(row, settings);
      EXPECT_TRUE(seen[1]);
      EXPECT_FALSE(seen[3]);
    }
  }
}

TEST(Sampler, DrawsDependOnSeedAndPositionOnly) {
  RowCase row = CaseOf(Row(64, 0.0f), Sampling(1.0f));
  row.seed = 11;
  Sampler shared(64);
  int different_seed = 0;
  int different_position = 0;
  for (uint64_t position = 0; position < 200; ++position) {
    row.position = position;
    const TokenId alone = TokenOf(row);
    RowCase other_seed = row;
    other_seed.seed = 12;
    RowCase other_position = row;
    other_position.position = position + 1;
    different_seed += shared.Sample(CaseInputs(other_seed).get()).token != alone;
    EXPECT_EQ(shared.Sample(CaseInputs(row).get()).token, alone);
    different_position += shared.Sample(CaseInputs(other_position).get()).token != alone;
  }
  EXPECT_GT(different_seed, 150);
  EXPECT_GT(different_position, 150);
}

TEST(Sampler, ABadRowDoesNotTouchItsNeighbours) {
  const RowCase good = CaseOf({1.0f, 3.0f, 2.0f}, Sampling(0.8f));
  const RowCase bad = CaseOf({1.0f, kNan, 2.0f}, Greedy());
  const RowCase dead_end = WithoutEnds({1.0f, 2.0f, 3.0f}, Greedy(), {0, 1, 2});
  const CaseInputs good_inputs(good);
  const CaseInputs bad_inputs(bad);
  const CaseInputs dead_end_inputs(dead_end);
  const std::vector<SampleInputs> rows{bad_inputs.get(), good_inputs.get(), dead_end_inputs.get(), good_inputs.get()};
  std::vector<SampleOutcome> outcomes(rows.size());
  Sampler(3).Sample(rows, outcomes);
  EXPECT_EQ(outcomes[0].status, SampleStatus::kBadLogits);
  EXPECT_EQ(outcomes[2].status, SampleStatus::kNoCandidate);
  for (const size_t i : {1u, 3u}) {
    EXPECT_EQ(outcomes[i].status, SampleStatus::kOk);
    EXPECT_EQ(outcomes[i].token, TokenOf(good));
  }
}

TEST(Sampler, ARowOfAnotherWidthIsABrokenContract) {
  EXPECT_THROW(Sampler(4).Sample(CaseInputs(CaseOf(Row(3, 0.0f), Greedy())).get()), ContractError);
  const RowCase row = CaseOf(Row(4, 0.0f), Greedy());
  const CaseInputs inputs(row);
  std::vector<SampleOutcome> outcomes(2);
  EXPECT_THROW(Sampler(4).Sample(std::span(&inputs.get(), 1), outcomes), ContractError);
}

}  // namespace
}  // namespace oga::search

#include "search/logits_processors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "base/check.h"
#include "native/search/row_case.h"

namespace oga::search {
namespace {

// The scores that a row has when something is chosen from it.
Row ScoresOf(const RowCase& row) {
  LogitsProcessors processors(static_cast<int32_t>(row.sampleable()));
  processors.ReserveHistory(row.sequence.size());
  const CaseInputs inputs(row);
  const std::span<const float> scores = processors.Apply(inputs.get());
  return {scores.begin(), scores.end()};
}

RowCase WithSequence(const Row& row, const Tokens& sequence, const std::function<void(SamplingSettings&)>& change) {
  RowCase result = CaseOf(row, {});
  result.sequence = sequence;
  result.output_begin = sequence.size();
  change(result.settings);
  return result;
}

TEST(LogitsProcessors, LeaveTheModelsRowWhereItIsWhenAllAreOff) {
  RowCase row = CaseOf({1.0f, -2.0f, 3.0f}, {});
  row.sequence = {0, 1, 2};
  row.eos_token_ids = {2};
  LogitsProcessors processors(3);
  const CaseInputs inputs(row);
  EXPECT_EQ(processors.Apply(inputs.get()).data(), row.logits.data());
}

TEST(LogitsProcessors, TheRepetitionPenaltyDividesPositiveLogitsAndMultipliesOthersOncePerToken) {
  const auto row = WithSequence({4.0f, -1.0f, 0.0f, 2.0f}, {0, 1, 0, 2, 0},
                                [](auto& settings) { settings.repetition_penalty = 2.0f; });
  EXPECT_EQ(ScoresOf(row), (Row{2.0f, -2.0f, 0.0f, 2.0f}));
}

TEST(LogitsProcessors, ARepetitionPenaltyBelowOneMakesRepetitionMoreLikely) {
  const auto row = WithSequence({1.0f, -2.0f}, {0, 1}, [](auto& settings) { settings.repetition_penalty = 0.5f; });
  EXPECT_EQ(ScoresOf(row), (Row{2.0f, -1.0f}));
}

TEST(LogitsProcessors, PresenceCountsOnceAndFrequencyEveryTimeInTheOutputOnly) {
  RowCase row = CaseOf({1.0f, 1.0f, 1.0f, 1.0f}, {});
  row.sequence = {3, 3, 0, 1, 1, 1};
  row.output_begin = 2;
  row.settings.presence_penalty = 0.5f;
  EXPECT_EQ(ScoresOf(row), (Row{0.5f, 0.5f, 1.0f, 1.0f}));
  row.settings.frequency_penalty = 0.25f;
  EXPECT_EQ(ScoresOf(row), (Row{0.25f, -0.25f, 1.0f, 1.0f}));
  row.settings.presence_penalty = -1.0f;
  EXPECT_EQ(ScoresOf(row), (Row{1.75f, 1.25f, 1.0f, 1.0f}));
}

TEST(LogitsProcessors, NoNgramIsCompletedTwice) {
  const Row row(5, 1.0f);
  const auto with = [&](int32_t size, const Tokens& sequence) {
    return ScoresOf(WithSequence(row, sequence, [&](auto& settings) { settings.no_repeat_ngram_size = size; }));
  };
  EXPECT_EQ(with(1, {0, 2}), (Row{-kInf, 1.0f, -kInf, 1.0f, 1.0f}));
  EXPECT_EQ(with(2, {0, 1, 0, 2, 0}), (Row{1.0f, -kInf, -kInf, 1.0f, 1.0f}));
  EXPECT_EQ(with(3, {0, 1, 0, 2, 0}), row);
  EXPECT_EQ(with(3, {4, 1, 2, 3, 1, 2}), (Row{1.0f, 1.0f, 1.0f, -kInf, 1.0f}));
  EXPECT_EQ(with(2, {3, 3, 3}), (Row{1.0f, 1.0f, 1.0f, -kInf, 1.0f})) << "the occurrence may overlap the end";
  EXPECT_EQ(with(7, {0, 1, 2}), row) << "longer than the sequence";
  EXPECT_EQ(with(std::numeric_limits<int32_t>::max(), {0, 0, 0}), row);
  EXPECT_EQ(with(1, {}), row);
}

RowCase Dry(const Tokens& sequence) {
  return WithSequence(Row(6, 0.0f), sequence, [](auto& settings) {
    settings.dry_multiplier = 1.0f;
    settings.dry_base = 2.0f;
    settings.dry_allowed_length = 2;
  });
}

TEST(LogitsProcessors, DryPenalisesWhatWouldProlongARepetitionTheMoreTheLongerItIs) {
  // "1 2" came before 3, "0 1 2" before 4.
  const RowCase row = Dry({1, 2, 3, 0, 1, 2, 4, 5, 0, 1, 2});
  EXPECT_EQ(ScoresOf(row), (Row{0.0f, 0.0f, 0.0f, -1.0f, -2.0f, 0.0f}));
}

TEST(LogitsProcessors, DryTakesTheLongestRepetitionOfEachToken) {
  EXPECT_EQ(ScoresOf(Dry({1, 2, 4, 0, 1, 2, 4, 0, 1, 2}))[4], -16.0f) << "2 and then 6 tokens come before a 4";
}

TEST(LogitsProcessors, DryAllowsShortRepetitions) {
  RowCase row = Dry({2, 3, 0, 2});
  EXPECT_EQ(ScoresOf(row), row.logits);
  row.settings.dry_allowed_length = 1;
  EXPECT_EQ(ScoresOf(row)[3], -1.0f);
}

TEST(LogitsProcessors, DrySearchesItsRangeOnly) {
  RowCase row = Dry({0, 1, 2, 3, 5, 0, 1, 2});
  EXPECT_EQ(ScoresOf(row)[3], -2.0f);
  row.settings.dry_range = 7;
  EXPECT_EQ(ScoresOf(row)[3], -1.0f) << "the earlier copy is cut to two tokens";
  row.settings.dry_range = 6;
  EXPECT_EQ(ScoresOf(row)[3], 0.0f);
  row.settings.dry_range = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(ScoresOf(row)[3], -2.0f);
}

TEST(LogitsProcessors, DryStopsAtBreakersAndSparesThem) {
  RowCase row = Dry({0, 5, 1, 2, 3, 0, 5, 1, 2});
  EXPECT_EQ(ScoresOf(row)[3], -4.0f);
  row.settings.dry_breakers = {5};
  EXPECT_EQ(ScoresOf(row)[3], -1.0f) << "only the two tokens after the breaker repeat";
  row.settings.dry_breakers = {2};
  EXPECT_EQ(ScoresOf(row), row.logits) << "the sequence ends in a breaker";
  row.settings.dry_breakers = {3};
  EXPECT_EQ(ScoresOf(row), row.logits) << "the token that would be penalised is a breaker";
}

TEST(LogitsProcessors, DryWorksOnASequenceOfOneToken) {
  RowCase row = Dry(Tokens(5000, 1));
  row.settings.dry_base = 1.0f;
  EXPECT_EQ(ScoresOf(row)[1], -1.0f) << "a base of 1 does not grow";
  row.settings.dry_base = 1.75f;
  EXPECT_EQ(ScoresOf(row)[1], -std::numeric_limits<float>::max()) << "unlikely beyond measure, and not excluded";
}

TEST(LogitsProcessors, NgramsSearchTheWholeSequenceWhateverTheRangeOfDry) {
  RowCase row = Dry({3, 4, 0, 1, 2, 0, 3});
  row.settings.dry_range = 2;
  row.settings.no_repeat_ngram_size = 2;
  EXPECT_EQ(ScoresOf(row), (Row{0.0f, 0.0f, 0.0f, 0.0f, -kInf, 0.0f}));
}

TEST(LogitsProcessors, ABiasIsAdded) {
  const auto row = WithSequence({1.0f, -kInf, 3.0f}, {}, [](auto& settings) {
    settings.logit_bias = {{0, 2.5f}, {1, 100.0f}, {2, -1.0f}};
  });
  EXPECT_EQ(ScoresOf(row), (Row{3.5f, -kInf, 2.0f}));
}

TEST(LogitsProcessors, OfABannedSequenceOnlyTheCompletingTokenIsBanned) {
  const Row row(5, 1.0f);
  const auto with = [&](const Tokens& sequence) {
    return ScoresOf(WithSequence(row, sequence, [](auto& settings) {
      settings.banned_sequences = {{4}, {1, 2}, {0, 1, 3}};
    }));
  };
  EXPECT_EQ(with({}), (Row{1.0f, 1.0f, 1.0f, 1.0f, -kInf}));
  EXPECT_EQ(with({1}), (Row{1.0f, 1.0f, -kInf, 1.0f, -kInf}));
  EXPECT_EQ(with({0, 1}), (Row{1.0f, 1.0f, -kInf, -kInf, -kInf}));
  EXPECT_EQ(with({0, 1, 1}), (Row{1.0f, 1.0f, -kInf, 1.0f, -kInf}));
  EXPECT_EQ(with({1, 0}), (Row{1.0f, 1.0f, 1.0f, 1.0f, -kInf}));
}

TEST(LogitsProcessors, OnlyAllowedTokensAreLeftForEveryVocabularySize) {
  std::mt19937 random(7);
  for (size_t vocab = 1; vocab <= 100; ++vocab) {
    RowCase row = CaseOf(Row(vocab, 1.0f), {});
    Row expected(vocab, -kInf);
    Tokens allowed;
    for (size_t i = 0; i < vocab; ++i) {
      if (random() % 3 != 0) continue;
      allowed.push_back(static_cast<TokenId>(i));
      expected[i] = 1.0f;
    }
    row.settings.allowed_bitmask = Bitmask(vocab, allowed);
    EXPECT_EQ(ScoresOf(row), expected) << vocab;
  }
}

TEST(LogitsProcessors, AGrammarsMaskActsBesideTheAllowedTokens) {
  RowCase row = CaseOf(Row(4, 1.0f), {});
  row.grammar = {true, true, false, false};
  EXPECT_EQ(ScoresOf(row), (Row{1.0f, 1.0f, -kInf, -kInf}));
  row.settings.allowed_bitmask = Bitmask(4, {1, 2});
  EXPECT_EQ(ScoresOf(row), (Row{-kInf, 1.0f, -kInf, -kInf}));
}

TEST(LogitsProcessors, AMaskShorterThanTheRowIsABrokenContract) {
  RowCase row = CaseOf(Row(40, 1.0f), {});
  row.grammar.assign(32, true);
  EXPECT_THROW(ScoresOf(row), ContractError);
}

TEST(LogitsProcessors, BelowTheMinimumEosIdsAndStopTokensAreBanned) {
  RowCase row = CaseOf(Row(4, 1.0f), {});
  row.eos_token_ids = {3};
  row.settings.stop_tokens = {0};
  EXPECT_EQ(ScoresOf(row), row.logits);
  row.may_end = false;
  EXPECT_EQ(ScoresOf(row), (Row{-kInf, 1.0f, 1.0f, -kInf}));
}

// The penalties come first, then the bias, then what excludes: another order gives other numbers.
TEST(LogitsProcessors, StagesActInTheOrderOfTheContract) {
  RowCase row = CaseOf({4.0f, 4.0f}, {});
  row.sequence = {0};
  row.settings.repetition_penalty = 2.0f;
  row.settings.presence_penalty = 1.0f;
  row.settings.logit_bias = {{0, 10.0f}};
  EXPECT_EQ(ScoresOf(row)[0], 11.0f);
  row.settings.banned_sequences = {{0}};
  EXPECT_EQ(ScoresOf(row)[0], -kInf);
}

// One row per stage, so that what must hold for each of them is checked for each of them.
std::vector<std::function<void(RowCase&, float)>> EveryDifference() {
  return {[](RowCase& row, float size) { row.settings.presence_penalty = size; },
          [](RowCase& row, float size) { row.settings.frequency_penalty = size; },
          [](RowCase& row, float size) {
            row.settings.logit_bias = {{0, size}, {1, size}};
          },
          [](RowCase& row, float size) { row.settings.dry_multiplier = std::abs(size); }};
}

TEST(LogitsProcessors, FiniteScoresStayFiniteAndImpossibleOnesImpossible) {
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const auto& change : EveryDifference()) {
    for (const float size : {kMax, -kMax}) {
      for (const float logit : {1e30f, 0.0f, -1e30f, kMax, -kMax}) {
        RowCase row = CaseOf({logit, -kInf}, {});
        row.sequence = {0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0};
        change(row, size);
        const Row scores = ScoresOf(row);
        EXPECT_TRUE(std::isfinite(scores[0]));
        EXPECT_EQ(scores[1], -kInf);
      }
    }
  }
  for (const float penalty : {1e-38f, 1e38f}) {
    for (const float logit : {1e10f, -1e10f, kMax, -kMax}) {
      RowCase row = CaseOf({logit, -kInf}, {});
      row.sequence = {0, 1};
      row.settings.repetition_penalty = penalty;
      EXPECT_TRUE(std::isfinite(ScoresOf(row)[0]));
      EXPECT_EQ(ScoresOf(row)[1], -kInf);
    }
  }
}

TEST(LogitsProcessors, NothingIsLeftOfARowInTheNext) {
  LogitsProcessors processors(6);
  processors.ReserveHistory(64);
  RowCase row = Dry({1, 2, 3, 0, 1, 2, 4, 5, 0, 1, 2});
  const CaseInputs inputs(row);
  const std::span<const float> first = processors.Apply(inputs.get());
  const Row expected(first.begin(), first.end());
  RowCase other = Dry({5, 5, 5, 5, 4, 5, 5});
  const CaseInputs other_inputs(other);
  processors.Apply(other_inputs.get());
  const std::span<const float> again = processors.Apply(inputs.get());
  EXPECT_EQ(Row(again.begin(), again.end()), expected);
}

TEST(LogitsProcessors, ASequenceLongerThanTheRoomIsABrokenContract) {
  const RowCase row = Dry({1, 2, 1, 2});
  LogitsProcessors processors(6);
  processors.ReserveHistory(3);
  EXPECT_THROW(processors.Apply(CaseInputs(row).get()), ContractError);
}

}  // namespace
}  // namespace oga::search

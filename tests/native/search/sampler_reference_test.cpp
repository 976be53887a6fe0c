// The sampler against the slow and obvious one, over tens of thousands of rows in which any options act together: rows
// that are spread, flat, full of ties, with holes; sequences that repeat themselves; lists that name anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "native/search/row_case.h"

namespace oga::search {
namespace {

class SamplerAgainstReference : public testing::Test {
 protected:
  int Pick(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }
  bool Chance(int one_in) { return Pick(one_in) == 0; }
  float Uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_); }

  Row RandomRow(size_t vocab) {
    Row row(vocab);
    const int kind = Pick(4);
    std::normal_distribution<float> normal(0.0f, kind == 0 ? 5.0f : 1.0f);
    for (float& logit : row) {
      logit = normal(random_);
      if (kind == 2) logit = std::round(logit);
      if (kind == 3 && Chance(3)) logit = -kInf;
    }
    row[static_cast<size_t>(Pick(static_cast<int>(vocab)))] = 1.0f;
    return row;
  }

  // Few different tokens in half of them, so that they repeat themselves.
  Tokens RandomSequence(int vocab, int most) {
    Tokens tokens(static_cast<size_t>(Pick(most + 1)));
    const int different = Chance(2) ? std::min(vocab, 3) : vocab;
    for (TokenId& token : tokens) token = Pick(different);
    return tokens;
  }

  void DrawProcessors(SamplingSettings& settings, int vocab) {
    if (Chance(3)) settings.repetition_penalty = 0.5f + 0.25f * static_cast<float>(Pick(8));
    if (Chance(4)) settings.presence_penalty = Uniform(-2.0f, 2.0f);
    if (Chance(4)) settings.frequency_penalty = Uniform(-2.0f, 2.0f);
    if (Chance(4)) settings.no_repeat_ngram_size = 1 + Pick(4);
    if (Chance(4)) {
      settings.dry_multiplier = Uniform(0.1f, 2.0f);
      settings.dry_base = Uniform(1.0f, 3.0f);
      settings.dry_allowed_length = 1 + Pick(4);
      settings.dry_range = Chance(2) ? 0 : 1 + Pick(30);
      if (Chance(2)) settings.dry_breakers = {Pick(vocab)};
    }
    if (Chance(4)) settings.logit_bias = {{Pick(vocab), Uniform(-5.0f, 5.0f)}};
    if (Chance(4)) {
      for (int i = 1 + Pick(3); i > 0; --i) {
        settings.banned_sequences.push_back(RandomSequence(vocab, 2));
        settings.banned_sequences.back().push_back(Pick(vocab));
      }
    }
    if (Chance(6)) settings.allowed_bitmask = Bitmask(static_cast<size_t>(vocab), RandomSequence(vocab, vocab));
    if (Chance(4)) settings.stop_tokens = {Pick(vocab)};
  }

  void DrawWarpers(SamplingSettings& settings, int vocab) {
    constexpr float kTemperatures[] = {1e-7f, 1e-4f, 0.3f, 0.7f, 1.0f, 2.0f, 1e6f};
    settings.do_sample = true;
    settings.temperature = kTemperatures[Pick(7)];
    if (Chance(2)) settings.top_k = 1 + Pick(vocab + 3);
    // Nearly flat distributions are left out: their tokens are equally typical but for the last bit of either sum.
    if (Chance(3) && settings.temperature < 10.0f) settings.typical_p = Uniform(0.01f, 0.99f);
    if (Chance(2)) settings.top_p = Uniform(0.01f, 0.99f);
    if (Chance(3)) settings.min_p = Uniform(0.0f, 0.5f);
    if (Chance(3)) settings.top_n_sigma = Uniform(0.1f, 3.0f);
    if (Chance(3)) {
      settings.xtc_probability = Uniform(0.0f, 1.0f);
      settings.xtc_threshold = Uniform(0.0f, 0.5f);
    }
  }

  RowCase RandomCase(size_t vocab, int most_tokens, uint64_t round) {
    const auto size = static_cast<int>(vocab);
    RowCase row;
    row.logits = RandomRow(vocab);
    row.sequence = RandomSequence(size, most_tokens);
    row.output_begin = static_cast<size_t>(Pick(static_cast<int>(row.sequence.size()) + 1));
    if (Chance(2)) DrawProcessors(row.settings, size);
    if (!Chance(8)) DrawWarpers(row.settings, size);
    row.eos_token_ids = RandomSequence(size, 3);
    row.may_end = !Chance(3);
    if (Chance(6)) {
      for (size_t i = 0; i < vocab; ++i) row.grammar.push_back(Chance(2));
    }
    if (Chance(6)) row.sampleable_tokens = 1 + static_cast<size_t>(Pick(size));
    row.seed = round * 7919;
    row.position = round;
    return row;
  }

  std::mt19937 random_{20240601};
};

TEST_F(SamplerAgainstReference, ChoosesTheSameTokenInThousandsOfRows) {
  int no_candidate = 0;
  int bad = 0;
  for (uint64_t round = 0; round < 20000; ++round) {
    const auto vocab = static_cast<size_t>(1 + Pick(round % 10 == 0 ? 400 : 40));
    const RowCase row = RandomCase(vocab, 40, round);
    const SampleOutcome outcome = OutcomeOf(row);
    const auto known_end = row.logits.begin() + static_cast<std::ptrdiff_t>(row.sampleable());
    if (std::all_of(row.logits.begin(), known_end, [](float logit) { return logit == -kInf; })) {
      ASSERT_EQ(outcome.status, SampleStatus::kBadLogits) << "round " << round;
      ++bad;
      continue;
    }
    const Distribution expected = ReferenceDistribution(row);
    if (expected.empty()) {
      ASSERT_EQ(outcome.status, SampleStatus::kNoCandidate) << "round " << round;
      ++no_candidate;
      continue;
    }
    ASSERT_EQ(outcome.status, SampleStatus::kOk) << "round " << round;
    ASSERT_EQ(outcome.token, ReferenceDraw(row, expected)) << "round " << round;
  }
  EXPECT_GT(no_candidate, 0);
  EXPECT_GT(bad, 0);
}

// Greedy rows show the scores themselves: the stage that moved a score moved the choice.
TEST_F(SamplerAgainstReference, ProcessorsGiveTheSameScoresToTheLastBit) {
  for (uint64_t round = 0; round < 4000; ++round) {
    RowCase row = RandomCase(static_cast<size_t>(2 + Pick(60)), 60, round);
    DrawProcessors(row.settings, static_cast<int>(row.logits.size()));
    LogitsProcessors processors(static_cast<int32_t>(row.sampleable()));
    processors.ReserveHistory(row.sequence.size());
    const CaseInputs inputs(row);
    const std::span<const float> scores = processors.Apply(inputs.get());
    const std::vector<double> expected = ReferenceScores(row);
    ASSERT_EQ(scores.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(scores[i], expected[i]) << "token " << i << " of round " << round;
    }
  }
}

TEST_F(SamplerAgainstReference, ChoosesTheSameTokenInWideRows) {
  constexpr size_t kVocab = 20000;
  Sampler sampler(kVocab);
  for (uint64_t round = 0; round < 90; ++round) {
    RowCase row = CaseOf(RandomRow(kVocab), {});
    if (round % 10 == 1) std::sort(row.logits.begin(), row.logits.end());
    DrawWarpers(row.settings, kVocab);
    if (round % 2 == 1) row.settings.top_k = 1 + Pick(100);
    row.seed = round;
    row.position = 1000 + round;
    ASSERT_EQ(sampler.Sample(CaseInputs(row).get()).token, ReferenceDraw(row, ReferenceDistribution(row)))
        << "round " << round;
  }
}

// As wide as vocabularies come, with any options: no index, sum or bucket is narrower than that.
TEST_F(SamplerAgainstReference, ChoosesTheSameTokenInTheWidestRows) {
  constexpr size_t kVocab = 262144;
  for (uint64_t round = 0; round < 24; ++round) {
    RowCase row = RandomCase(kVocab, 60, round);
    row.settings.do_sample = true;
    if (round % 2 == 1) row.settings.top_k = 0;
    const Distribution expected = ReferenceDistribution(row);
    const SampleOutcome outcome = OutcomeOf(row);
    ASSERT_EQ(outcome.status, expected.empty() ? SampleStatus::kNoCandidate : SampleStatus::kOk) << "round " << round;
    if (expected.empty()) continue;
    ASSERT_EQ(outcome.token, ReferenceDraw(row, expected)) << "round " << round;
  }
}

// Rows of a batch share every scratch of the sampler and nothing else.
TEST_F(SamplerAgainstReference, ABatchOfAnySettingsIsItsRowsAlone) {
  constexpr size_t kVocab = 50;
  Sampler sampler(kVocab);
  sampler.ReserveHistory(64);
  for (uint64_t round = 0; round < 300; ++round) {
    std::vector<RowCase> cases;
    std::vector<std::unique_ptr<CaseInputs>> owned;
    std::vector<SampleInputs> rows;
    for (uint64_t i = 0; i < 16; ++i) {
      cases.push_back(RandomCase(kVocab, 60, round * 16 + i));
      cases.back().sampleable_tokens = 0;
    }
    for (const RowCase& row : cases) rows.push_back(owned.emplace_back(std::make_unique<CaseInputs>(row))->get());
    std::vector<SampleOutcome> outcomes(rows.size());
    sampler.Sample(rows, outcomes);
    for (size_t i = 0; i < cases.size(); ++i) {
      const SampleOutcome alone = OutcomeOf(cases[i]);
      ASSERT_EQ(outcomes[i].status, alone.status);
      ASSERT_EQ(outcomes[i].token, alone.token);
    }
  }
}

}  // namespace
}  // namespace oga::search

// A steady decode step of liboga allocates nothing; for the sampler that is: nothing after the constructor.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "native/search/reference_sampler.h"
#include "support/allocation_hooks.h"

namespace oga::search {
namespace {

// Every stage at once, and each of the loops that a selection may go through.
SamplingSettings Everything(int32_t top_k, float mass, bool greedy) {
  SamplingSettings settings;
  settings.do_sample = !greedy;
  settings.temperature = 0.9f;
  settings.top_k = top_k;
  settings.top_p = mass;
  settings.typical_p = mass;
  settings.min_p = 0.001f;
  settings.top_n_sigma = 4.0f;
  settings.xtc_probability = 0.5f;
  settings.repetition_penalty = 1.1f;
  settings.frequency_penalty = 0.1f;
  settings.no_repeat_ngram_size = 3;
  settings.dry_multiplier = 0.8f;
  settings.dry_breakers = {7};
  settings.logit_bias = {{8, 1.0f}};
  settings.banned_sequences = {{9}, {1, 2, 3}};
  settings.stop_tokens = {10};
  return settings;
}

TEST(Sampler, AllocatesNothingAfterConstructionAndReserve) {
  constexpr size_t kVocab = 3000;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  RowCase row;
  row.logits.resize(kVocab);
  row.eos_token_ids = {4};
  row.may_end = false;
  row.grammar.assign(kVocab, true);
  row.grammar[11] = false;
  for (int i = 0; i < 500; ++i) row.sequence.push_back(static_cast<TokenId>(random() % 20));
  row.output_begin = 100;
  const CaseInputs inputs(row);
  std::vector<SamplingSettings> settings;
  for (const int32_t top_k : {0, 1, 50, 1400, 2999}) {
    for (const float mass : {0.1f, 0.9f, 1.0f}) {
      for (const bool greedy : {true, false}) settings.push_back(Everything(top_k, mass, greedy));
    }
  }
  std::vector<SampleInputs> rows(settings.size(), inputs.get());
  for (size_t i = 0; i < rows.size(); ++i) rows[i].settings = &settings[i];
  std::vector<SampleOutcome> outcomes(rows.size());
  Sampler sampler(kVocab);
  sampler.ReserveHistory(row.sequence.size());

  const int before = oga::testing::g_allocations;
  for (uint64_t position = 0; position < 50; ++position) {
    for (float& logit : row.logits) logit = normal(random);
    for (SampleInputs& input : rows) input.position = position;
    sampler.Sample(rows, outcomes);
  }
  EXPECT_EQ(oga::testing::g_allocations, before);
  EXPECT_EQ(outcomes.back().status, SampleStatus::kOk);
}

TEST(TokenCounts, AllocatesOnlyInReserve) {
  TokenCounts counts(100);
  counts.Reserve(60);
  const int before = oga::testing::g_allocations;
  for (TokenId token = 0; token < 60; ++token) counts.Append(token);
  for (TokenId token = 0; token < 60; ++token) counts.Append(token);
  EXPECT_EQ(oga::testing::g_allocations, before);
}

TEST(DistinctTokens, AllocatesOnlyInReserve) {
  DistinctTokens distinct(100);
  distinct.Reserve(60);
  const std::vector<TokenId> sequence{5, 6, 5, 7};
  const int before = oga::testing::g_allocations;
  for (const TokenId token : sequence) distinct.Append(token);
  for (TokenId token = 0; token < 60; ++token) distinct.Append(token);
  EXPECT_EQ(oga::testing::g_allocations, before);
}

}  // namespace
}  // namespace oga::search

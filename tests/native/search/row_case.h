// Short ways to write rows and to sample them, shared by the sampler tests.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "native/search/reference_sampler.h"

namespace oga::search {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using Row = std::vector<float>;
using Tokens = std::vector<TokenId>;

inline SamplingSettings Greedy() { return {}; }

inline SamplingSettings Sampling(float temperature, int32_t top_k = 0, float top_p = 1.0f) {
  SamplingSettings settings;
  settings.do_sample = true;
  settings.temperature = temperature;
  settings.top_k = top_k;
  settings.top_p = top_p;
  return settings;
}

inline RowCase CaseOf(const Row& row, const SamplingSettings& settings) {
  RowCase result;
  result.logits = row;
  result.settings = settings;
  return result;
}

inline std::vector<uint32_t> Bitmask(size_t vocab, const Tokens& tokens) {
  std::vector<uint32_t> mask(BitmaskWords(vocab));
  for (const TokenId token : tokens) SetBit(mask, token);
  return mask;
}

inline SampleOutcome OutcomeOf(const RowCase& row) {
  Sampler sampler(static_cast<int32_t>(row.logits.size()), static_cast<int32_t>(row.sampleable()));
  if (row.settings.searches_sequence()) sampler.ReserveHistory(row.sequence.size());
  return sampler.Sample(CaseInputs(row).get());
}

inline TokenId TokenOf(const RowCase& row) {
  const SampleOutcome outcome = OutcomeOf(row);
  EXPECT_EQ(outcome.status, SampleStatus::kOk);
  return outcome.token;
}

inline TokenId TokenOf(const Row& row, const SamplingSettings& settings) { return TokenOf(CaseOf(row, settings)); }

// The tokens that appear in a thousand draws.
inline std::vector<bool> Support(RowCase row) {
  std::vector<bool> seen(row.logits.size());
  Sampler sampler(static_cast<int32_t>(row.logits.size()), static_cast<int32_t>(row.sampleable()));
  sampler.ReserveHistory(row.sequence.size());
  for (row.position = 0; row.position < 1000; ++row.position) {
    const SampleOutcome outcome = sampler.Sample(CaseInputs(row).get());
    EXPECT_EQ(outcome.status, SampleStatus::kOk);
    seen[static_cast<size_t>(outcome.token)] = true;
  }
  return seen;
}

inline std::vector<bool> Support(const Row& row, const SamplingSettings& settings) {
  return Support(CaseOf(row, settings));
}

}  // namespace oga::search

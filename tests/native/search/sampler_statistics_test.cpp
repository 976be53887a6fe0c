// Are 100,000 draws distributed as the settings say? Pearson's chi-square against the exact probabilities. The seeds
// are fixed, so a pass is a pass for ever; a right sampler exceeds the threshold for one choice of seeds in a million.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "native/search/reference_sampler.h"
#include "search/sampler.h"

namespace oga::search {
namespace {

constexpr int kDraws = 100000;

struct StatisticsCase {
  std::string name;
  void (*change)(RowCase&);
};

// Forty logits from a steep head to a long tail, with ties.
std::vector<float> Logits() {
  std::vector<float> logits(40);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = 3.0f - 0.2f * static_cast<float>((i * 17) % logits.size() / 2);
  }
  return logits;
}

// The quantile of the chi-square distribution that is exceeded with probability 1e-6 (Wilson and Hilferty).
double CriticalValue(double degrees) {
  constexpr double kNormalQuantile = 4.753424;
  const double spread = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1.0 - spread + kNormalQuantile * std::sqrt(spread), 3.0);
}

void ExpectDistribution(const std::vector<int>& counts, const Distribution& expected) {
  double statistic = 0.0;
  int inside = 0;
  for (const auto& [token, probability] : expected) {
    const double mean = probability * kDraws;
    ASSERT_GT(mean, 5.0) << "token " << token << " is too rare for the test";
    const int count = counts[static_cast<size_t>(token)];
    statistic += (count - mean) * (count - mean) / mean;
    inside += count;
  }
  EXPECT_EQ(inside, kDraws) << "tokens outside the support were drawn";
  EXPECT_LT(statistic, CriticalValue(static_cast<double>(expected.size()) - 1.0));
}

class SamplerStatistics : public testing::TestWithParam<StatisticsCase> {
 protected:
  SamplerStatistics() {
    row_.logits = Logits();
    row_.settings.do_sample = true;
    row_.sequence = {0, 5, 20, 11, 0, 5, 20, 30, 0, 5};
    row_.output_begin = 3;
    GetParam().change(row_);
  }

  // How often each token is drawn, along one sequence or from many seeds.
  std::vector<int> Count(bool along_positions) {
    Sampler sampler(static_cast<int32_t>(row_.logits.size()));
    sampler.ReserveHistory(row_.sequence.size());
    const CaseInputs inputs(row_);
    SampleInputs sampled = inputs.get();
    std::vector<int> counts(row_.logits.size());
    for (uint64_t i = 0; i < kDraws; ++i) {
      sampled.seed = along_positions ? 99 : i;
      sampled.position = along_positions ? i : 12;
      ++counts[static_cast<size_t>(sampler.Sample(sampled).token)];
    }
    return counts;
  }

  // XTC acts in its share of the draws, so the distribution is a mixture.
  Distribution Expected() const {
    const double share = row_.settings.xtc_probability;
    std::map<TokenId, double> mixture;
    for (const auto& [token, probability] : ReferenceDistribution(row_, false)) {
      mixture[token] += (1.0 - share) * probability;
    }
    if (share > 0.0) {
      for (const auto& [token, probability] : ReferenceDistribution(row_, true)) mixture[token] += share * probability;
    }
    std::erase_if(mixture, [](const auto& entry) { return entry.second == 0.0; });
    return {mixture.begin(), mixture.end()};
  }

  RowCase row_;
};

TEST_P(SamplerStatistics, DrawsAlongOneSequenceFollowTheDistribution) { ExpectDistribution(Count(true), Expected()); }

TEST_P(SamplerStatistics, DrawsOfManySeedsAtOnePositionFollowTheDistribution) {
  ExpectDistribution(Count(false), Expected());
}

INSTANTIATE_TEST_SUITE_P(
    , SamplerStatistics,
    testing::Values(StatisticsCase{"Temperature1", [](RowCase&) {}},
                    StatisticsCase{"TemperatureLow", [](RowCase& row) { row.settings.temperature = 0.6f; }},
                    StatisticsCase{"TemperatureHigh", [](RowCase& row) { row.settings.temperature = 3.0f; }},
                    StatisticsCase{"TopK", [](RowCase& row) { row.settings.top_k = 7; }},
                    StatisticsCase{"Typical", [](RowCase& row) { row.settings.typical_p = 0.7f; }},
                    StatisticsCase{"TopP", [](RowCase& row) { row.settings.top_p = 0.8f; }},
                    StatisticsCase{"MinP", [](RowCase& row) { row.settings.min_p = 0.2f; }},
                    StatisticsCase{"TopNSigma", [](RowCase& row) { row.settings.top_n_sigma = 1.5f; }},
                    StatisticsCase{"Xtc",
                                   [](RowCase& row) {
                                     row.settings.xtc_probability = 1.0f;
                                     row.settings.xtc_threshold = 0.05f;
                                   }},
                    StatisticsCase{"XtcNowAndThen",
                                   [](RowCase& row) {
                                     row.settings.xtc_probability = 0.3f;
                                     row.settings.xtc_threshold = 0.05f;
                                   }},
                    StatisticsCase{"Penalties",
                                   [](RowCase& row) {
                                     row.settings.repetition_penalty = 1.5f;
                                     row.settings.presence_penalty = 0.5f;
                                     row.settings.frequency_penalty = 0.25f;
                                     row.settings.dry_multiplier = 0.8f;
                                   }},
                    StatisticsCase{"Bans",
                                   [](RowCase& row) {
                                     row.settings.no_repeat_ngram_size = 3;
                                     row.settings.banned_sequences = {{0, 5, 7}, {2}};
                                     row.eos_token_ids = {3};
                                     row.may_end = false;
                                   }},
                    StatisticsCase{"All",
                                   [](RowCase& row) {
                                     row.settings.temperature = 1.4f;
                                     row.settings.repetition_penalty = 1.3f;
                                     row.settings.frequency_penalty = 0.2f;
                                     row.settings.logit_bias = {{17, 1.0f}};
                                     row.settings.top_k = 30;
                                     row.settings.typical_p = 0.95f;
                                     row.settings.top_p = 0.95f;
                                     row.settings.min_p = 0.05f;
                                     row.settings.top_n_sigma = 2.0f;
                                     row.settings.xtc_probability = 0.5f;
                                     row.settings.xtc_threshold = 0.06f;
                                   }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace oga::search

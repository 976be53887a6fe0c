// Are 100,000 draws distributed as the settings say? Pearson's chi-square against the exact probabilities. The seeds
// are fixed, so a pass is a pass for ever; a right sampler exceeds the threshold for one choice of seeds in a million.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "native/search/reference_sampler.h"
#include "search/sampler.h"

namespace oga::search {
namespace {

constexpr int kDraws = 100000;

struct StatisticsCase {
  std::string name;
  float temperature;
  int32_t top_k;
  float top_p;
  float penalty;
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
    settings_.greedy = false;
    settings_.temperature = GetParam().temperature;
    settings_.top_k = GetParam().top_k;
    settings_.top_p = GetParam().top_p;
    settings_.repetition_penalty = GetParam().penalty;
  }

  SampleInputs Inputs(uint64_t seed, uint64_t position) const {
    return {logits_, &settings_, penalized_, masked_, seed, position};
  }

  std::vector<int> Count(bool along_positions) const {
    Sampler sampler(static_cast<int32_t>(logits_.size()));
    std::vector<int> counts(logits_.size());
    for (uint64_t i = 0; i < kDraws; ++i) {
      const SampleOutcome outcome = sampler.Sample(along_positions ? Inputs(99, i) : Inputs(i, 12));
      ++counts[static_cast<size_t>(outcome.token)];
    }
    return counts;
  }

  std::vector<float> logits_ = Logits();
  std::vector<TokenId> penalized_{0, 5, 20};
  std::vector<TokenId> masked_{3};
  SamplingSettings settings_;
};

TEST_P(SamplerStatistics, DrawsAlongOneSequenceFollowTheDistribution) {
  ExpectDistribution(Count(true), ReferenceDistribution(Inputs(0, 0)));
}

TEST_P(SamplerStatistics, DrawsOfManySeedsAtOnePositionFollowTheDistribution) {
  ExpectDistribution(Count(false), ReferenceDistribution(Inputs(0, 0)));
}

INSTANTIATE_TEST_SUITE_P(, SamplerStatistics,
                         testing::Values(StatisticsCase{"Temperature1", 1.0f, 0, 1.0f, 1.0f},
                                         StatisticsCase{"TemperatureLow", 0.6f, 0, 1.0f, 1.0f},
                                         StatisticsCase{"TemperatureHigh", 3.0f, 0, 1.0f, 1.0f},
                                         StatisticsCase{"TopK", 1.0f, 7, 1.0f, 1.0f},
                                         StatisticsCase{"TopP", 1.0f, 0, 0.8f, 1.0f},
                                         StatisticsCase{"Penalty", 1.0f, 0, 1.0f, 1.5f},
                                         StatisticsCase{"All", 0.8f, 12, 0.9f, 1.3f}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace oga::search

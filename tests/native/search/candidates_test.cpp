// Each warper on rows small enough to work out by hand; tests/native/search/sampler_reference_test.cpp has the others.
#include "search/candidates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "native/search/row_case.h"

namespace oga::search {
namespace {

using Seen = std::vector<bool>;

// A row whose softmax is `probabilities`.
Row LogOf(const std::vector<double>& probabilities) {
  Row row;
  for (const double probability : probabilities) row.push_back(static_cast<float>(std::log(probability)));
  return row;
}

Seen SupportWith(const Row& row, void (*change)(SamplingSettings&)) {
  SamplingSettings settings = Sampling(1.0f);
  change(settings);
  return Support(row, settings);
}

TEST(Candidates, TopKAndTopPBreakTiesByLowestId) {
  const Row row(8, 1.5f);
  EXPECT_EQ(Support(row, Sampling(1.0f, 3)), (Seen{true, true, true, false, false, false, false, false}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 0.5f)), (Seen{true, true, true, true, false, false, false, false}));
  // -0 and 0 are one score.
  EXPECT_EQ(Support({-0.0f, 7.0f, 0.0f, 7.0f}, Sampling(1e6f, 3)), (Seen{true, true, false, true}));
  EXPECT_EQ(Support({0.0f, 7.0f, -0.0f, 7.0f}, Sampling(1e6f, 3)), (Seen{true, true, false, true}));
  EXPECT_EQ(Support({0.0f, -0.0f, -30.0f}, Sampling(1.0f, 0, 0.6f)), (Seen{true, true, false}));
}

TEST(Candidates, TopKKeepsFewerWhenFewerAreFinite) {
  EXPECT_EQ(Support({-kInf, 1.0f, -kInf, 1.0f, -kInf}, Sampling(1.0f, 4)), (Seen{false, true, false, true, false}));
}

TEST(Candidates, TopPActsOnWhatTopKLeft) {
  // Alone 0.6 would need two of the four equal tokens and more; within the top two, 0.6 of them is both.
  const Row row(4, 0.0f);
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 0.6f)), (Seen{true, true, true, false}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 2, 0.6f)), (Seen{true, true, false, false}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 2, 0.4f)), (Seen{true, false, false, false}));
}

TEST(Candidates, TopPKeepsTheTokenThatReachesTheMass) {
  const Row row = LogOf({0.1, 0.5, 0.15, 0.25});
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 0.45f)), (Seen{false, true, false, false}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 0.55f)), (Seen{false, true, false, true}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 0.8f)), (Seen{false, true, true, true}));
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 0.95f)), (Seen{true, true, true, true}));
}

TEST(Candidates, TypicalKeepsWhatSurprisesAsMuchAsIsToBeExpected) {
  // Entropy 1.21 nats; surprises 0.69, 1.39, 1.90, 2.30; deviations 0.51, 0.18, 0.69, 1.09.
  const Row row = LogOf({0.5, 0.25, 0.15, 0.1});
  const auto with = [&](float p) {
    SamplingSettings settings = Sampling(1.0f);
    settings.typical_p = p;
    return Support(row, settings);
  };
  EXPECT_EQ(with(0.2f), (Seen{true, true, false, false})) << "the most likely token stays, though it is less typical";
  EXPECT_EQ(with(0.7f), (Seen{true, true, false, false}));
  EXPECT_EQ(with(0.8f), (Seen{true, true, true, false}));
  EXPECT_EQ(with(0.95f), (Seen{true, true, true, true}));
}

TEST(Candidates, TypicalBreaksTiesByLowestId) {
  EXPECT_EQ(SupportWith(Row(6, 2.0f), [](auto& settings) { settings.typical_p = 0.5f; }),
            (Seen{true, true, true, false, false, false}));
}

TEST(Candidates, MinPIsRelativeToTheMostLikelyToken) {
  const Row row = LogOf({0.5, 0.26, 0.14, 0.1});
  const auto with = [&](float p, float temperature) {
    SamplingSettings settings = Sampling(temperature);
    settings.min_p = p;
    return Support(row, settings);
  };
  EXPECT_EQ(with(0.5f, 1.0f), (Seen{true, true, false, false}));
  EXPECT_EQ(with(0.25f, 1.0f), (Seen{true, true, true, false}));
  EXPECT_EQ(with(0.5f, 3.0f), (Seen{true, true, true, true})) << "after the temperature";
  EXPECT_EQ(with(1.0f, 1.0f), (Seen{true, false, false, false}));
  EXPECT_EQ(SupportWith({3.0f, 3.0f, 2.0f}, [](auto& settings) { settings.min_p = 1.0f; }), (Seen{true, true, false}));
}

TEST(Candidates, TopNSigmaKeepsWhatIsNearTheHighestLogit) {
  // Standard deviation 2: within one of them 6 and more, within two 4 and more.
  const Row row{8.0f, 6.5f, 4.5f, 3.0f, 8.0f, 3.0f};
  const double mean = 33.0 / 6;
  double variance = 0.0;
  for (const float logit : row) variance += (logit - mean) * (logit - mean) / 6;
  ASSERT_NEAR(std::sqrt(variance), 2.1, 0.05);
  const auto with = [&](float n, float temperature) {
    SamplingSettings settings = Sampling(temperature);
    settings.top_n_sigma = n;
    return Support(row, settings);
  };
  for (const float temperature : {1.0f, 5.0f}) {  // which does not matter to it
    EXPECT_EQ(with(0.5f, temperature), (Seen{true, false, false, false, true, false}));
    EXPECT_EQ(with(1.0f, temperature), (Seen{true, true, false, false, true, false}));
    EXPECT_EQ(with(2.0f, temperature), (Seen{true, true, true, false, true, false}));
  }
}

TEST(Candidates, TopNSigmaLooksAtTheWholeRowAndNotAtWhatIsExcluded) {
  Row row{8.0f, 7.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  SamplingSettings settings = Sampling(1.0f, 2);
  settings.top_n_sigma = 1.0f;
  EXPECT_EQ(Support(row, settings), (Seen{true, true, false, false, false, false}))
      << "of the two that top_k leaves, the standard deviation would be 0.5";
  row.insert(row.end(), {-kInf, -kInf});
  EXPECT_EQ(Support(row, settings), (Seen{true, true, false, false, false, false, false, false}));
  EXPECT_EQ(Support({5.0f, 5.0f}, settings), (Seen{true, true})) << "a row without deviation";
}

TEST(Candidates, XtcExcludesAllTopChoicesButTheLeastLikely) {
  const Row row = LogOf({0.05, 0.4, 0.3, 0.05, 0.2});
  const auto with = [&](float threshold, float probability = 1.0f) {
    SamplingSettings settings = Sampling(1.0f);
    settings.xtc_threshold = threshold;
    settings.xtc_probability = probability;
    return Support(row, settings);
  };
  EXPECT_EQ(with(0.45f), (Seen{true, true, true, true, true})) << "no top choice";
  EXPECT_EQ(with(0.35f), (Seen{true, true, true, true, true})) << "one top choice stays";
  EXPECT_EQ(with(0.25f), (Seen{true, false, true, true, true}));
  EXPECT_EQ(with(0.1f), (Seen{true, false, false, true, true}));
  EXPECT_EQ(with(0.0f), (Seen{false, false, false, true, false})) << "of equal ones the highest id is the least likely";
  EXPECT_EQ(with(0.1f, 0.0f), (Seen{true, true, true, true, true}));
  EXPECT_EQ(with(0.1f, 0.5f), (Seen{true, true, true, true, true})) << "in half of the draws it does not act";
}

TEST(Candidates, TheMostLikelyTokenIsNeverDroppedByOthers) {
  const Row row{0.1f, 0.3f, 0.2f};
  const Seen only{false, true, false};
  EXPECT_EQ(Support(row, Sampling(1.0f, 0, 1e-7f)), only);
  EXPECT_EQ(Support(row, Sampling(1.0f, 2, 1e-7f)), only);
  EXPECT_EQ(SupportWith(row, [](auto& settings) { settings.min_p = 1.0f; }), only);
  EXPECT_EQ(SupportWith(row, [](auto& settings) { settings.top_n_sigma = 1e-7f; }), only);
  EXPECT_TRUE(SupportWith(row, [](auto& settings) { settings.typical_p = 1e-7f; })[1]);
}

// An outlier stretches the range of keys until all others share one bucket.
TEST(Candidates, SelectionByMassIsExactWhateverTheSpread) {
  Row row(3000, 0.0f);
  for (size_t i = 0; i < row.size(); ++i) row[i] = 1e-3f * static_cast<float>((i * 7919) % 3000);
  row[17] = -1e30f;
  for (const float mass : {0.01f, 0.3f, 0.77f, 0.999f}) {
    RowCase sampled = CaseOf(row, Sampling(1.0f, 0, mass));
    for (sampled.position = 0; sampled.position < 50; ++sampled.position) {
      ASSERT_EQ(TokenOf(sampled), ReferenceDraw(sampled, ReferenceDistribution(sampled)));
    }
    sampled.settings.top_p = 1.0f;
    sampled.settings.typical_p = mass;
    for (sampled.position = 0; sampled.position < 20; ++sampled.position) {
      ASSERT_EQ(TokenOf(sampled), ReferenceDraw(sampled, ReferenceDistribution(sampled)));
    }
  }
}

}  // namespace
}  // namespace oga::search

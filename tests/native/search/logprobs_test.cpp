#include "search/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace oga::search {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// By sorting the whole row, in long double.
struct Reference {
  std::vector<TokenId> order;
  std::vector<long double> logprobs;
};

Reference ReferenceOf(std::span<const float> scores) {
  Reference reference;
  reference.order.resize(scores.size());
  std::iota(reference.order.begin(), reference.order.end(), 0);
  std::stable_sort(reference.order.begin(), reference.order.end(),
                   [&](TokenId a, TokenId b) { return scores[a] > scores[b]; });
  long double sum = 0;
  const long double highest = scores[reference.order.front()];
  for (const float score : scores) sum += std::exp(static_cast<long double>(score) - highest);
  for (const float score : scores) reference.logprobs.push_back(score - highest - std::log(sum));
  return reference;
}

TEST(Logprobs, EqualASortedSoftmax) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(1 + random() % 300);
    // Few distinct values, so that ties are common.
    for (float& score : scores) score = static_cast<float>(random() % 40) / 3.0f - 6.0f;
    if (round % 3 == 0) scores[random() % scores.size()] = 30.0f;
    const Reference reference = ReferenceOf(scores);
    const auto token = static_cast<TokenId>(random() % scores.size());
    const auto other = static_cast<TokenId>(random() % scores.size());
    const size_t top = random() % 21;
    const TokenLogprobs result = ComputeLogprobs(scores, token, top, std::vector<TokenId>{other});
    const size_t told = std::min(top, scores.size());
    ASSERT_EQ(result.tokens.size(), 2 + told);
    std::vector<TokenId> wanted{token};
    wanted.insert(wanted.end(), reference.order.begin(), reference.order.begin() + static_cast<std::ptrdiff_t>(told));
    wanted.push_back(other);
    EXPECT_EQ(result.tokens, wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(result.logprobs[i], static_cast<double>(reference.logprobs[wanted[i]]), 1e-5);
      const auto place = std::find(reference.order.begin(), reference.order.end(), wanted[i]);
      EXPECT_EQ(result.ranks[i], place - reference.order.begin() + 1);
    }
  }
}

TEST(Logprobs, ExcludedTokensHaveNoProbabilityAndAreNotAmongTheMostLikely) {
  const std::vector<float> scores{1.0f, -kInfinity, 0.0f, -kInfinity};
  const TokenLogprobs result = ComputeLogprobs(scores, 0, 20, std::vector<TokenId>{3});
  EXPECT_EQ(result.tokens, (std::vector<TokenId>{0, 0, 2, 3}));
  EXPECT_EQ(result.logprobs[3], -kInfinity);
  EXPECT_NEAR(std::exp(result.logprobs[1]) + std::exp(result.logprobs[2]), 1.0, 1e-6);
}

TEST(Logprobs, TokensBeyondTheRowCouldNotHaveBeenChosen) {
  const TokenLogprobs result = ComputeLogprobs(std::vector<float>{0.0f, 0.0f}, 5, 0, {});
  EXPECT_EQ(result.logprobs.front(), -kInfinity);
  EXPECT_EQ(result.ranks.front(), 3);
}

TEST(Logprobs, RowsThatAreNoDistributionAreBad) {
  EXPECT_TRUE(IsBadRow(std::vector<float>{0.0f, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_TRUE(IsBadRow(std::vector<float>{0.0f, kInfinity}));
  EXPECT_TRUE(IsBadRow(std::vector<float>{-kInfinity, -kInfinity}));
  EXPECT_FALSE(IsBadRow(std::vector<float>{-kInfinity, -3.0f}));
}

}  // namespace
}  // namespace oga::search

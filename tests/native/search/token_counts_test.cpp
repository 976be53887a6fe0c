#include "search/token_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace oga::search {
namespace {

std::vector<TokenCount> Values(const TokenCounts& counts) { return {counts.values().begin(), counts.values().end()}; }

TEST(TokenCounts, HoldsEachTokenOnceInFirstSeenOrderWithItsCount) {
  TokenCounts counts(100);
  counts.Reserve(6);
  for (const TokenId token : {5, 99, 5, 0, 5, 99}) counts.Append(token);
  EXPECT_EQ(Values(counts), (std::vector<TokenCount>{{5, 3}, {99, 2}, {0, 1}}));
}

TEST(TokenCounts, IsEmptyAtFirst) { EXPECT_TRUE(TokenCounts(10).values().empty()); }

TEST(TokenCounts, GrowsOneTokenAtATimeAndForgetsNothing) {
  constexpr int32_t kVocab = 5000;
  std::mt19937 random(5);
  TokenCounts counts(kVocab);
  std::map<TokenId, uint32_t> expected;
  std::vector<TokenId> order;
  for (int i = 0; i < 20000; ++i) {
    const auto token = static_cast<TokenId>(random() % kVocab);
    counts.Reserve(1);
    counts.Append(token);
    if (expected[token]++ == 0) order.push_back(token);
  }
  const std::vector<TokenCount> values = Values(counts);
  ASSERT_EQ(values.size(), order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(values[i].token, order[i]);
    EXPECT_EQ(values[i].count, expected[order[i]]);
  }
}

TEST(TokenCounts, NeedsNoMoreRoomThanTheVocabulary) {
  TokenCounts counts(3);
  counts.Reserve(size_t{1} << 60);
  for (int i = 0; i < 30; ++i) counts.Append(i % 3);
  EXPECT_EQ(Values(counts), (std::vector<TokenCount>{{0, 10}, {1, 10}, {2, 10}}));
}

}  // namespace
}  // namespace oga::search

#include "search/distinct_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace oga::search {
namespace {

using Tokens = std::vector<TokenId>;

Tokens Values(const DistinctTokens& distinct) { return {distinct.values().begin(), distinct.values().end()}; }

// What the class promises, the slow way.
Tokens FirstSeenOrder(std::span<const TokenId> sequence) {
  Tokens out;
  for (const TokenId token : sequence) {
    if (std::find(out.begin(), out.end(), token) == out.end()) out.push_back(token);
  }
  return out;
}

void AppendAll(DistinctTokens& distinct, std::span<const TokenId> sequence) {
  distinct.Reserve(sequence.size());
  for (const TokenId token : sequence) distinct.Append(token);
}

TEST(DistinctTokens, StartsEmpty) { EXPECT_TRUE(DistinctTokens(10).values().empty()); }

TEST(DistinctTokens, HoldsEachTokenOnceInFirstSeenOrder) {
  DistinctTokens distinct(10);
  AppendAll(distinct, Tokens{7, 0, 7, 9, 0, 0, 3});
  EXPECT_EQ(Values(distinct), (Tokens{7, 0, 9, 3}));
}

TEST(DistinctTokens, AppendsWithinTheReservationWithoutMoving) {
  DistinctTokens distinct(1000);
  distinct.Reserve(100);
  distinct.Append(0);
  const TokenId* before = distinct.values().data();
  for (TokenId token = 1; token < 100; ++token) distinct.Append(token);
  EXPECT_EQ(distinct.values().data(), before);
}

TEST(DistinctTokens, ReservingOneTokenAtATimeMovesRarely) {
  DistinctTokens distinct(4096);
  const TokenId* data = nullptr;
  int moves = 0;
  for (TokenId token = 0; token < 4096; ++token) {
    distinct.Reserve(1);
    distinct.Append(token);
    moves += distinct.values().data() != data;
    data = distinct.values().data();
  }
  EXPECT_LE(moves, 13);
}

TEST(DistinctTokens, ReservesNoMoreThanTheVocabularyForAHugeSequence) {
  DistinctTokens distinct(4);
  distinct.Reserve(SIZE_MAX);
  AppendAll(distinct, Tokens{3, 2, 1, 0, 0, 1, 2, 3});
  distinct.Reserve(SIZE_MAX);
  EXPECT_EQ(Values(distinct), (Tokens{3, 2, 1, 0}));
}

TEST(DistinctTokens, EqualsTheSlowDefinitionForRandomSequences) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Tokens sequence(random() % 60);
    for (TokenId& token : sequence) token = static_cast<TokenId>(random() % 20);
    DistinctTokens distinct(20);
    AppendAll(distinct, sequence);
    ASSERT_EQ(Values(distinct), FirstSeenOrder(sequence));
  }
}

}  // namespace
}  // namespace oga::search

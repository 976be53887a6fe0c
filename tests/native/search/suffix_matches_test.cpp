#include "search/suffix_matches.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/check.h"

namespace oga::search {
namespace {

using Tokens = std::vector<TokenId>;

std::vector<uint32_t> LengthsOf(const Tokens& sequence) {
  SuffixMatches matches;
  matches.Reserve(sequence.size());
  matches.Find(sequence);
  std::vector<uint32_t> lengths;
  for (size_t i = 0; i < sequence.size(); ++i) lengths.push_back(matches.LengthBefore(i));
  return lengths;
}

TEST(SuffixMatches, TellsHowLongTheEndOccurredBeforeEachPosition) {
  EXPECT_EQ(LengthsOf({1, 2, 3, 3, 2, 3, 9, 1, 2, 3}), (std::vector<uint32_t>{0, 0, 0, 3, 1, 0, 2, 0, 0, 0}));
  EXPECT_EQ(LengthsOf({7, 7, 7, 7}), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(LengthsOf({7}), (std::vector<uint32_t>{0}));
  EXPECT_TRUE(LengthsOf({}).empty());
}

TEST(SuffixMatches, AgreesWithComparingTokenByToken) {
  std::mt19937 random(11);
  SuffixMatches matches;
  for (int round = 0; round < 3000; ++round) {
    Tokens sequence(random() % 60);
    const uint32_t different = 1 + random() % 4;
    for (TokenId& token : sequence) token = static_cast<TokenId>(random() % different);
    matches.Reserve(sequence.size());
    matches.Find(sequence);
    for (size_t i = 0; i < sequence.size(); ++i) {
      size_t length = 0;
      while (length < i && sequence[i - 1 - length] == sequence[sequence.size() - 1 - length]) ++length;
      ASSERT_EQ(matches.LengthBefore(i), length) << "position " << i << " of round " << round;
    }
  }
}

TEST(SuffixMatches, ASequenceBeyondTheRoomIsABrokenContract) {
  SuffixMatches matches;
  matches.Reserve(2);
  EXPECT_THROW(matches.Find(Tokens{1, 2, 3}), ContractError);
}

}  // namespace
}  // namespace oga::search

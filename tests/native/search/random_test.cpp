#include "search/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>

namespace oga::search {
namespace {

using Words4 = std::array<uint32_t, 4>;

// The vectors for "philox4x32 10" that the authors publish with Random123.
TEST(Philox, MatchesThePublishedKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (Words4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, IsThe53HighBitsOfTheFirstTwoWords) {
  const uint64_t bits = (uint64_t{0xe169c58d} << 32) | 0x6627e8d5;
  EXPECT_EQ(Random(0, 0, RandomPurpose::kTokenDraw), static_cast<double>(bits >> 11) / 9007199254740992.0);
}

TEST(Random, StaysInTheHalfOpenUnitIntervalAndIsCentred) {
  double sum = 0.0;
  double squares = 0.0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = Random(42, static_cast<uint64_t>(i), RandomPurpose::kTokenDraw);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  // Five standard errors: sqrt(1/12/n) for the mean, sqrt(4/45/n) for the mean square.
  EXPECT_NEAR(sum / kDraws, 0.5, 0.0046);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3.0, 0.0048);
}

TEST(Random, UsesEveryBitOfSeedAndPosition) {
  const double base = Random(0, 0, RandomPurpose::kTokenDraw);
  std::set<double> seen{base};
  for (int bit = 0; bit < 64; ++bit) {
    seen.insert(Random(uint64_t{1} << bit, 0, RandomPurpose::kTokenDraw));
    seen.insert(Random(0, uint64_t{1} << bit, RandomPurpose::kTokenDraw));
  }
  seen.insert(Random(~uint64_t{0}, 0, RandomPurpose::kTokenDraw));
  EXPECT_EQ(seen.size(), 130u);
}

TEST(Random, SeparatesPurposes) {
  EXPECT_NE(Random(7, 7, RandomPurpose::kTokenDraw), Random(7, 7, static_cast<RandomPurpose>(1)));
}

TEST(Random, GivesTheSameValueForTheSameInputs) {
  const double first = Random(123, 456, RandomPurpose::kTokenDraw);
  Random(9, 9, RandomPurpose::kTokenDraw);
  EXPECT_EQ(Random(123, 456, RandomPurpose::kTokenDraw), first);
}

}  // namespace
}  // namespace oga::search

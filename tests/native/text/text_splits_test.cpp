// Cutting texts: what each known expression matches where they differ, digits, delimiters.
#include "text/text_splits.h"

#include <gtest/gtest.h>

namespace oga {
namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

TEST(TextSplits, KnowExpressionsByTheirExactText) {
  const SplitPattern* gpt2 = FindSplitPattern(kGpt2);
  ASSERT_NE(gpt2, nullptr);
  EXPECT_EQ(*gpt2, SplitPattern::kGpt2);
  EXPECT_EQ(FindSplitPattern(std::string(kGpt2) + " "), nullptr);
  EXPECT_EQ(FindSplitPattern(""), nullptr);
}

TEST(TextSplits, LeaveTheLastSpaceOfARunToTheWord) {
  for (const SplitPattern pattern : {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    EXPECT_EQ(SplitByPattern("a   b  ", pattern), (Pieces{"a", "  ", " b", "  "}));
    EXPECT_EQ(SplitByPattern("", pattern), Pieces{});
  }
}

TEST(TextSplits, TakeDigitsAsThePatternSays) {
  EXPECT_EQ(SplitByPattern(" 12345", SplitPattern::kGpt2), Pieces{" 12345"});
  EXPECT_EQ(SplitByPattern("12345", SplitPattern::kLlama3), (Pieces{"123", "45"}));
  EXPECT_EQ(SplitByPattern("123", SplitPattern::kQwen2), (Pieces{"1", "2", "3"}));
  EXPECT_EQ(SplitByPattern(" 1", SplitPattern::kQwen2), (Pieces{" ", "1"}));
}

TEST(TextSplits, MindTheCaseOfContractionsInGpt2Only) {
  EXPECT_EQ(SplitByPattern("we'll'Ve", SplitPattern::kGpt2), (Pieces{"we", "'ll", "'", "Ve"}));
  EXPECT_EQ(SplitByPattern("WE'LL've", SplitPattern::kLlama3), (Pieces{"WE", "'LL", "'ve"}));
  EXPECT_EQ(SplitByPattern("'", SplitPattern::kLlama3), Pieces{"'"});
}

TEST(TextSplits, EndAtLinesInLlama3) {
  EXPECT_EQ(SplitByPattern("a.\n\n b", SplitPattern::kLlama3), (Pieces{"a", ".\n\n", " b"}));
  EXPECT_EQ(SplitByPattern("a \n \n  b", SplitPattern::kLlama3), (Pieces{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(SplitByPattern("(a", SplitPattern::kLlama3), Pieces{"(a"}) << "a word takes one other character";
  EXPECT_EQ(SplitByPattern("(a", SplitPattern::kGpt2), (Pieces{"(", "a"}));
}

TEST(TextSplits, TellDigitsFromTheRest) {
  EXPECT_EQ(SplitByDigits("a12\u0663b", false), (Pieces{"a", "12\u0663", "b"}));
  EXPECT_EQ(SplitByDigits("a12b", true), (Pieces{"a", "1", "2", "b"}));
  EXPECT_EQ(SplitByDigits("", true), Pieces{});
}

TEST(TextSplits, JoinADelimiterWithTheNeighbourThatItTouches) {
  using enum DelimiterBehavior;
  EXPECT_EQ(SplitByDelimiter("a--b", "-", kIsolated), (Pieces{"a", "-", "-", "b"}));
  EXPECT_EQ(SplitByDelimiter("a--b", "-", kMergedWithPrevious), (Pieces{"a-", "-", "b"}));
  EXPECT_EQ(SplitByDelimiter("a--b", "-", kMergedWithNext), (Pieces{"a", "-", "-b"}));
  EXPECT_EQ(SplitByDelimiter("-a-", "-", kMergedWithPrevious), (Pieces{"-", "a-"}));
  EXPECT_EQ(SplitByDelimiter("-a-", "-", kMergedWithNext), (Pieces{"-a", "-"}));
}

}  // namespace
}  // namespace oga

#include "base/utf8.h"

#include <gtest/gtest.h>

#include <vector>

namespace oga {
namespace {

// The kinds of what NextUtf8 finds one behind the other: c for a character, i for an incomplete one, x for no character;
// each with its bytes.
std::string Steps(std::string_view bytes) {
  std::string steps;
  while (!bytes.empty()) {
    const Utf8Step step = NextUtf8(bytes);
    steps += "cix"[static_cast<int>(step.kind)];
    steps += std::to_string(step.length);
    bytes.remove_prefix(step.length);
  }
  return steps;
}

TEST(Utf8, FindsCharactersOfEveryLength) {
  EXPECT_EQ(Steps("aé模🙂"), "c1c2c3c4");
  EXPECT_EQ(Steps(std::string("\0", 1)), "c1");
  EXPECT_EQ(Steps("\xef\xbf\xbf\xf4\x8f\xbf\xbf"), "c3c4") << "the last ones";
}

TEST(Utf8, TellsAnUnfinishedCharacterFromABrokenOne) {
  EXPECT_EQ(Steps("\xc3"), "i1");
  EXPECT_EQ(Steps("\xf0\x9f\x99"), "i3");
  EXPECT_EQ(Steps("\xf0\x9f"
                  "a"),
            "x2c1");
  EXPECT_EQ(Steps("\xe2\x82\xe2\x82\xac"), "x2c3");
}

TEST(Utf8, TakesNoOverlongFormsNoSurrogatesAndNothingBeyondTheLastCodePoint) {
  EXPECT_EQ(Steps("\xc0\xaf"), "x1x1");
  EXPECT_EQ(Steps("\xe0\x80\xaf"), "x1x1x1");
  EXPECT_EQ(Steps("\xf0\x80\x80\xaf"), "x1x1x1x1");
  EXPECT_EQ(Steps("\xed\xa0\x80"), "x1x1x1");
  EXPECT_EQ(Steps("\xf4\x90\x80\x80"), "x1x1x1x1");
  EXPECT_EQ(Steps("\xf5\xff\xbf"), "x1x1x1");
  EXPECT_EQ(Steps("\xe0"), "i1");
  EXPECT_EQ(Steps("\xe0\x9f"), "x1x1") << "no third byte can make this a character";
}

TEST(Utf8, FindsTheFirstByteThatIsWrong) {
  EXPECT_EQ(FindInvalidUtf8(""), std::string_view::npos);
  EXPECT_EQ(FindInvalidUtf8("aé模🙂"), std::string_view::npos);
  EXPECT_EQ(FindInvalidUtf8("é\xff"), 2u);
  EXPECT_EQ(FindInvalidUtf8("ab\xf0\x9f"), 2u);
}

TEST(Utf8, CodePointsSurviveTheRoundTrip) {
  for (char32_t code_point = 0; code_point < 0x110000; code_point += code_point < 0x1000 ? 1 : 97) {
    if (code_point >= 0xd800 && code_point < 0xe000) continue;
    std::string text;
    AppendUtf8(code_point, text);
    ASSERT_EQ(Steps(text), "c" + std::to_string(text.size()));
    ASSERT_EQ(CodePointOf(text), code_point);
  }
}

}  // namespace
}  // namespace oga

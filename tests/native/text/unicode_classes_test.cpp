// The classes of characters, at the borders of their ranges.
#include "text/unicode_classes.h"

#include <gtest/gtest.h>

namespace oga {
namespace {

TEST(UnicodeClasses, KnowLetters) {
  for (const char32_t letter : {U'A', U'Z', U'a', U'z', U'\u00aa', U'ß', U'日', U'\U00020000'})
    EXPECT_TRUE(IsLetter(letter));
  for (const char32_t other : {U'\0', U'@', U'[', U'`', U'{', U'1', U'_', U'\u0301', U'🙂', U'\U0010ffff'}) {
    EXPECT_FALSE(IsLetter(other)) << static_cast<uint32_t>(other);
  }
}

TEST(UnicodeClasses, TellNumbersFromLetters) {
  for (const char32_t number : {U'0', U'9', U'²', U'½', U'\u0663', U'Ⅷ'}) {
    EXPECT_TRUE(IsNumber(number)) << static_cast<uint32_t>(number);
    EXPECT_FALSE(IsLetter(number)) << static_cast<uint32_t>(number);
  }
  for (const char32_t other : {U'/', U':', U'a', U'一'}) EXPECT_FALSE(IsNumber(other)) << static_cast<uint32_t>(other);
  for (const char32_t digit : {U'0', U'9', U'\u0663'}) EXPECT_TRUE(IsDigit(digit));
  EXPECT_FALSE(IsDigit(U'a'));
}

TEST(UnicodeClasses, KnowSpaces) {
  for (const char32_t space : {U'\t', U'\n', U'\r', U' ', U'\u0085', U'\u00a0', U'\u2028', U'\u3000'}) {
    EXPECT_TRUE(IsSpace(space)) << static_cast<uint32_t>(space);
  }
  for (const char32_t other : {U'\b', U'\u000e', U'!', U'\u200b', U'\ufeff'}) {
    EXPECT_FALSE(IsSpace(other)) << static_cast<uint32_t>(other);
  }
}

TEST(UnicodeClasses, KnowWhatCompositionMayChange) {
  for (const char* text : {"", "plain", "é", "日本", "🙂"}) EXPECT_TRUE(IsComposed(text)) << text;
  for (const char* text : {"e\u0301", "a\u212b", "\u1100\u1161"}) EXPECT_FALSE(IsComposed(text)) << text;
}

}  // namespace
}  // namespace oga

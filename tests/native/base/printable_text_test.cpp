#include "base/printable_text.h"

#include <gtest/gtest.h>

namespace oga {
namespace {

TEST(PrintableText, KeepsEveryLanguage) {
  for (const char* text : {"", "plain", "modèle", "模型", "🙂", "a b", "#%&';$()", "back\\slash"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableText, WritesBytesThatAreNotUtf8AsHex) {
  const struct {
    std::string bytes;
    const char* shown;
  } rows[] = {
      {"\xff", "\\xff"},
      {"mod\xe8le", "mod\\xe8le"},                   // Latin-1
      {"\xc3", "\\xc3"},                             // cut off
      {"\xe6\xa8", "\\xe6\\xa8"},                    // cut off
      {"\xc0\xaf", "\\xc0\\xaf"},                    // overlong
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},           // overlong
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond the last code point
      {"\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"},
      {"\x80x", "\\x80x"},
      {"é\xa9", "é\\xa9"},
  };
  for (const auto& row : rows) EXPECT_EQ(Printable(row.bytes), row.shown);
}

TEST(PrintableText, WritesControlCharactersAsHexSoThatAMessageStaysOneLine) {
  EXPECT_EQ(Printable(std::string("a\nb\t\x1b[31m\x7f\0c", 12)), "a\\x0ab\\x09\\x1b[31m\\x7f\\x00c");
  EXPECT_EQ(Printable("\xc2\x85"), "\\xc2\\x85");
  EXPECT_EQ(Printable("\xc2\xa0"), "\xc2\xa0");
}

TEST(PrintableText, CutsALongQuoteBetweenCharacters) {
  EXPECT_EQ(Quoted("abc"), "'abc'");
  EXPECT_EQ(Quoted("abcdef", 3), "'abc...'");
  EXPECT_EQ(Quoted("abc", 3), "'abc'");
  EXPECT_EQ(Quoted("ééé", 3), "'éé...'");
  EXPECT_EQ(Quoted("\xff\xff\xff", 2), "'\\xff\\xff...'");
}

}  // namespace
}  // namespace oga

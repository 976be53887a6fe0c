// The characters that stand for bytes in byte-level vocabularies.
#include "text/byte_alphabet.h"

#include <gtest/gtest.h>

namespace oga {
namespace {

TEST(ByteAlphabet, WritesPrintableBytesAsThemselvesAndTheOthersFromU0100On) {
  const std::pair<int, const char*> rows[] = {{0x21, "!"},      {0x7e, "~"},      {0xa1, "\u00a1"}, {0xac, "\u00ac"},
                                              {0xae, "\u00ae"}, {0xff, "\u00ff"}, {0x00, "\u0100"}, {0x20, "\u0120"},
                                              {0x7f, "\u0121"}, {0xa0, "\u0142"}, {0xad, "\u0143"}};
  for (const auto& [byte, character] : rows) EXPECT_EQ(AlphabetOf(static_cast<uint8_t>(byte)), character) << byte;
}

TEST(ByteAlphabet, WritesEveryByteInAWayThatReadsBack) {
  std::string bytes;
  std::string text;
  for (int byte = 0; byte < 256; ++byte) {
    bytes += static_cast<char>(byte);
    text += AlphabetOf(static_cast<uint8_t>(byte));
  }
  EXPECT_EQ(BytesOfAlphabet(text), bytes);
  EXPECT_EQ(BytesOfAlphabet(""), "");
}

TEST(ByteAlphabet, HasNoBytesForOtherCharacters) {
  for (const char* text : {" ", "a b", "\u00ad", "\u0144", "日", "a\xff", "\xc4"}) {
    EXPECT_EQ(BytesOfAlphabet(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace oga

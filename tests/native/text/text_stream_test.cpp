// Text from tokens, against what the `tokenizers` library decodes, for every kind of tokenizer.
#include "text/text_stream.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "support/texts.h"
#include "text/token_bytes_loader.h"

namespace oga {
namespace {

using Pieces = std::vector<std::string>;

std::shared_ptr<const TokenBytes> Load(const std::string& kind) {
  return std::make_shared<const TokenBytes>(MakeTokenBytes(ReadTokenizerFiles(test::TextFolder(kind))));
}

Pieces Stream(TextStream& stream, const std::vector<TokenId>& tokens) {
  Pieces pieces;
  for (const TokenId token : tokens) stream.Append(token, pieces.emplace_back());
  stream.Finish(pieces.emplace_back());
  return pieces;
}

std::string Join(const Pieces& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

// A table of the bytes given, in which tokens named <0xNN> are byte tokens and <s> is special.
std::shared_ptr<const TokenBytes> Table(const Pieces& tokens) {
  auto table = std::make_shared<TokenBytes>();
  for (const std::string& token : tokens) {
    const bool is_byte = token.starts_with("<0x");
    const std::string bytes =
        is_byte ? std::string(1, static_cast<char>(std::stoi(token.substr(3, 2), nullptr, 16))) : token;
    table->bytes += token == "<hole>" ? "" : bytes;
    table->offsets.push_back(static_cast<uint32_t>(table->bytes.size()));
    table->flags.push_back(static_cast<uint8_t>(token == "<hole>"
                                                    ? 0
                                                    : TokenBytes::kKnown | (is_byte ? TokenBytes::kByte : 0) |
                                                          (token == "<s>" ? TokenBytes::kSpecial : 0)));
  }
  return table;
}

class EveryKind : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryKind, StreamsTheTextThatTheReferenceDecodesAtOnce) {
  const auto lists = test::ReadGolden(GetParam()).lists;
  ASSERT_GE(lists.size(), 6000u);
  TextStream hiding(Load(GetParam()));
  TextStream showing(Load(GetParam()), /*skip_special=*/false);
  for (const auto& list : lists) {
    const Pieces pieces = Stream(hiding, list.ids);
    ASSERT_EQ(Join(pieces), list.text) << ::testing::PrintToString(list.ids);
    for (const std::string& piece : pieces) ASSERT_EQ(FindInvalidUtf8(piece), std::string::npos);
    ASSERT_EQ(Join(Stream(showing, list.ids)), list.text_and_specials) << ::testing::PrintToString(list.ids);
  }
}

TEST_P(EveryKind, DecodesAtOnceWhatItStreams) {
  const auto tokens = Load(GetParam());
  const test::Golden golden = test::ReadGolden(GetParam());
  for (const auto& list : golden.lists) {
    ASSERT_EQ(DecodeText(tokens, list.ids), list.text);
  }
}

// Whatever part of the bytes is visible when, the visible bytes come out, once and in order.
TEST_P(EveryKind, HandsOutVisibleBytesOnlyAndAllOfThemInTheEnd) {
  TextStream stream(Load(GetParam()));
  uint32_t random = 1;
  const test::Golden golden = test::ReadGolden(GetParam());
  for (const auto& list : golden.lists) {
    std::string text;
    uint64_t visible = 0;
    for (const TokenId token : list.ids) {
      random = random * 1664525 + 1013904223;
      visible += random >> 29;
      stream.Append(token, text, visible);
      ASSERT_EQ(FindInvalidUtf8(text), std::string::npos);
    }
    stream.Finish(text);
    ASSERT_EQ(text, list.text);
  }
}

INSTANTIATE_TEST_SUITE_P(Text, EveryKind, ::testing::ValuesIn(test::TextKinds()),
                         [](const auto& kind) { return kind.param; });

TEST(TextStream, GivesACharacterWithItsLastByte) {
  TextStream stream(Table({"a", "\xf0\x9f", "\x99", "\x82", "b"}));
  EXPECT_EQ(Stream(stream, {0, 1, 2, 3, 4}), (Pieces{"a", "", "", "🙂", "b", ""}));
}

TEST(TextStream, GivesBytesThatNothingCanCompleteAtOnce) {
  TextStream stream(Table({"\xf0\x9f", "x", "\xff"}));
  EXPECT_EQ(Stream(stream, {0, 1, 2}), (Pieces{"", "\ufffdx", "\ufffd", ""}));
}

TEST(TextStream, EndsHalfACharacterWithOneReplacement) {
  TextStream stream(Table({"\xf0", "\x9f", "\x99"}));
  EXPECT_EQ(Stream(stream, {0, 1, 2}), (Pieces{"", "", "", "\ufffd"}));
}

TEST(TextStream, HoldsARunOfByteTokensUntilItEnds) {
  TextStream stream(Table({"a", "<0xC3>", "<0xA9>", "b"}));
  EXPECT_EQ(Stream(stream, {0, 1, 2, 1, 2, 3}), (Pieces{"a", "", "", "", "",
                                                        "éé"
                                                        "b",
                                                        ""}));
  EXPECT_EQ(Stream(stream, {1, 2}), (Pieces{"", "", "é"}));
  EXPECT_EQ(Stream(stream, {1, 2, 1, 0}), (Pieces{"", "", "",
                                                  "\ufffd\ufffd\ufffd"
                                                  "a",
                                                  ""}));
}

TEST(TextStream, LooksThroughTokensWithoutText) {
  TextStream stream(Table({"<0xC3>", "<s>", "<0xA9>", "b", "<hole>"}));
  EXPECT_EQ(Stream(stream, {0, 1, 4, 2, -1, 99, 3}), (Pieces{"", "", "", "", "", "", "éb", ""}));
}

TEST(TextStream, DropsWhatIsNotVisibleAtTheEnd) {
  TextStream stream(Table({"ab", "cd", "ef"}));
  std::string text;
  stream.Append(0, text, 1);
  EXPECT_EQ(text, "a");
  stream.Append(1, text, 1);
  EXPECT_EQ(text, "a");
  stream.Append(2, text, 5);
  EXPECT_EQ(text, "abcde");
  stream.Finish(text, 5);
  EXPECT_EQ(text, "abcde");
  stream.Append(1, text, 2);
  EXPECT_EQ(text, "abcdecd") << "a finished stream starts afresh";
}

TEST(TextStream, JudgesTheVisiblePartOfARunByItself) {
  TextStream stream(Table({"<0xC3>", "<0xA9>"}));
  std::string text;
  for (const TokenId token : {0, 1, 0}) stream.Append(token, text, 2);
  EXPECT_EQ(text, "");
  stream.Finish(text, 2);
  EXPECT_EQ(text, "é");
}

}  // namespace
}  // namespace oga

// The decoder of a tokenizer.json: what it makes of one token, and which decoders are refused.
#include "text/token_decoder.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;

TokenDecoder Read(const std::string& decoder) {
  return ReadTokenDecoder(JsonObject(testing::ParseJson(Message("{\"decoder\": ", decoder, "}")), ""));
}

TEST(TokenDecoder, IsRefusedByNameWhenItIsNotKnown) {
  const std::pair<const char*, const char*> refusals[] = {
      {R"({"type": "WordPiece", "prefix": "##", "cleanup": true})",
       "decoder: the decoder 'WordPiece' is not supported"},
      {R"({"type": "BPEDecoder", "suffix": "</w>"})", "the decoder 'BPEDecoder' is not supported"},
      {R"({"type": "CTC"})", "the decoder 'CTC' is not supported"},
      {R"({"type": "Replace", "pattern": {"Regex": "_+"}, "content": " "})",
       "the decoder 'Replace' of a regular expression"},
      {R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "a"}, "content": ""}]})",
       "decoder.decoders[1]: the decoder 'Replace' behind Fuse is not supported"},
      {R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
       "the decoder 'Strip' of ' ' (1 leading, 0 trailing) behind ByteFallback is not supported"},
      {R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 0, "stop": 2}]})",
       "the decoder 'Strip' of ' ' (0 leading, 2 trailing) behind Fuse is not supported"},
  };
  for (const auto& [decoder, named] : refusals) {
    const Error error = ErrorOf([&] { Read(decoder); });
    EXPECT_EQ(error.code(), StatusCode::kUnsupported) << decoder;
    EXPECT_CONTAINS(error.message(), named);
    EXPECT_CONTAINS(error.message(), "Token ids work without text");
  }
}

TEST(TokenDecoder, WritesBytesForTheCharactersOfTheByteAlphabet) {
  const TokenDecoder decoder = Read(R"({"type": "ByteLevel"})");
  EXPECT_EQ(DecodeToken(decoder,
                        "\xC4\xA0"
                        "a",
                        false)
                .bytes,
            " a");
  EXPECT_FALSE(decoder.first_differs());
}

TEST(TokenDecoder, DropsTheSpaceOfTheFirstTokenWhereMetaspaceSaysSo) {
  const TokenDecoder decoder =
      Read(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "add_prefix_space": true})");
  EXPECT_TRUE(decoder.first_differs());
  EXPECT_EQ(DecodeToken(decoder, "_a", true).bytes, "a");
  EXPECT_EQ(DecodeToken(decoder, "_a", false).bytes, " a");
}

TEST(TokenDecoder, StripsEachTokenWhenItDoesSoBeforeItJoinsThem) {
  const TokenDecoder decoder = Read(R"({"type": "Sequence", "decoders": [
      {"type": "Strip", "content": "_", "start": 1, "stop": 2}, {"type": "Fuse"}]})");
  EXPECT_EQ(DecodeToken(decoder, "__a___", false).bytes, "_a_");
  EXPECT_EQ(DecodeToken(decoder, "_", false).bytes, "");
  EXPECT_EQ(decoder.strip_count, 0u);
}

TEST(TokenDecoder, StripsTheTextWhenItDoesSoBehindTheJoin) {
  const TokenDecoder decoder = Read(R"({"type": "Sequence", "decoders": [
      {"type": "Fuse"}, {"type": "Strip", "content": "_", "start": 3, "stop": 0}]})");
  EXPECT_EQ(DecodeToken(decoder, "__a", true).bytes, "__a");
  EXPECT_EQ(decoder.strip_character, '_');
  EXPECT_EQ(decoder.strip_count, 3u);
}

TEST(TokenDecoder, AppliesItsStepsInOrder) {
  const TokenDecoder decoder = Read(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "a"}, "content": "bb"},
      {"type": "Replace", "pattern": {"String": "b"}, "content": "c"}]})");
  EXPECT_EQ(DecodeToken(decoder, "ab", false).bytes, "ccc");
}

TEST(TokenDecoder, TakesOnlyTwoHexadecimalDigitsForAByte) {
  const TokenDecoder decoder = Read(R"({"type": "ByteFallback"})");
  for (const char* text : {"<0xe6>", "<0xE6>"}) {
    EXPECT_EQ(DecodeToken(decoder, text, false).bytes, "\xe6");
    EXPECT_TRUE(DecodeToken(decoder, text, false).is_byte);
  }
  for (const char* text : {"<0xE>", "<0x0E6>", "<0xG6>", "<0x6G>", "<0x-1>", "0xE6", " <0xE6>"}) {
    EXPECT_EQ(DecodeToken(decoder, text, false).bytes, text);
    EXPECT_FALSE(DecodeToken(decoder, text, false).is_byte);
  }
  EXPECT_FALSE(DecodeToken(Read(R"({"type": "Fuse"})"), "<0xE6>", false).is_byte);
}

TEST(TokenDecoder, SaysWhetherTheFirstTokenDiffers) {
  EXPECT_TRUE(Read("null").first_differs());
  EXPECT_TRUE(Read(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"})").first_differs());
  EXPECT_FALSE(Read(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})").first_differs());
  EXPECT_FALSE(Read(R"({"type": "ByteLevel"})").first_differs());
}

}  // namespace
}  // namespace oga

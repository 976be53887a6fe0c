// Ids of texts against those of the `tokenizers` library, for every kind of tokenizer, and what it refuses itself.
#include "text/text_encoder.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"
#include "native/text/tokenizer_samples.h"
#include "support/texts.h"
#include "text/unicode_classes.h"

namespace oga {
namespace {

using testing::ErrorOf;

TextEncoder Load(const std::string& kind) {
  const std::string folder = test::TextFolder(kind);
  return TextEncoder(std::make_shared<const TokenizerFiles>(ReadTokenizerFiles(folder)), ReadMerges(folder));
}

TextEncoder MakeEncoder(const std::map<std::string, std::string>& changes) {
  const std::string sample = testing::Sample(changes);
  return TextEncoder(std::make_shared<const TokenizerFiles>(testing::ReadSample(sample)),
                     testing::ReadSampleMerges(sample));
}

class EncodedKind : public ::testing::TestWithParam<std::string> {};

TEST_P(EncodedKind, HasTheIdsOfTheReference) {
  const TextEncoder encoder = Load(GetParam());
  size_t encoded = 0;
  size_t refused = 0;
  const test::Golden golden = test::ReadGolden(GetParam());
  for (const auto& [text, ids, ids_and_specials] : golden.texts) {
    if (GetParam() == "qwen2" && !IsComposed(text)) {
      const Error error = ErrorOf([&] { encoder.Encode(text, false); });
      ASSERT_EQ(error.code(), StatusCode::kUnsupported);
      ++refused;
      continue;
    }
    ASSERT_EQ(encoder.Encode(text, false), ids) << text;
    ASSERT_EQ(encoder.Encode(text, true), ids_and_specials) << text;
    ++encoded;
  }
  EXPECT_EQ(encoded + refused, 2000u);
  EXPECT_GT(encoded, 1000u);
  EXPECT_EQ(refused > 0, GetParam() == "qwen2");
}

INSTANTIATE_TEST_SUITE_P(Text, EncodedKind,
                         ::testing::Values("byte_level", "byte_level_prefix", "llama3", "qwen2", "smollm2",
                                           "merges_as_text", "holes", "llama2", "mistral", "gemma", "normalized"),
                         [](const auto& kind) { return kind.param; });

TEST(TextEncoder, RefusesModelsItDoesNotEncodeByName) {
  for (const char* kind : {"unigram_always", "words"}) {
    const Error error = ErrorOf([&] { Load(kind); });
    EXPECT_EQ(error.code(), StatusCode::kUnsupported);
    EXPECT_CONTAINS(error.message(), kind == std::string("words") ? "encoding by a WordLevel model is not supported"
                                                                  : "encoding by a Unigram model is not supported");
    EXPECT_CONTAINS(error.message(), "encode it in Python");
  }
}

TEST(TextEncoder, RefusesTokensThatMustBeSingleWordsByName) {
  const Error error = ErrorOf([&] { Load("single_words"); });
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_CONTAINS(error.message(), "the added token 'zebra' that must be a single word is not supported");
  EXPECT_CONTAINS(error.message(), "encode it in Python");
}

TEST(TextEncoder, RefusesAnUnknownFrameOnlyWhenItIsAskedFor) {
  const TextEncoder encoder =
      MakeEncoder({{"post_processor", R"({"type": "BertProcessing", "sep": ["b", 1], "cls": ["a", 0]})"}});
  EXPECT_EQ(encoder.Encode("ab", false), (std::vector<TokenId>{2}));
  EXPECT_CONTAINS(ErrorOf([&] { encoder.Encode("ab", true); }).message(), "the post-processor 'BertProcessing'");
}

TEST(TextEncoder, RefusesTextThatIsNotUtf8) {
  const TextEncoder encoder = MakeEncoder({});
  const Error error = ErrorOf([&] { encoder.Encode("ab\xff", false); });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_CONTAINS(error.message(), "the text is not UTF-8 (at byte 2 of 3)");
}

TEST(TextEncoder, EncodesALongTextInTime) {
  const TextEncoder encoder = Load("llama2");
  std::string text;
  for (int i = 0; i < 20000; ++i) text += i % 7 == 0 ? "  hello" : " the";
  EXPECT_GT(encoder.Encode(text, false).size(), 20000u);
}

}  // namespace
}  // namespace oga

// Added tokens: which files name them, and the ids they get.
#include "text/added_tokens.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"
#include "native/text/tokenizer_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::ReadSample;
using testing::Sample;
using testing::SampleFolder;

constexpr const char* kEndToken =
    R"({"id": 9, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": true,
                                      "normalized": false, "special": true})";

// Ids of added tokens are those that the reference assigns, not those of the file: tests/models has kinds with both.
TEST(AddedTokens, GetTheIdsOfTheReference) {
  const TokenizerFiles files =
      ReadSample(Sample({{"added_tokens", Message("[", kEndToken, R"(, {"id": 2, "content": "ab",
      "single_word": false, "lstrip": true, "rstrip": false, "normalized": true, "special": false}])")}}));
  ASSERT_EQ(files.added_tokens.size(), 2u);
  EXPECT_EQ(files.added_tokens[0].id, 4);
  EXPECT_TRUE(files.added_tokens[0].special && files.added_tokens[0].rstrip);
  EXPECT_EQ(files.added_tokens[1].id, 2);
  EXPECT_TRUE(files.added_tokens[1].normalized && files.added_tokens[1].lstrip);
}

TEST(AddedTokens, AreTakenFromOtherFilesToo) {
  const SampleFolder folder({{"tokenizer.json", Sample({{"added_tokens", Message("[", kEndToken, "]")}})},
                             {"tokenizer_config.json", R"({"eos_token": {"content": "<end>"}, "added_tokens_decoder": {
                                "5": {"content": "<x>", "special": true, "lstrip": true},
                                "4": {"content": "<end>", "special": true}, "2": {"content": "ab", "special": true}}})"},
                             {"added_tokens.json", R"({"<y>": 6, "<x>": 5})"}});
  const TokenizerFiles files = ReadTokenizerFiles(folder.path());
  ASSERT_EQ(files.added_tokens.size(), 4u);
  EXPECT_EQ(files.added_tokens[1].content, "ab");
  EXPECT_TRUE(files.added_tokens[1].special);
  EXPECT_EQ(files.added_tokens[2].content, "<x>");
  EXPECT_EQ(files.added_tokens[2].id, 5);
  EXPECT_TRUE(files.added_tokens[2].lstrip);
  EXPECT_EQ(files.added_tokens[3].id, 6);
  EXPECT_FALSE(files.added_tokens[3].special);
  EXPECT_EQ(TokenOfRole(files.settings, "eos_token"), "<end>");
  EXPECT_EQ(TokenOfRole(files.settings, "bos_token"), std::nullopt);
}

TEST(AddedTokens, AreRefusedWhenTheirIdIsNotTheOneTheyWouldGet) {
  const SampleFolder folder({{"tokenizer.json", Sample({})}, {"added_tokens.json", R"({"<y>": 9})"}});
  const Error error = ErrorOf([&] { ReadTokenizerFiles(folder.path()); });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_CONTAINS(error.message(),
                  "added_tokens.json, line 1: the token '<y>' has the id 9 here, but 4 by tokenizer.json");
}

TEST(AddedTokens, CountOnceAndAreSpecialWhenAnyEntrySaysSo) {
  const TokenizerFiles files = ReadSample(
      Sample({{"added_tokens", R"([{"content": "<x>"}, {"content": ""}, {"content": "<x>", "special": true}])"}}));
  ASSERT_EQ(files.added_tokens.size(), 1u);
  EXPECT_EQ(files.added_tokens[0].id, 4);
  EXPECT_TRUE(files.added_tokens[0].special);
}

TEST(AddedTokens, AreFoundInNormalizedTextUnlessTheyAreSpecial) {
  const TokenizerFiles files =
      ReadSample(Sample({{"added_tokens", R"([{"content": "<x>"}, {"content": "<y>", "special": true}])"}}));
  ASSERT_EQ(files.added_tokens.size(), 2u);
  EXPECT_TRUE(files.added_tokens[0].normalized);
  EXPECT_FALSE(files.added_tokens[1].normalized);
}

TEST(AddedTokens, OfTheSettingsAreNamedByTheirIds) {
  const SampleFolder folder({{"tokenizer.json", Sample({})},
                             {"tokenizer_config.json", R"({"added_tokens_decoder": {"4x": {"content": "<x>"}}})"}});
  const Error error = ErrorOf([&] { ReadTokenizerFiles(folder.path()); });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(error.field(), "added_tokens_decoder.4x");
}

}  // namespace
}  // namespace oga

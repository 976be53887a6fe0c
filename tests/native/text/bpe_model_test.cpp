// Byte-pair encoding of one piece: the order of merges, and what becomes of characters without a token.
#include "text/bpe_model.h"

#include <gtest/gtest.h>

#include <map>

#include "native/config/config_samples.h"
#include "native/text/tokenizer_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::Sample;
using Changes = std::map<std::string, std::string>;
using Ids = std::vector<TokenId>;

Ids Encode(const Changes& changes, std::string_view piece) {
  const std::string sample = Sample(changes);
  const TokenizerFiles files = testing::ReadSample(sample);
  Ids ids;
  BpeModel(files, testing::ReadSampleMerges(sample)).Encode(piece, ids);
  return ids;
}

Changes Vocabulary(const std::vector<std::string>& tokens, const char* merges) {
  return {{"model.vocab", testing::VocabularyOf(tokens)}, {"model.merges", merges}};
}

TEST(BpeModel, MergesTheLowestRankFirstAndOfEqualsTheLeftmost) {
  const Changes changes = Vocabulary({"a", "b", "c", "bc", "ab", "aa"}, R"(["b c", "a b", "a a"])");
  EXPECT_EQ(Encode(changes, "abc"), (Ids{0, 3})) << "b c comes before a b";
  EXPECT_EQ(Encode(changes, "aab"), (Ids{0, 4}));
  EXPECT_EQ(Encode(changes, "aaa"), (Ids{5, 0}));
  EXPECT_EQ(Encode(changes, ""), Ids{});
}

TEST(BpeModel, GoesOnMergingWhatItMerged) {
  const Changes changes = Vocabulary({"a", "b", "ab", "abab", "babab"}, R"(["a b", "ab ab", "b abab"])");
  EXPECT_EQ(Encode(changes, "abab"), Ids{3});
  EXPECT_EQ(Encode(changes, "babab"), Ids{4}) << "with what stands before it too";
  EXPECT_EQ(Encode(changes, "ababab"), (Ids{3, 2}));
}

TEST(BpeModel, TakesAWholePieceWithoutMergesOnlyWhenTheFileSaysSo) {
  Changes changes = Vocabulary({"a", "b", "ab"}, "[]");
  EXPECT_EQ(Encode(changes, "ab"), (Ids{0, 1}));
  changes["model.ignore_merges"] = "true";
  EXPECT_EQ(Encode(changes, "ab"), Ids{2});
  EXPECT_EQ(Encode(changes, "aab"), (Ids{0, 0, 1}));
}

// Once for all in a row or for each, or nothing at all.
TEST(BpeModel, WritesWhatTheVocabularyLacksAsUnknown) {
  const auto encode = [](const char* unknown, const char* fuses) {
    return Encode({{"model.unk_token", unknown}, {"model.fuse_unk", fuses}}, "axxbx");
  };
  EXPECT_EQ(encode("\"<unk>\"", "true"), (Ids{0, 3, 1, 3}));
  EXPECT_EQ(encode("\"<unk>\"", "false"), (Ids{0, 3, 3, 1, 3}));
  EXPECT_EQ(encode("null", "false"), Ids{2});
}

TEST(BpeModel, WritesACharacterAsBytesWhenAllOfThemHaveATokenAndElseAsUnknown) {
  Changes changes = Vocabulary({"a", "<unk>", "<0xC3>", "<0xA9>"}, "[]");
  changes["model.unk_token"] = "\"<unk>\"";
  EXPECT_EQ(Encode(changes, "aé"), (Ids{0, 1}));
  changes["model.byte_fallback"] = "true";
  EXPECT_EQ(Encode(changes, "aé"), (Ids{0, 2, 3}));
  EXPECT_EQ(Encode(changes, "è"), Ids{1}) << "one of its bytes has no token";
}

TEST(BpeModel, RefusesWhatTheVocabularyLacks) {
  const Error merge = ErrorOf([] { Encode({{"model.merges", R"([["a", "q"]])"}}, "a"); });
  EXPECT_EQ(merge.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(merge.field(), "model.merges");
  EXPECT_CONTAINS(merge.message(), "model.merges[0] needs the token 'q'");
  EXPECT_EQ(ErrorOf([] { Encode({{"model.unk_token", "\"<none>\""}}, "a"); }).field(), "model.unk_token");
}

TEST(BpeModel, RefusesOptionsThatChangeTheOutcomeByName) {
  const std::pair<Changes, const char*> refusals[] = {
      {{{"model.dropout", "0.1"}}, "a dropout"},
      {{{"model.end_of_word_suffix", R"("</w>")"}}, "end_of_word_suffix '</w>'"},
      {{{"model.continuing_subword_prefix", R"("##")"}}, "continuing_subword_prefix '##'"},
  };
  for (const auto& [changes, named] : refusals) {
    const Error error = ErrorOf([&] { Encode(changes, "a"); });
    EXPECT_EQ(error.code(), StatusCode::kUnsupported);
    EXPECT_CONTAINS(error.message(), named);
  }
  EXPECT_EQ(Encode({{"model.dropout", "0"}, {"model.end_of_word_suffix", R"("")"}}, "ab"), Ids{2});
}

}  // namespace
}  // namespace oga

// The files of a tokenizer: what every form of them means, and how each way of being wrong is named.
#include "text/tokenizer_json.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"
#include "native/text/tokenizer_samples.h"
#include "support/texts.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::ReadSample;
using testing::Sample;
using testing::SampleFolder;

TEST(TokenizerJson, ReadsTheVocabularyById) {
  const TokenizerFiles files = ReadSample(Sample({}));
  EXPECT_EQ(files.model_type, "BPE");
  EXPECT_EQ(files.vocabulary.size(), 4u);
  EXPECT_EQ(files.vocabulary.TextOf(2), "ab");
  EXPECT_EQ(files.vocabulary.Find("ab"), 2);
  EXPECT_EQ(files.vocabulary.Find("abc"), std::nullopt);
  EXPECT_EQ(files.vocabulary.TextOf(4), "");
  EXPECT_EQ(files.vocabulary.TextOf(-1), "");
}

TEST(TokenizerJson, ReadsAVocabularyWithHolesAndTextsOfEverySort) {
  const TokenizerFiles files =
      ReadSample(Sample({{"model.vocab", R"({"a": 7, "": 2, "\u0000": 3, "\"\n": 4})"}, {"model.merges", "[]"}}));
  EXPECT_EQ(files.vocabulary.size(), 8u);
  EXPECT_EQ(files.vocabulary.count(), 4u);
  EXPECT_FALSE(files.vocabulary.Has(0));
  EXPECT_TRUE(files.vocabulary.Has(2));
  EXPECT_EQ(files.vocabulary.Find(std::string_view("\0", 1)), 3);
  EXPECT_EQ(files.vocabulary.Find("\"\n"), 4);
}

TEST(TokenizerJson, ReadsAUnigramVocabularyInItsOrder) {
  const TokenizerFiles files =
      ReadSample(Sample({{"model.type", "\"Unigram\""}, {"model.vocab", R"([["<unk>", 0], ["a", -1.5], ["b", -2]])"}}));
  EXPECT_EQ(files.model_type, "Unigram");
  EXPECT_EQ(files.vocabulary.Find("b"), 2);
}

TEST(TokenizerJson, ReadsMergesInBothForms) {
  const std::vector<Merge> wanted{{"a", "b"}, {"ab", "<unk>"}};
  for (const char* merges :
       {R"(["a b", "ab <unk>"])", R"([["a", "b"], ["ab", "<unk>"]])", R"(["#version: 0.2", "a b", "ab <unk>"])"}) {
    EXPECT_EQ(testing::ReadSampleMerges(Sample({{"model.merges", merges}})), wanted) << merges;
  }
}

TEST(TokenizerJson, TellsTheTypeOfAnOldFileByWhatItHolds) {
  EXPECT_EQ(ReadSample(R"({"model": {"vocab": {"a": 0}, "merges": []}})").model_type, "BPE");
  EXPECT_EQ(ReadSample(R"({"model": {"vocab": [["a", 0.5]]}})").model_type, "Unigram");
}

TEST(TokenizerJson, NamesTheFileThatIsMissing) {
  const SampleFolder folder({});
  const Error error = ErrorOf([&] { ReadTokenizerFiles(folder.path()); });
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_CONTAINS(error.message(),
                  folder.path() + "/tokenizer.json' does not exist; text needs it, token ids work without");
}

TEST(TokenizerJson, RefusesModelsOfOtherTypesByName) {
  const Error error = ErrorOf([] { ReadSample(Sample({{"model.type", "\"WordPiece\""}})); });
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_CONTAINS(error.message(),
                  "the tokenizer model 'WordPiece' is not supported; known are BPE, Unigram and WordLevel");
}

struct Damage {
  std::string tokenizer;
  const char* named;
};

TEST(TokenizerJson, NamesWhatIsDamaged) {
  const Damage damages[] = {
      {"", "is empty"},
      {"{", "not valid JSON"},
      {"[]", "the top level is an empty list; it must be an object"},
      {"{}", "model is missing"},
      {R"({"model": {}})", "model is an object; it must be a model with a type"},
      {Sample({{"model.vocab", "5"}}), "model.vocab is 5; it must be an object {text: id}"},
      {Sample({{"model.vocab", "[]"}}), "model.vocab is an empty list"},
      {Sample({{"model.vocab", R"({"a": -1})"}}), "model.vocab must hold ids from 0 to"},
      {Sample({{"model.vocab", R"({"a": "0"})"}}), "model.vocab must hold ids from 0 to"},
      {Sample({{"model.vocab", R"({"a": 4294967296})"}}), "model.vocab must hold ids from 0 to"},
      {Sample({{"model.vocab", R"({"a": 1, "b": 1})"}}), "model.vocab gives the id 1 to two tokens, 'a' and 'b'"},
      {Sample({{"model.type", "\"Unigram\""}, {"model.vocab", R"([[1, 2]])"}}), "a list of [text, score] pairs"},
      {Sample({{"model.merges", R"(["a b c"])"}}), "model.merges must hold \"first second\" or"},
      {Sample({{"model.merges", R"(["ab"])"}}), "model.merges must hold \"first second\" or"},
      {Sample({{"model.merges", R"([["a", "b", "ab"]])"}}), "model.merges must hold \"first second\" or"},
      {Sample({{"model.merges", R"([["a"], ["a", "b"]])"}}), "model.merges must hold \"first second\" or"},
      {Sample({{"model.merges", R"([["a"]])"}}), "model.merges ends inside a pair"},
      {Sample({{"added_tokens", R"([{"id": 1}])"}}), "added_tokens[0].content is an object"},
      {Sample({{"added_tokens", R"([{"content": "x", "special": "no"}])"}}),
       "added_tokens[0].special is the string 'no'"},
  };
  for (const Damage& damage : damages) {
    const Error error = ErrorOf([&] { ReadSample(damage.tokenizer); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument) << damage.tokenizer;
    EXPECT_CONTAINS(error.message(), damage.named);
    EXPECT_CONTAINS(error.message(), "tokenizer.json");
  }
}

}  // namespace
}  // namespace oga

// The tokenizer of a folder: the tokens with a role, tokens by text, and encoding when it is asked for.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <map>

#include "config/config_file.h"
#include "native/config/config_samples.h"
#include "native/text/tokenizer_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::Sample;
using testing::SampleFolder;

using Files = std::map<std::string, std::string>;

// The tokenizer of a folder that is gone again.
std::shared_ptr<const Tokenizer> Load(Files files, const Files& changes = {}) {
  files[kTokenizerFileName] = Sample(changes);
  return Tokenizer::FromFolder(SampleFolder(files).path());
}

TEST(Tokenizer, TakesRolesFromTheConfigOfItsFolder) {
  const auto tokenizer = Load(
      {{kConfigFileName, testing::kSmallConfig}, {"tokenizer_config.json", R"({"bos_token": "a", "eos_token": "b"})"}});
  EXPECT_EQ(tokenizer->roles().bos, 2);
  EXPECT_EQ(tokenizer->roles().pad, 0);
  EXPECT_EQ(tokenizer->roles().eos, std::vector<TokenId>{1});
}

TEST(Tokenizer, TakesRolesFromItsSettingsWhenThereIsNoConfig) {
  const auto tokenizer =
      Load({{"tokenizer_config.json", R"({"bos_token": "ab", "eos_token": {"content": "b"}, "pad_token": "gone"})"}});
  EXPECT_EQ(tokenizer->roles().bos, 2);
  EXPECT_EQ(tokenizer->roles().eos, std::vector<TokenId>{1});
  EXPECT_EQ(tokenizer->roles().pad, std::nullopt) << "no token is written like this";
  EXPECT_TRUE(Load({})->roles().eos.empty());
}

TEST(Tokenizer, IsRefusedWithADamagedConfig) {
  EXPECT_EQ(ErrorOf([] { Load({{kConfigFileName, "{"}}); }).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf([] { Tokenizer::FromFolder("/does/not/exist"); }).code(), StatusCode::kNotFound);
}

TEST(Tokenizer, FindsAddedTokensAndThoseOfTheVocabulary) {
  const auto tokenizer = Load({}, {{"added_tokens", "[" + testing::AddedToken("<end>", true) + "]"}});
  EXPECT_EQ(tokenizer->FindToken("<end>"), 4);
  EXPECT_EQ(tokenizer->FindToken("ab"), 2);
  EXPECT_EQ(tokenizer->FindToken("abc"), std::nullopt);
}

TEST(Tokenizer, DecodesWithoutWhatOnlyEncodingNeeds) {
  const SampleFolder folder({{kTokenizerFileName, Sample({{"normalizer", R"({"type": "NFKC"})"}})}});
  const auto tokenizer = Tokenizer::FromFolder(folder.path());
  EXPECT_EQ(tokenizer->token_bytes()->Of(2), "ab");
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(ErrorOf([&] { tokenizer->Encode("ab", false); }).code(), StatusCode::kUnsupported);
  }
}

TEST(Tokenizer, ReadsItsMergesWhenItEncodesFirst) {
  auto folder = std::make_unique<SampleFolder>(Files{{kTokenizerFileName, Sample({})}});
  const auto used = Tokenizer::FromFolder(folder->path());
  const auto unused = Tokenizer::FromFolder(folder->path());
  EXPECT_EQ(used->Encode("abb", false), (std::vector<TokenId>{2, 1}));
  folder.reset();
  EXPECT_EQ(used->Encode("ab", false), std::vector<TokenId>{2});
  EXPECT_EQ(ErrorOf([&] { unused->Encode("ab", false); }).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace oga

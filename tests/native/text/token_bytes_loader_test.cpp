// The table of token bytes: what each decoder makes of a token by itself. That whole texts are those of the reference
// is tested where they are put together, in native/text/text_stream_test.cpp.
#include "text/token_bytes_loader.h"

#include <gtest/gtest.h>

#include <set>

#include "native/config/config_samples.h"
#include "native/text/tokenizer_samples.h"
#include "support/texts.h"

namespace oga {
namespace {

using testing::AddedToken;
using testing::ReadSample;
using testing::Sample;

// A table of tokens with ids in the order given.
TokenBytes Load(const std::string& decoder, const std::vector<std::string>& tokens, const std::string& added = "[]") {
  return MakeTokenBytes(ReadSample(Sample({{"decoder", decoder},
                                           {"model.vocab", testing::VocabularyOf(tokens)},
                                           {"model.merges", "[]"},
                                           {"added_tokens", added}})));
}

class LoadedKind : public ::testing::TestWithParam<std::string> {};

TEST_P(LoadedKind, KnowsTheIdsOfTheReferenceAndNoOthers) {
  const TokenBytes table = MakeTokenBytes(ReadTokenizerFiles(test::TextFolder(GetParam())));
  const std::set<TokenId> known = test::ReadGolden(GetParam()).known_ids;
  EXPECT_EQ(table.size(), static_cast<size_t>(*known.rbegin()) + 1);
  const TokenId beyond = *known.rbegin() + 70;
  const std::vector<uint32_t> sampleable = SampleableBitmask(table, beyond);
  ASSERT_EQ(sampleable.size(), static_cast<size_t>(beyond + 31) / 32);
  for (TokenId id = 0; id < beyond; ++id) {
    EXPECT_EQ(table.IsKnown(id), known.contains(id)) << id;
    EXPECT_EQ((sampleable[static_cast<size_t>(id) / 32] >> (id % 32) & 1) == 1, known.contains(id)) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Text, LoadedKind, ::testing::ValuesIn(test::TextKinds()),
                         [](const auto& kind) { return kind.param; });

TEST(TokenBytes, AreThoseOfTheByteAlphabet) {
  const TokenBytes table = Load(R"({"type": "ByteLevel"})", {"Ġa", "Ċ", "Ã©", "a b", "ł", "日"});
  EXPECT_EQ(table.Of(0), " a");
  EXPECT_EQ(table.Of(1), "\n");
  EXPECT_EQ(table.Of(2), "é");
  EXPECT_EQ(table.Of(3), "a b") << "a token with a foreign character stands for itself";
  EXPECT_EQ(table.Of(4), "\xa0");
  EXPECT_EQ(table.Of(5), "日");
  EXPECT_FALSE(table.IsByte(4)) << "half a character of a byte-level vocabulary is text";
}

TEST(TokenBytes, OfByteTokensAreSingleBytes) {
  const TokenBytes table = Load(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
                                {"▁a▁", "<0xE6>", "<0xe6>", "<0xGG>", "<0x0A>"});
  EXPECT_EQ(table.Of(0), " a ");
  EXPECT_EQ(table.Of(1), "\xe6");
  EXPECT_EQ(table.Of(2), "\xe6");
  EXPECT_EQ(table.Of(3), "<0xGG>");
  EXPECT_EQ(table.Of(4), "\n");
  EXPECT_TRUE(table.IsByte(1) && table.IsByte(2) && table.IsByte(4));
  EXPECT_FALSE(table.IsByte(0) || table.IsByte(3));
  EXPECT_EQ(table.strip_count, 1u);
}

TEST(TokenBytes, MayDifferForTheFirstTokenOfAText) {
  const TokenBytes always = Load(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})", {"▁a▁b"});
  EXPECT_EQ(always.OfFirst(0), "ab");
  EXPECT_EQ(always.Of(0), " a b");
  const TokenBytes never = Load(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})", {"▁a▁b"});
  EXPECT_EQ(never.OfFirst(0), " a b");
  const TokenBytes old = Load(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})", {"_a"});
  EXPECT_EQ(old.OfFirst(0), " a");
  const TokenBytes apart = Load("null", {"a"});
  EXPECT_EQ(apart.OfFirst(0), "a");
  EXPECT_EQ(apart.Of(0), " a");
}

TEST(TokenBytes, SayWhichTokensAreSpecial) {
  const TokenBytes table =
      Load(R"({"type": "ByteLevel"})", {"a", "b"}, "[" + AddedToken("b", true) + "," + AddedToken("Ġ", false) + "]");
  EXPECT_FALSE(table.IsSpecial(0));
  EXPECT_TRUE(table.IsSpecial(1));
  EXPECT_FALSE(table.IsSpecial(2));
  EXPECT_EQ(table.Of(2), " ") << "added tokens are decoded like others";
  EXPECT_EQ(table.Of(1), "b");
}

TEST(TokenBytes, OfUnknownIdsAreEmpty) {
  const TokenBytes table = Load(R"({"type": "Fuse"})", {"a"});
  for (const TokenId id : {-1, 1, 1000000, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(table.Of(id), "");
    EXPECT_EQ(table.OfFirst(id), "");
    EXPECT_FALSE(table.IsKnown(id) || table.IsSpecial(id) || table.IsByte(id));
  }
  EXPECT_TRUE(SampleableBitmask(table, 0).empty());
  EXPECT_EQ(SampleableBitmask(table, 1), std::vector<uint32_t>{1}) << "a model may be narrower than its tokenizer";
}

}  // namespace
}  // namespace oga

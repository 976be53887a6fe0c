// The tokens of a vocabulary by id and by text.
#include "text/token_texts.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;

TEST(TokenTexts, FindEachTokenByIdAndByText) {
  const TokenTexts texts({{"b", 0}, {"", 3}, {"ab", 1}, {std::string("\0", 1), 5}}, "file");
  EXPECT_EQ(texts.size(), 6u);
  EXPECT_EQ(texts.count(), 4u);
  for (const TokenId id : {0, 1, 3, 5}) EXPECT_EQ(texts.Find(texts.TextOf(id)), id);
  EXPECT_EQ(texts.TextOf(1), "ab");
  EXPECT_EQ(texts.Find("a"), std::nullopt);
  EXPECT_EQ(texts.Find("c"), std::nullopt);
}

TEST(TokenTexts, HaveHolesThatAreNotTheEmptyToken) {
  const TokenTexts texts({{"", 1}}, "file");
  EXPECT_TRUE(texts.Has(1));
  for (const TokenId id : {-1, 0, 2, INT32_MAX, INT32_MIN}) {
    EXPECT_FALSE(texts.Has(id)) << id;
    EXPECT_EQ(texts.TextOf(id), "");
  }
}

TEST(TokenTexts, CountTheLastOfEqualTexts) {
  const TokenTexts texts({{"a", 7}, {"b", 2}, {"a", 1}}, "file");
  EXPECT_EQ(texts.Find("a"), 1);
  EXPECT_EQ(texts.count(), 2u);
  EXPECT_EQ(texts.size(), 3u) << "the id of an entry that does not count is none";
}

TEST(TokenTexts, RefuseOneIdForTwoTexts) {
  const Error error = ErrorOf([] { TokenTexts({{"a", 1}, {"b", 1}}, "file"); });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(error.field(), "model.vocab");
  EXPECT_CONTAINS(error.message(), "'a' and 'b'");
}

TEST(TokenTexts, MayBeEmpty) {
  const TokenTexts none({}, "file");
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.Find(""), std::nullopt);
}

}  // namespace
}  // namespace oga

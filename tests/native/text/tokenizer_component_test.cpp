// What the readers of components share.
#include "text/tokenizer_component.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;

TEST(TokenizerComponent, IsRefusedByItsPlace) {
  const JsonValue value = testing::ParseJson("\n{}");
  const Error error = ErrorOf([&] { RefuseComponent(JsonObject(value, "decoder"), "this", "do that"); });
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_EQ(error.field(), "decoder");
  EXPECT_EQ(error.message(), "test, line 2: decoder: this is not supported; do that");
}

TEST(TokenizerComponent, TextMayHoldAnythingButMustBeThere) {
  const JsonValue value = testing::ParseJson(R"({"empty": "", "nul": "\u0000", "null": null, "number": 1})");
  const JsonObject object(value, "");
  EXPECT_EQ(RequiredText(object, "empty"), "");
  EXPECT_EQ(RequiredText(object, "nul"), std::string("\0", 1));
  for (const char* key : {"null", "number", "none"}) {
    const Error error = ErrorOf([&] { RequiredText(object, key); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(error.field(), key);
  }
}

TEST(TokenizerComponent, TellsAStringFromARegularExpression) {
  const auto pattern = [](const char* text) {
    const JsonValue value = testing::ParseJson(text);
    return StringPattern(JsonObject(value, ""));
  };
  EXPECT_EQ(pattern(R"({"pattern": {"String": ""}})"), "");
  EXPECT_EQ(pattern(R"({"pattern": {"Regex": "a"}})"), std::nullopt);
  EXPECT_EQ(ErrorOf([&] { pattern("{}"); }).field(), "pattern");
}

TEST(TokenizerComponent, ReplacesFromTheLeftAndNotWhatItReplaced) {
  EXPECT_EQ(ReplaceAll("aaa", "aa", "b"), "ba");
  EXPECT_EQ(ReplaceAll("a-a", "a", "aa"), "aa-aa");
  EXPECT_EQ(ReplaceAll("aba", "a", ""), "b");
  EXPECT_EQ(ReplaceAll("ab", "", "x"), "ab") << "nothing stands nowhere";
  EXPECT_EQ(ReplaceAll("", "a", "x"), "");
}

}  // namespace
}  // namespace oga

// What happens to a text before it is cut into pieces.
#include "text/text_normalizer.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;

TextNormalizer Make(const std::string& component) {
  return TextNormalizer(JsonObject(testing::ParseJson(Message("{\"normalizer\": ", component, "}")), ""));
}

TEST(TextNormalizer, LeavesATextAsItIsWhenThereIsNone) {
  EXPECT_TRUE(Make("null").empty());
  EXPECT_EQ(Make("null").Normalize(" e\u0301 "), " e\u0301 ");
}

TEST(TextNormalizer, AppliesASequenceInOrder) {
  const TextNormalizer normalizer = Make(R"({"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "_"}, {"type": "Replace", "pattern": {"String": "_"}, "content": "-"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "_"}]})");
  EXPECT_FALSE(normalizer.empty());
  EXPECT_EQ(normalizer.Normalize("a b"), "-a_b");
}

TEST(TextNormalizer, TakesComposedTextsOnlyWhereTheyHaveToBeComposed) {
  const TextNormalizer normalizer = Make(R"({"type": "NFC"})");
  EXPECT_EQ(normalizer.Normalize("é 日"), "é 日");
  const Error error = ErrorOf([&] { normalizer.Normalize("e\u0301"); });
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_EQ(error.field(), "str");
}

TEST(TextNormalizer, IsRefusedByNameAndPlaceWhenItIsNotKnown) {
  const struct {
    const char* component;
    const char* field;
    const char* named;
  } rows[] = {
      {R"({"type": "NFKC"})", "normalizer", "'NFKC'"},
      {R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]})", "normalizer.normalizers[1]",
       "'Lowercase'"},
      {R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": " "})", "normalizer", "a regular expression"},
  };
  for (const auto& row : rows) {
    const Error error = ErrorOf([&] { Make(row.component); });
    EXPECT_EQ(error.code(), StatusCode::kUnsupported) << row.component;
    EXPECT_EQ(error.field(), row.field);
    EXPECT_CONTAINS(error.message(), row.named);
  }
}

}  // namespace
}  // namespace oga

// The tree of a JSON document: merging, and how values and paths read in messages.
#include "config/json_value.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ParseJson;
using testing::WriteJson;

JsonValue Merged(const std::string& base, const std::string& overlay) {
  JsonValue merged = ParseJson(base);
  MergeOver(merged, ParseJson(overlay));
  return merged;
}

TEST(JsonValue, FindsAMemberAlsoWhenItIsNull) {
  const JsonValue value = ParseJson(R"({"a": null, "": 1})");
  ASSERT_NE(value.Find("a"), nullptr);
  EXPECT_EQ(value.Find("a")->kind, JsonValue::Kind::kNull);
  EXPECT_EQ(value.Find("")->integer, 1);
  EXPECT_EQ(value.Find("b"), nullptr);
  EXPECT_EQ(ParseJson("[1]").Find(""), nullptr) << "no object has no members";
}

TEST(JsonValue, MergesObjectsByMemberAndReplacesAllElse) {
  const struct {
    const char* base;
    const char* overlay;
    const char* merged;
  } rows[] = {
      {R"({"a": {"b": 1, "c": 2}, "d": 3})", R"({"a": {"c": 4, "e": 5}})",
       R"({"a": {"b": 1, "c": 4, "e": 5}, "d": 3})"},
      {R"({"a": [1, 2]})", R"({"a": [3]})", R"({"a": [3]})"},
      {R"({"a": {"b": 1}})", R"({"a": null})", R"({"a": null})"},
      {R"({"a": 1})", R"({"a": {"b": 2}})", R"({"a": {"b": 2}})"},
      {R"({"a": {"b": 1}})", "{}", R"({"a": {"b": 1}})"},
      {R"({"a": 1})", "7", "7"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(WriteJson(Merged(row.base, row.overlay)), WriteJson(ParseJson(row.merged))) << row.overlay;
  }
}

TEST(JsonValue, KeepsTheOriginOfEachValueThroughAMerge) {
  JsonValue base = ParseJson("{\"a\": 1, \"b\": {\"c\": 2}}");
  const JsonValue overlay = ParseJson("\n{\"b\": {\"c\": 3}}");
  const JsonValue::Source file = base.source;
  MergeOver(base, overlay);
  EXPECT_EQ(base.Find("a")->source, file);
  EXPECT_EQ(base.Find("b")->source, file);
  EXPECT_EQ(base.Find("b")->Find("c")->source, overlay.source);
  EXPECT_EQ(base.Find("b")->Find("c")->line, 2);
}

TEST(JsonValue, IsDescribedByWhatWasWritten) {
  const std::pair<const char*, const char*> rows[] = {
      {"null", "null"},
      {"true", "true"},
      {"2.50", "2.50"},
      {R"("a'")", R"(the string 'a'')"},
      {"[]", "an empty list"},
      {"[0]", "a list of 1 value"},
      {"[0, 0]", "a list of 2 values"},
      {"{}", "an object"},
  };
  for (const auto& [text, description] : rows) EXPECT_EQ(Describe(ParseJson(text)), description);
  EXPECT_EQ(Describe(ParseJson(std::string(60, '9'))), std::string(60, '9'));
  EXPECT_EQ(Describe(ParseJson(std::string(61, '9'))), std::string(60, '9') + "...");
}

TEST(JsonValue, IsNamedByItsPath) {
  EXPECT_EQ(JoinPath("", "a-b_1"), "a-b_1");
  EXPECT_EQ(JoinPath("a", "b"), "a.b");
  EXPECT_EQ(JoinPath("a", "b.c"), "a['b.c']") << "a dot in a name must not look like a level";
  EXPECT_EQ(JoinPath("a", ""), "a['']");
  EXPECT_EQ(JoinPath("a", size_t{3}), "a[3]");
  const auto source = std::make_shared<const std::string>("file");
  EXPECT_EQ(Where(source, 12), "file, line 12: ");
  EXPECT_EQ(Where(source, 0), "file: ") << "a value that no text holds";
}

}  // namespace
}  // namespace oga

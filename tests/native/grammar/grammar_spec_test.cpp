// What the setter of an option refuses, before any grammar is read.
#include "grammar/grammar_spec.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace oga::grammar {
namespace {

std::string MessageOf(std::string_view type, std::string_view text) {
  try {
    MakeGrammarSpec(type, text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    return error.message();
  }
  return "accepted";
}

TEST(GrammarSpec, KeepsKindAndText) {
  EXPECT_EQ(MakeGrammarSpec("json_schema", "{}"), (GrammarSpec{.kind = GrammarKind::kJsonSchema, .text = "{}"}));
  EXPECT_EQ(MakeGrammarSpec("regex", "a+").kind, GrammarKind::kRegex);
  EXPECT_EQ(MakeGrammarSpec("lark_grammar", "start: \"a\"").kind, GrammarKind::kLark);
  EXPECT_EQ(MakeGrammarSpec("lark", "start: \"a\""), MakeGrammarSpec("lark_grammar", "start: \"a\""));
  EXPECT_EQ(MakeGrammarSpec("json_object", "").kind, GrammarKind::kJsonObject);
}

TEST(GrammarSpec, NamesAnUnknownTypeAndTheNearest) {
  EXPECT_EQ(MessageOf("json_shema", "{}"),
            "guidance type 'json_shema' is not known; it must be json_schema, json_object, regex or lark_grammar (the "
            "nearest is json_schema)");
  EXPECT_NE(MessageOf("", "{}").find("the guidance type is empty"), std::string::npos);
  EXPECT_NE(MessageOf("guidance", "{\"grammars\":[]}").find("'guidance' is not known"), std::string::npos);
  EXPECT_LT(MessageOf(std::string(100000, 'x'), "{}").size(), 400u);
}

TEST(GrammarSpec, RefusesTextThatIsNone) {
  EXPECT_EQ(MessageOf("regex", ""), "the regular expression is empty; give its text");
  EXPECT_NE(MessageOf("regex", std::string_view("a\0b", 3)).find("a NUL at byte 1"), std::string::npos);
  EXPECT_NE(MessageOf("lark_grammar", "start: \"\xff\"").find("not UTF-8 at byte 8"), std::string::npos);
  EXPECT_NE(MessageOf("json_object", "{}").find("takes no text"), std::string::npos);
}

TEST(GrammarSpec, RefusesMoreTextThanAGrammarMayHave) {
  EXPECT_EQ(MessageOf("regex", std::string(kMaxRegexBytes, 'a')), "accepted");
  EXPECT_NE(MessageOf("regex", std::string(kMaxRegexBytes + 1, 'a')).find("at most 8192"), std::string::npos);
  EXPECT_EQ(MessageOf("json_schema", std::string(kMaxGrammarBytes, ' ')), "accepted");
  EXPECT_NE(MessageOf("json_schema", std::string(kMaxGrammarBytes + 1, ' ')).find("at most 262144"), std::string::npos);
}

TEST(GrammarSpec, WantsTwoDifferentDelimiters) {
  EXPECT_EQ(MakeDelimitedSpec(1, 2, "start: \"a\"").closing_token, 2);
  EXPECT_THROW(MakeDelimitedSpec(1, 1, "start: \"a\""), Error);
  EXPECT_THROW(MakeDelimitedSpec(-1, 1, "start: \"a\""), Error);
  EXPECT_THROW(MakeDelimitedSpec(1, -2, "start: \"a\""), Error);
  EXPECT_THROW(MakeDelimitedSpec(1, 2, ""), Error);
}

}  // namespace
}  // namespace oga::grammar

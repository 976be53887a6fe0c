// JSON schemas: what is enforced, and what is refused by name because it could not be.
#include "grammar/schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "native/grammar/grammar_world.h"

namespace oga::grammar {
namespace {

using test::Admits;
using test::ErrorOf;
using test::ExpectRefused;

bool Fits(std::string_view schema, std::string_view json) { return Admits("json_schema", schema, json); }

TEST(Schema, EnforcesTypesBoundsAndNames) {
  constexpr std::string_view kPerson = R"({"type":"object","title":"Person","properties":{
      "name":{"type":"string","minLength":2,"description":"who"},"age":{"type":"integer","minimum":0,"maximum":130}},
      "required":["name","age"],"additionalProperties":false})";
  EXPECT_TRUE(Fits(kPerson, R"({"name": "Jo", "age": 7})"));
  EXPECT_FALSE(Fits(kPerson, R"({"name": "J", "age": 7})"));
  EXPECT_FALSE(Fits(kPerson, R"({"name": "Jo", "age": 131})"));
  EXPECT_FALSE(Fits(kPerson, R"({"name": "Jo"})"));
  EXPECT_FALSE(Fits(kPerson, R"({"name": "Jo", "age": 7, "x": 1})"));
}

TEST(Schema, FollowsReferencesWithinTheDocument) {
  constexpr std::string_view kTree = R"({"$defs":{"node":{"type":"object","properties":{
      "v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}},
      "$ref":"#/$defs/node"})";
  EXPECT_TRUE(Fits(kTree, R"({"v":1,"next":{"v":2,"next":null}})"));
  EXPECT_FALSE(Fits(kTree, R"({"v":1,"next":{"v":"2","next":null}})"));
}

TEST(Schema, EveryKeywordThatCannotBeEnforcedIsRefusedByNameAndPlace) {
  for (const std::string name : {"not",
                                 "if",
                                 "then",
                                 "else",
                                 "contains",
                                 "minContains",
                                 "maxContains",
                                 "uniqueItems",
                                 "propertyNames",
                                 "dependencies",
                                 "dependentRequired",
                                 "dependentSchemas",
                                 "unevaluatedProperties",
                                 "unevaluatedItems",
                                 "contentEncoding",
                                 "contentMediaType",
                                 "contentSchema",
                                 "$anchor",
                                 "$dynamicRef",
                                 "$recursiveRef",
                                 "nullable"}) {
    const std::string keyword = "\"" + name + "\":true";
    ExpectRefused("json_schema", "{" + keyword + "}", {"'" + name + "' at # ", "cannot be enforced"});
    ExpectRefused("json_schema", R"({"type":"object","properties":{"a":{"type":"array","items":{)" + keyword + "}}}}",
                  {"'" + name + "' at #/properties/a/items "});
    ExpectRefused("json_schema", R"({"$defs":{"x":{)" + keyword + R"(}},"anyOf":[{"type":"null"}]})",
                  {"'" + name + "' at #/$defs/x "});
  }
}

TEST(Schema, AMisspeltKeywordIsNotANote) {
  ExpectRefused("json_schema", R"({"type":"string","minLenght":3})", {"'minLenght' at #", "write 'minLength'"});
  ExpectRefused("json_schema", R"({"type":"string","whatever":3})", {"'whatever'", "'x-'"});
  EXPECT_TRUE(
      Fits(R"({"type":"string","x-note":{"not":1},"default":"a","examples":["b"],"deprecated":true})", "\"c\""));
}

TEST(Schema, CannotWeakenItself) {
  ExpectRefused("json_schema", R"({"x-guidance":{"lenient":true},"type":"string"})", {"'x-guidance'"});
  ExpectRefused("lark_grammar", R"(start: "a" %json {"x-guidance":{"lenient":true},"uniqueItems":true})",
                {"'x-guidance'"});
}

TEST(Schema, FormatsAreEnforcedExactlyOrRefused) {
  ExpectRefused("json_schema", R"({"type":"integer","format":"int32"})", {"'format' at #", "'int32'", "date-time"});
  ExpectRefused("json_schema", R"({"type":"string","format":"iri"})", {"'iri'"});
  for (const std::string_view schema :
       {R"({"type":"string","format":"date"})", R"({"format":"date","pattern":"^2","type":"string"})",
        R"({"allOf":[{"pattern":"^2"}],"type":"string","format":"date","pattern":"^2"})"}) {
    EXPECT_TRUE(Fits(schema, "\"2024-02-29\""));
    EXPECT_TRUE(Fits(schema, "\"2023-12-31\""));
    EXPECT_FALSE(Fits(schema, "\"2023-02-29\""));
    EXPECT_FALSE(Fits(schema, "\"2023-02-30\""));
    EXPECT_FALSE(Fits(schema, "\"2023-04-31\""));
  }
  EXPECT_TRUE(Fits(R"({"type":"string","format":"date-time"})", "\"2000-02-29T10:00:00Z\""));
  EXPECT_FALSE(Fits(R"({"type":"string","format":"date-time"})", "\"1900-02-29T10:00:00Z\""));
  EXPECT_TRUE(Fits(R"({"type":"string","format":"uuid"})", "\"123e4567-e89b-12d3-a456-426614174000\""));
  EXPECT_FALSE(Fits(R"({"type":"string","format":"ipv4"})", "\"256.1.1.1\""));
}

TEST(Schema, NumbersThatWouldBeRoundedAreRefused) {
  ExpectRefused("json_schema", R"({"const":9007199254740993})", {"'const' at #", "2^53"});
  ExpectRefused("json_schema", R"({"enum":[1,{"a":[-9007199254740993]}]})", {"'enum' at #", "2^53"});
  ExpectRefused("json_schema", R"({"type":"integer","maximum":1e30})", {"'maximum'", "2^53"});
  EXPECT_TRUE(Fits(R"({"const":9007199254740992})", "9007199254740992"));
  ExpectRefused("json_schema", R"({"type":"string","minLength":1.5})", {"'minLength'", "whole number"});
  ExpectRefused("json_schema", R"({"type":"string","minLength":-1})", {"'minLength'", "whole number"});
}

TEST(Schema, APropertyCannotBeWrittenUnderADisguise) {
  constexpr std::string_view kSchema = R"({"type":"object","properties":{"a":{"type":"integer"}},
      "additionalProperties":{"type":"string"}})";
  EXPECT_TRUE(Fits(kSchema, R"({"a":1,"b":"x"})"));
  EXPECT_FALSE(Fits(kSchema, R"({"\u0061":"x"})"));
  EXPECT_FALSE(Fits(kSchema, R"({"a":1,"a":"x"})"));
  EXPECT_TRUE(Fits(R"({"type":"string"})", R"("tab \t quote \" backslash \\ new line \n")"));
}

TEST(Schema, RefusesToCountNamesThatMayRepeat) {
  ExpectRefused("json_schema", R"({"type":"object","minProperties":2,"additionalProperties":{}})", {"'minProperties'"});
  EXPECT_TRUE(Fits(R"({"type":"object","minProperties":1,"additionalProperties":{"type":"null"}})", R"({"k":null})"));
  EXPECT_FALSE(Fits(R"({"type":"object","minProperties":1,"additionalProperties":{"type":"null"}})", "{}"));
}

TEST(Schema, ListsOfItemsAreReadAsTheirDraftSays) {
  EXPECT_TRUE(Fits(R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"string"}})", R"([1,"a"])"));
  EXPECT_FALSE(Fits(R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"string"}})", R"(["a"])"));
  EXPECT_FALSE(Fits(R"({"type":"array","items":[{"type":"integer"}],"additionalItems":false})", R"([1,2])"));
  ExpectRefused("json_schema", R"({"prefixItems":[{}],"items":{},"additionalItems":false})", {"'additionalItems'"});
  ExpectRefused("json_schema", R"({"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{}]})",
                {"'prefixItems'", "2020-12"});
  ExpectRefused("json_schema", R"({"$schema":"urn:mine","type":"string"})", {"'$schema'", "2020-12"});
}

TEST(Schema, ReferencesMayNotLeaveTheDocumentOrItsSchemas) {
  for (const std::string pointer : {"http://a/b", "#name", "other.json#/a", "#/$defs/a~1b"}) {
    ExpectRefused("json_schema", R"({"$ref":")" + pointer + R"(","$defs":{"a":{}}})", {"'$ref'"});
  }
  ExpectRefused("json_schema", R"({"$ref":"#/$defs/b","$defs":{"a":{}}})", {"'#/$defs/b'", "no schema"});
  ExpectRefused("json_schema", R"({"enum":[{"uniqueItems":true}],"anyOf":[{"$ref":"#/enum/0"}]})", {"'#/enum/0'"});
  ExpectRefused("json_schema", R"({"properties":{"a":{"$id":"x"}}})", {"'$id' at #/properties/a"});
}

TEST(Schema, PatternsMeanTheSameEverywhereOrAreRefused) {
  EXPECT_TRUE(Fits(R"({"type":"string","pattern":"^[a-c\\[]{2}$"})", "\"a[\""));
  ExpectRefused("json_schema", R"({"pattern":"[[:alpha:]]"})", {"'pattern'", "'['"});
  ExpectRefused("json_schema", R"({"pattern":"[a-z&&b]"})", {"'&&'"});
  ExpectRefused("json_schema", R"({"patternProperties":{"[a--b]":{}}})", {"'[a--b]' at #/patternProperties"});
  ExpectRefused("json_schema", R"({"pattern":"[]a]"})", {"write '\\]'"});
  ExpectRefused("json_schema", R"({"pattern":"[^]"})", {"write '\\]'"});
  ExpectRefused("json_schema", R"({"type":"string","pattern":"(?=a)b"})", {"regex parse error at character 1"});
  ExpectRefused("json_schema", R"({"type":"string","pattern":"a[b"})",
                {"regex parse error at character 2", "unclosed"});
}

TEST(Schema, AnEscapeStandsOnlyForWhatThePatternHas) {
  for (const std::string pattern : {R"([^\"])", R"([^\"\n])", R"([^\\\"x])", R"([^\"]|\n)"}) {
    const std::string json = R"({"type":"string","pattern":"^()" + pattern + R"()*$"})";
    EXPECT_FALSE(Fits(json, R"("a\"b")")) << json;
    EXPECT_TRUE(Fits(json, R"("ab 'c\t")")) << json;
  }
  EXPECT_FALSE(Fits(R"({"type":"string","pattern":"^[^\\\\]*$"})", R"("a\\b")"));
  EXPECT_TRUE(Fits(R"({"type":"string","pattern":"^[^\\\\]*$"})", R"("a\"b")"));
  EXPECT_TRUE(Fits(R"({"type":"string","pattern":"^\\p{L}\\P{L}[^\\x00-\\x1f]$"})", R"("a1b")"));
  for (const std::string part : {R"(\\x00)", R"([\\x00-\\x1f])", R"(\\u0001)", R"(\\x{1})", R"([a\u0001])",
                                 R"(\\p{Cc})", R"(\\p{gc=Control})", R"(\\P{Po})", R"(\\p{^Punctuation})", R"(\\pC)"}) {
    ExpectRefused("json_schema", R"({"type":"string","pattern":")" + part + "\"}",
                  {"'pattern' at #", "cannot be enforced"});
  }
}

TEST(Schema, WhatAdmitsNothingIsRefused) {
  ExpectRefused("json_schema", "false", {"JSON schema"});
  ExpectRefused("json_schema", R"({"enum":[]})", {"JSON schema"});
  ExpectRefused("json_schema", R"({"$ref":"#"})", {"admits no text at all"});
  ExpectRefused("json_schema", R"({"type":"string","minLength":5,"maxLength":3})", {"minLength (5)"});
  ExpectRefused("json_schema", R"({"type":"integer","minimum":5,"maximum":3})", {"minimum (5)"});
  ExpectRefused("json_schema", R"({"type":"strng"})", {"strng"});
}

TEST(Schema, ExclusiveChoicesAreEnforcedWhenTheyAreExclusive) {
  EXPECT_TRUE(Fits(R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", "1"));
  ExpectRefused("json_schema", R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", {"oneOf"});
}

TEST(Schema, WhatIsNoJsonIsShownByLineAndColumn) {
  ExpectRefused("json_schema", "{\n\"type\": }", {"no JSON", "line 2, column 9"});
  ExpectRefused("json_schema", "{\"a\":1", {"no JSON", "line 1"});
  ExpectRefused("json_schema", R"({"type":"string","type":"integer"})", {"'type' twice"});
  ExpectRefused("json_schema", "[]", {"array", "a schema is an object"});
  ExpectRefused("json_schema", R"({"properties":{"a":3}})", {"#/properties/a", "number"});
}

TEST(Schema, WhiteSpaceEnds) {
  const std::string schema = R"({"type":"array","items":{"type":"integer"},"minItems":1})";
  EXPECT_TRUE(Fits(schema, "[\n" + std::string(39, ' ') + "1]"));
  EXPECT_FALSE(Fits(schema, "[\n" + std::string(40, ' ') + "1]"));
}

std::string Nested(int depth) {
  std::string schema;
  for (int i = 0; i < depth; ++i) schema += R"({"items":)";
  return schema + "{}" + std::string(static_cast<size_t>(depth), '}');
}

TEST(Schema, HostileSchemasAreRefusedAndNotFollowed) {
  EXPECT_EQ(ErrorOf("json_schema", Nested(60)).code(), StatusCode::kOk);
  ExpectRefused("json_schema", Nested(20000), {"nested deeper than 64 levels"});
  nlohmann::json chain{{"$ref", "#/$defs/d0"}};
  for (int i = 0; i < 2000; ++i) {
    chain["$defs"]["d" + std::to_string(i)] = {
        {"type", "object"}, {"properties", {{"a", {{"$ref", "#/$defs/d" + std::to_string(i + 1)}}}}}};
  }
  chain["$defs"]["d2000"] = {{"type", "null"}};
  EXPECT_EQ(ErrorOf("json_schema", chain.dump()).code(), StatusCode::kOk) << "as deep as the limit allows";
  nlohmann::json wide{{"type", "object"}};
  for (int i = 0; i <= kMaxNames; ++i) wide["properties"]["p" + std::to_string(i)] = nlohmann::json::object();
  ExpectRefused("json_schema", wide.dump(), {"an object with more than 2048 names"});
  wide["properties"].erase("p0");
  EXPECT_EQ(ErrorOf("json_schema", wide.dump()).code(), StatusCode::kOk);
  nlohmann::json many;
  for (int i = 0; i < kMaxSubschemas; ++i) many["anyOf"].push_back(nlohmann::json::object());
  ExpectRefused("json_schema", many.dump(), {"more than 4096 subschemas"});
  nlohmann::json patterns;
  for (int i = 0; i <= kMaxNamePatterns; ++i) patterns["patternProperties"]["^p" + std::to_string(i) + "_"] = true;
  ExpectRefused("json_schema", patterns.dump(), {"'patternProperties' at #", "more than 100"});
  nlohmann::json names;
  for (int i = 0; i <= kMaxNames; ++i) names["required"].push_back("n" + std::to_string(i));
  ExpectRefused("json_schema", names.dump(), {"'required' at #", "more than 2048"});
  ExpectRefused("json_schema", R"({"pattern":")" + std::string(9000, 'a') + "\"}", {"'pattern' at #", "at most 8192"});
  nlohmann::json list = nlohmann::json::array();
  for (int i = 0; i < 20001; ++i) list.push_back(i);
  ExpectRefused("json_schema", nlohmann::json{{"enum", list}}.dump(), {"'enum'", "20000"});
}

}  // namespace
}  // namespace oga::grammar

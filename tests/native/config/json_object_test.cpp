// Typed reading of one JSON object: absence, kinds, ranges, and what a refusal is about.
#include "config/json_object.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::ParseJson;

TEST(JsonObject, TakesNullForAbsence) {
  const JsonValue value = ParseJson(R"({"null": null})");
  const JsonObject object(value, "at");
  for (const char* key : {"null", "none"}) {
    EXPECT_EQ(object.Find(key), nullptr);
    EXPECT_EQ(object.Integer(key, {0, 1}), std::nullopt);
    EXPECT_EQ(object.Real(key, {.min = 0}), std::nullopt);
    EXPECT_EQ(object.Boolean(key), std::nullopt);
    EXPECT_EQ(object.String(key), std::nullopt);
    EXPECT_FALSE(object.Object(key).has_value());
    EXPECT_EQ(object.List(key, "a list"), nullptr);
    for (const Error& error :
         {ErrorOf([&] {
            object.RequiredInteger(key, {0, 1});
          }),
          ErrorOf([&] { object.RequiredString(key); }), ErrorOf([&] { object.RequiredObject(key); })}) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(error.field(), object.PathOf(key));
    }
  }
}

TEST(JsonObject, TakesNoKindForAnother) {
  const JsonValue value = ParseJson(R"({"b": true, "i": 1, "r": 1.5, "s": "1", "a": [1], "o": {"1": 1}})");
  const JsonObject object(value, "");
  for (const JsonMember& member : value.members) {
    const char* key = member.name.c_str();
    const auto refuses = [&](auto read) {
      try {
        read();
      } catch (const Error& error) {
        EXPECT_EQ(error.field(), key);
        return true;
      }
      return false;
    };
    EXPECT_EQ(refuses([&] { object.Integer(key, {0, 9}); }), member.name != "i") << key;
    EXPECT_EQ(refuses([&] { object.Real(key, {.min = 0}); }), member.name != "i" && member.name != "r") << key;
    EXPECT_EQ(refuses([&] { object.Boolean(key); }), member.name != "b") << key;
    EXPECT_EQ(refuses([&] { object.String(key); }), member.name != "s") << key;
    EXPECT_EQ(refuses([&] { object.Object(key); }), member.name != "o") << key;
    EXPECT_EQ(refuses([&] { object.List(key, "a list"); }), member.name != "a") << key;
  }
}

TEST(JsonObject, HoldsNumbersToTheirRangesWithTheBorders) {
  const JsonValue value = ParseJson(R"({"low": 2, "high": 5, "half": 0.5, "huge": 1e39, "tiny": 1e-60})");
  const JsonObject object(value, "");
  EXPECT_EQ(object.Integer("low", {2, 5}), 2);
  EXPECT_EQ(object.RequiredInteger("high", {2, 5}), 5);
  EXPECT_THROW(object.Integer("low", {3, 5}), Error);
  EXPECT_THROW(object.Integer("high", {2, 4}), Error);
  EXPECT_EQ(object.Real("half", {.min = 0.5, .max = 0.5}), 0.5f);
  EXPECT_THROW(object.Real("half", {.min = 0.5, .min_excluded = true}), Error);
  EXPECT_THROW(object.Real("huge", {.min = 0}), Error) << "no float holds it";
  EXPECT_EQ(object.Real("tiny", {.min = 0}), 0.0f);
  EXPECT_THROW(object.Real("tiny", {.min = 0, .min_excluded = true}), Error) << "the range holds for what it rounds to";
}

TEST(JsonObject, RefusesStringsWithANul) {
  const JsonValue value = ParseJson(R"({"s": "a\u0000b"})");
  const JsonObject object(value, "at");
  for (const Error& error : {ErrorOf([&] { object.String("s"); }), ErrorOf([&] { object.RequiredString("s"); })}) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(error.field(), "at.s");
    EXPECT_CONTAINS(error.message(), "a\\x00b");
  }
}

TEST(JsonObject, RefusesAnEmptyStringWhereOneIsRequired) {
  const JsonValue value = ParseJson(R"({"s": ""})");
  const JsonObject object(value, "");
  EXPECT_EQ(object.String("s"), "");
  EXPECT_EQ(ErrorOf([&] { object.RequiredString("s"); }).field(), "s");
}

TEST(JsonObject, NamesTheTextWhenAllOfItIsWrong) {
  const JsonValue value = ParseJson("\n[]");
  EXPECT_EQ(ErrorOf([&] { JsonObject(value, ""); }).field(), *value.source);
  const Error error = ErrorOf([&] { JsonObject(value, "a.b"); });
  EXPECT_EQ(error.field(), "a.b");
  EXPECT_CONTAINS(error.message(), "test, line 2: a.b ");
}

}  // namespace
}  // namespace oga

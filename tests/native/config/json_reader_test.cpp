#include "config/json_reader.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using Kind = JsonValue::Kind;

const auto kSource = std::make_shared<const std::string>("/m/genai_config.json");

JsonValue Read(std::string_view text) { return ReadJson(text, kSource); }

TEST(JsonReader, ReadsEveryKindOfValue) {
  const JsonValue root =
      Read(R"({"n": null, "t": true, "f": false, "i": -7, "r": 0.5, "s": "x", "a": [1, []], "o": {}})");
  ASSERT_EQ(root.kind, Kind::kObject);
  ASSERT_EQ(root.members.size(), 8u);
  EXPECT_EQ(root.Find("n")->kind, Kind::kNull);
  EXPECT_TRUE(root.Find("t")->boolean);
  EXPECT_EQ(root.Find("f")->kind, Kind::kBoolean);
  EXPECT_FALSE(root.Find("f")->boolean);
  EXPECT_EQ(root.Find("i")->integer, -7);
  EXPECT_EQ(root.Find("r")->kind, Kind::kReal);
  EXPECT_EQ(root.Find("r")->real, 0.5);
  EXPECT_EQ(root.Find("s")->text, "x");
  ASSERT_EQ(root.Find("a")->elements.size(), 2u);
  EXPECT_EQ(root.Find("a")->elements[1].kind, Kind::kArray);
  EXPECT_EQ(root.Find("o")->kind, Kind::kObject);
  EXPECT_EQ(root.Find("absent"), nullptr);
}

TEST(JsonReader, ARefusalIsAboutAKeyOrElseAboutTheText) {
  EXPECT_EQ(ErrorOf([] { Read("{"); }).field(), "/m/genai_config.json");
  EXPECT_EQ(ErrorOf([] { Read(""); }).field(), "/m/genai_config.json");
  EXPECT_EQ(ErrorOf([] { Read(std::string(100, '[')); }).field(), "/m/genai_config.json");
  EXPECT_EQ(ErrorOf([] { Read(R"({"a": {"b": 1, "b": 2}})"); }).field(), "a.b");
  EXPECT_EQ(ErrorOf([] { Read(R"({"a": {"b": [1, 1e-999]}})"); }).field(), "a.b[1]");
  EXPECT_EQ(ErrorOf([] { Read("1e-999"); }).field(), "/m/genai_config.json");
}

TEST(JsonReader, TakesAnyNumberWithoutAFractionForAnInteger) {
  const struct {
    const char* text;
    Kind kind;
    int64_t integer;
  } rows[] = {
      {"16", Kind::kInteger, 16},
      {"16.0", Kind::kInteger, 16},
      {"1e3", Kind::kInteger, 1000},
      {"1.5e1", Kind::kInteger, 15},
      {"-0", Kind::kInteger, 0},
      {"-0.0", Kind::kInteger, 0},
      {"9223372036854775807", Kind::kInteger, INT64_MAX},
      {"-9223372036854775808", Kind::kInteger, INT64_MIN},
      {"9007199254740992.0", Kind::kInteger, 9007199254740992},
      {"9007199254740994.0", Kind::kReal, 0},    // a double beyond 2^53 no longer tells which integer was meant
      {"9223372036854775808", Kind::kReal, 0},   // beyond int64
      {"18446744073709551616", Kind::kReal, 0},  // beyond uint64
      {"2.5", Kind::kReal, 0},
  };
  for (const auto& row : rows) {
    const JsonValue value = Read(row.text);
    EXPECT_EQ(value.kind, row.kind) << row.text;
    EXPECT_EQ(value.integer, row.integer) << row.text;
  }
}

TEST(JsonReader, ReadsFractionsToTheNearestDouble) {
  EXPECT_EQ(Read("0.1").real, 0.1);
  EXPECT_EQ(Read("0.7").real, 0.7);
  EXPECT_EQ(Read("123456.789e-3").real, 123.456789);
  EXPECT_EQ(Read("1.7976931348623157e308").real, 1.7976931348623157e308);
  EXPECT_EQ(Read("5e-324").real, 5e-324);
  EXPECT_EQ(Read("0.1").text, "0.1");
}

TEST(JsonReader, ReadsEscapesAndUnicode) {
  EXPECT_EQ(Read(R"("\"\\\/\b\f\n\r\t")").text, "\"\\/\b\f\n\r\t");
  EXPECT_EQ(Read(R"("\u00e9\ud83d\ude42模")").text, "é🙂模");
}

TEST(JsonReader, AcceptsAByteOrderMark) {
  const JsonValue root = Read("\xef\xbb\xbf{\n\"a\": 1}");
  EXPECT_EQ(root.Find("a")->integer, 1);
  EXPECT_EQ(root.Find("a")->line, 2);
}

TEST(JsonReader, KnowsTheLineOfEveryValue) {
  const JsonValue root = Read("{\n\"a\": 1\n,\"b\":\n\"x\",\r\n\"c\": [\n2,\n{\"d\": true}\n]\n}");
  EXPECT_EQ(root.line, 1);
  EXPECT_EQ(root.Find("a")->line, 2);
  EXPECT_EQ(root.members[1].line, 3);
  EXPECT_EQ(root.Find("b")->line, 4);
  EXPECT_EQ(root.Find("c")->line, 5);
  EXPECT_EQ(root.Find("c")->elements[0].line, 6);
  EXPECT_EQ(root.Find("c")->elements[1].Find("d")->line, 7);
}

TEST(JsonReader, RefusesWhatIsNotStrictJsonNamingLineAndColumn) {
  const struct {
    std::string text;
    const char* place;
    const char* reason;
  } rows[] = {
      {"{\n  // note\n}", "line 2, column 3", "JSON has no comments"},
      {"{\n  \"a\": 1 /* note */\n}", "line 2, column 10", "JSON has no comments"},
      {"{\n# note\n}", "line 2, column 1", "JSON has no comments"},
      {"{\"a\": 1,}", "line 1, column 9", "JSON has no comma behind the last value"},
      {"{\"a\": [1, 2,\n ]}", "line 2, column 2", "JSON has no comma behind the last value"},
      {"{'a': 1}", "line 1, column 2", "JSON strings stand in double quotes"},
      {"{\"é\": x}", "line 1, column 7", "invalid literal"},
      {"{\"a\": 1", "line 1, column 7", "unexpected end of input"},
      {"{\"a\": \"x", "line 1, column 8", "missing closing quote"},
      {"{\"a\"}", "line 1, column 5", "unexpected '}'"},
      {"{\"a\": 1} {", "line 1, column 10", "expected end of input"},
      {"{\"a\": 1}]", "line 1, column 9", "expected end of input"},
      {"{\"a\": 01}", "line 1, column 9", "unexpected number literal"},
      {"{\"a\": +1}", "line 1, column 7", "invalid literal"},
      {"{\"a\": .5}", "line 1, column 7", "invalid literal"},
      {"{\"a\": 1.}", "line 1, column 9", "expected digit after '.'"},
      {"{\"a\": NaN}", "line 1, column 7", "invalid literal"},
      {"{\"a\": Infinity}", "line 1, column 7", "invalid literal"},
      {"{\"a\": True}", "line 1, column 7", "invalid literal"},
      {"{\"a\": \"x\ny\"}", "line 1, column 9", "control character"},
      {"{\"a\": \"\\q\"}", "line 1, column 9", "forbidden character after backslash"},
      {"{\"a\": \"\\ud800\"}", "line 1, column 14", "U+D800"},
      {"{\"a\": \"\xe8\"}", "line 1, column 9", "ill-formed UTF-8"},
      {"{1: 2}", "line 1", "expected string literal"},
  };
  for (const auto& row : rows) {
    const Error error = ErrorOf([&] { Read(row.text); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_CONTAINS(error.message(), std::string("/m/genai_config.json, ") + row.place);
    EXPECT_CONTAINS(error.message(), row.reason);
  }
}

TEST(JsonReader, RefusesAnEmptyText) {
  for (const char* text : {"", " \n\t\r\n", "\xef\xbb\xbf", "\xef\xbb\xbf \n"}) {
    EXPECT_EQ(ErrorOf([&] { Read(text); }).message(), "/m/genai_config.json is empty; it must hold a JSON object");
  }
}

TEST(JsonReader, RefusesOtherEncodingsByName) {
  EXPECT_CONTAINS(ErrorOf([] { Read(std::string_view("\xff\xfe{\0}\0", 6)); }).message(),
                  "is UTF-16; save it as UTF-8");
  EXPECT_CONTAINS(ErrorOf([] { Read(std::string_view("\xfe\xff\0{\0}", 6)); }).message(),
                  "is UTF-16; save it as UTF-8");
}

TEST(JsonReader, RefusesNulBytesInsteadOfTakingThemForTheEnd) {
  const std::string cut = std::string("{\n}") + std::string(5, '\0');
  EXPECT_CONTAINS(ErrorOf([&] { Read(cut); }).message(), "line 2: not valid JSON: a NUL byte at offset 3 of 8");
  EXPECT_CONTAINS(ErrorOf([&] { Read(std::string(100, '\0')); }).message(), "a NUL byte at offset 0 of 100");
}

TEST(JsonReader, RefusesANameGivenTwiceByItsPath) {
  const struct {
    const char* text;
    const char* message;
  } rows[] = {
      {"{\"a\": 1,\n\"b\": 2,\n\"a\": 1}", "line 3: a is given twice (first on line 1)"},
      {"{\"a\": {\"b\": {\"c\": 1, \"c\": 2}}}", "line 1: a.b.c is given twice"},
      {"{\"a\": [0, {\"b\": 1, \"\\u0062\": 2}]}", "line 1: a[1].b is given twice"},
      {"{\"odd key\": {\"\": 1, \"\": 2}}", "line 1: ['odd key'][''] is given twice"},
  };
  for (const auto& row : rows) EXPECT_CONTAINS(ErrorOf([&] { Read(row.text); }).message(), row.message);
  EXPECT_NO_THROW(Read("{\"a\": {\"x\": 1}, \"b\": {\"x\": 1}, \"c\": [{\"x\": 1}, {\"x\": 1}]}"));
}

TEST(JsonReader, RefusesNumbersOutsideTheRangeOfADouble) {
  for (const char* text : {"1e400", "-1.5e999", "1e-400"}) {
    const Error error = ErrorOf([&] { Read(text); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_CONTAINS(error.message(), text);
  }
}

TEST(JsonReader, RefusesNestingThatNoConfigHas) {
  EXPECT_NO_THROW(Read(std::string(64, '[') + std::string(64, ']')));
  EXPECT_CONTAINS(ErrorOf([] { Read(std::string(65, '[') + std::string(65, ']')); }).message(), "deeper than 64");
  EXPECT_CONTAINS(ErrorOf([] { Read(std::string(1000000, '[')); }).message(), "deeper than 64");
}

// Takes "big" wherever it is and writes down what it gets.
class BigSink final : public JsonSink {
 public:
  bool Takes(const std::string& path) override { return path.ends_with("big"); }
  void OnLeaf(const JsonLeaf& leaf) override {
    seen += Message(leaf.line, ':', leaf.depth, '.', leaf.index, ' ', std::string(leaf.name), '=',
                    std::string(leaf.text), leaf.integer, ' ');
  }
  std::string seen;
};

TEST(JsonReader, HandsLargeContainersToASinkAndLeavesThemEmptyInTheTree) {
  BigSink sink;
  const JsonValue root = ReadJson(
      "{\"a\": {\"big\": {\"x\": 7,\n \"y\": [\"p\", {\"q\": 8}, []], \"x\": 9}, \"b\": 5},\n"
      " \"big\": [], \"c\": [{\"big\": [1]}, 2]}",
      std::make_shared<const std::string>("text"), &sink);
  EXPECT_EQ(sink.seen, "1:1.0 x=77 2:2.0 =p0 2:3.0 q=88 2:1.2 x=99 3:1.0 =11 ");
  EXPECT_EQ(testing::WriteJson(root),
            testing::WriteJson(Read("{\"a\": {\"big\": {}, \"b\": 5}, \"big\": [], \"c\": [{\"big\": []}, 2]}")));
}

TEST(JsonReader, BoundsTheNestingOfWhatASinkTakes) {
  BigSink sink;
  const std::string deep = "{\"big\": " + std::string(64, '[');
  EXPECT_CONTAINS(ErrorOf([&] { ReadJson(deep, std::make_shared<const std::string>("text"), &sink); }).message(),
                  "deeper than 64");
}

TEST(JsonReader, ShowsForeignBytesReadably) {
  const Error error = ErrorOf([] { Read("{\"a\": \"\xff\"}"); });
  EXPECT_CONTAINS(error.message(), "\\xff");
  EXPECT_EQ(error.message().find('\xff'), std::string::npos);
}

}  // namespace
}  // namespace oga

// Stop strings as an automaton: what is legal, what may still become a match, what ends where.
#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace oga {
namespace {

using Strings = std::vector<std::string>;

// What a set is refused as: its code and field, and whether the message has the part. Legal ones are kOk.
StatusCode Refused(const Strings& strings, const std::string& part) {
  try {
    StopStrings::Check(strings);
    return StatusCode::kOk;
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "stop_strings");
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
    return error.code();
  }
}

StopStrings::Node NodeOf(const StopStrings& strings, std::string_view text) {
  StopStrings::Node node = StopStrings::kStart;
  for (const char byte : text) node = strings.Advance(node, byte);
  return node;
}

TEST(StopStrings, RefuseWhatNoTurnCanUse) {
  EXPECT_EQ(Refused({"a", ""}, "stop string 1 is empty"), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused({"a\xff"}, "stop string 0 is not UTF-8 (at byte 1)"), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused({"a", "\xe2\x82"}, "stop string 1 is not UTF-8 (at byte 0)"), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused(Strings(17, "a"), "17 stop strings; a turn takes at most 16"), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused({std::string(8192, 'a'), std::string(8193, 'b')}, "16385 bytes together"),
            StatusCode::kInvalidArgument);
}

TEST(StopStrings, TakeTheLargestLegalSets) {
  EXPECT_EQ(Refused({}, ""), StatusCode::kOk);
  EXPECT_EQ(Refused(Strings(16, std::string(1024, 'a')), ""), StatusCode::kOk);
  EXPECT_EQ(Refused({std::string(16384, 'a')}, ""), StatusCode::kOk);
}

TEST(StopStrings, HoldBackTheLongestEndThatBeginsAString) {
  const StopStrings strings({"abcd", "bce"});
  EXPECT_EQ(strings.Label(NodeOf(strings, "xab")), "ab");
  EXPECT_EQ(strings.Label(NodeOf(strings, "xabc")), "abc");
  EXPECT_EQ(strings.Label(NodeOf(strings, "abca")), "a");
  EXPECT_EQ(strings.Label(NodeOf(strings, "abce")), "bce") << "inside the other string";
  EXPECT_EQ(strings.Depth(NodeOf(strings, "abc")), 3u);
  EXPECT_EQ(NodeOf(strings, "abcx"), StopStrings::kStart);
}

TEST(StopStrings, MatchTheLongestStringThatEndsAndOfEqualOnesTheFirst) {
  const StopStrings strings({"c", "bc", "bc", "abcd"});
  EXPECT_EQ(strings.MatchAt(NodeOf(strings, "xc")), 0);
  EXPECT_EQ(strings.MatchAt(NodeOf(strings, "bc")), 1);
  EXPECT_EQ(strings.MatchAt(NodeOf(strings, "abc")), 1) << "a string that ends inside a longer one";
  EXPECT_EQ(strings.MatchAt(NodeOf(strings, "abcd")), 3);
  EXPECT_EQ(strings.MatchAt(NodeOf(strings, "ab")), StopStrings::kNoMatch);
}

TEST(StopStrings, MatchNothingWhenThereAreNone) {
  const StopStrings none({});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(NodeOf(none, "text"), StopStrings::kStart);
  EXPECT_EQ(none.MatchAt(StopStrings::kStart), StopStrings::kNoMatch);
  EXPECT_EQ(none.Label(StopStrings::kStart), "");
}

}  // namespace
}  // namespace oga

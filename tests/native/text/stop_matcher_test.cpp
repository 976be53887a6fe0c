// Stop strings: the table of rules, the text that may be shown, and a naive reference on random input over tiny
// alphabets, where every sort of overlap happens often.
#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "support/allocation_hooks.h"
#include "text/text_stream.h"

namespace oga {
namespace {

using Strings = std::vector<std::string>;

std::shared_ptr<const TokenBytes> MakeTable(const Strings& tokens, uint32_t strip_count = 0) {
  auto table = std::make_shared<TokenBytes>();
  table->strip_count = strip_count;
  for (const std::string& token : tokens) {
    if (token != "<hole>") table->bytes += token;
    table->offsets.push_back(static_cast<uint32_t>(table->bytes.size()));
    const uint8_t flags = token == "<s>" ? TokenBytes::kKnown | TokenBytes::kSpecial : TokenBytes::kKnown;
    table->flags.push_back(token == "<hole>" ? uint8_t{0} : flags);
  }
  return table;
}

StopMatcher MakeMatcher(const Strings& stops, std::shared_ptr<const TokenBytes> table) {
  return StopMatcher(std::make_shared<const StopStrings>(stops), std::move(table));
}

// One turn: the tokens that go in, what is shown after each, and how it ends.
struct Turn {
  Strings shown;  // per token; the last one after the end of the turn
  int32_t matched_index = StopStrings::kNoMatch;
  std::string text;
};

Turn RunTurn(StopMatcher& matcher, const std::vector<TokenId>& tokens) {
  Turn turn;
  matcher.Reset();
  for (const TokenId token : tokens) {
    const StopStage stage = matcher.Stage(token);
    turn.shown.push_back(std::string(stage.released) + std::string(stage.released_of_token));
    matcher.Commit(stage);
    turn.matched_index = stage.matched_index();
    if (stage.matched()) break;
  }
  turn.shown.emplace_back(matcher.Finish());
  for (const std::string& piece : turn.shown) turn.text += piece;
  EXPECT_EQ(turn.text.size(), matcher.visible_bytes());
  return turn;
}

// Each token by its text, so that a case reads like its output.
Turn RunTurn(const Strings& stops, const Strings& tokens) {
  StopMatcher matcher = MakeMatcher(stops, MakeTable(tokens));
  std::vector<TokenId> ids(tokens.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i);
  return RunTurn(matcher, ids);
}

TEST(StopMatcher, RunsTheLargestStringAndNone) {
  EXPECT_EQ(RunTurn({std::string(16384, 'a')}, {std::string(20000, 'a')}).text, "");
  EXPECT_EQ(RunTurn({}, {"anything", " goes"}).text, "anything goes");
}

TEST(StopMatcher, ChoosesTheEarliestEndThenTheLongestThenTheFirst) {
  EXPECT_EQ(RunTurn({"B", "BB"}, {"BB"}).matched_index, 0);
  EXPECT_EQ(RunTurn({"BH", "BBH"}, {"BBH"}).matched_index, 1);
  EXPECT_EQ(RunTurn({"BBH", "BH"}, {"BBH"}).matched_index, 0);
  EXPECT_EQ(RunTurn({"x", "BH", "BH"}, {"BH"}).matched_index, 1);
  EXPECT_EQ(RunTurn({"abcd", "bc"}, {"abcd"}).matched_index, 1);
  EXPECT_EQ(RunTurn({"abcd", "bc"}, {"abcd"}).text, "a");
}

TEST(StopMatcher, MatchesInsideAndAcrossTokens) {
  EXPECT_EQ(RunTurn({"stop"}, {"a stop b"}).text, "a ");
  EXPECT_EQ(RunTurn({"stop"}, {"a s", "t", "op b"}).text, "a ");
  EXPECT_EQ(RunTurn({"\n\n"}, {"a\n", "\nb"}).text, "a");
  EXPECT_EQ(RunTurn({"🙂"}, {"a", "\xf0\x9f", "\x99", "\x82", "b"}).text, "a");
  EXPECT_EQ(RunTurn({"é"}, {"caf", "\xc3", "\xa8 caf", "\xc3", "\xa9"}).text, "cafè caf");
}

TEST(StopMatcher, HoldsBackOnlyWhatCanStillBecomeAMatch) {
  EXPECT_EQ(RunTurn({"stop"}, {"a s", "t", "o", "x", "s"}).shown, (Strings{"a ", "", "", "stox", "", "s"}));
  EXPECT_EQ(RunTurn({"aab"}, {"a", "a", "a", "a", "c"}).shown, (Strings{"", "", "a", "a", "aac", ""}));
  EXPECT_EQ(RunTurn({"stop"}, {"no such thing"}).shown, (Strings{"no such thing", ""}));
}

// The recipe of OB-32: what is shown, piece by piece, is the text that is not streamed.
TEST(StopMatcher, LosesAndRepeatsNothingWhenTheTurnEndsWhileItHolds) {
  EXPECT_EQ(RunTurn({"TRE\nAAAA"}, {"UNO", " DUE", " TRE"}).shown, (Strings{"UNO", " DUE", " ", "TRE"}));
  EXPECT_EQ(RunTurn({"\n", "Alice:"}, {" Al", "ice", "!"}).shown, (Strings{" ", "", "Alice!", ""}));
  const Turn stopped = RunTurn({"\n", "Alice:"}, {" Alice", "!", " Alice", ":", "hidden"});
  EXPECT_EQ(stopped.shown, (Strings{" ", "Alice!", " ", "", ""}));
  EXPECT_EQ(stopped.matched_index, 1);
}

TEST(StopMatcher, ActsOnOneTurnOnly) {
  StopMatcher matcher = MakeMatcher({"stop"}, MakeTable({"st", "op"}));
  EXPECT_EQ(RunTurn(matcher, {0}).text, "st");
  EXPECT_EQ(RunTurn(matcher, {1}).matched_index, StopStrings::kNoMatch) << "the begin was another turn's";
  EXPECT_EQ(RunTurn(matcher, {0, 1}).matched_index, 0);
}

TEST(StopMatcher, IgnoresTokensWithoutText) {
  StopMatcher matcher = MakeMatcher({"stop"}, MakeTable({"st", "<s>", "<hole>", "op"}));
  EXPECT_EQ(RunTurn(matcher, {0, 1, 2, 77, -5, 3}).matched_index, 0);
  StopMatcher showing(std::make_shared<const StopStrings>(Strings{"<s>"}), MakeTable({"a", "<s>"}),
                      /*skip_special=*/false);
  EXPECT_EQ(RunTurn(showing, {0, 1}).matched_index, 0);
}

// The text "x" of "▁x" has no space in front, so a stop string with one does not match it.
TEST(StopMatcher, DoesNotSeeWhatTheDecoderStrips) {
  StopMatcher matcher = MakeMatcher({" x"}, MakeTable({" x", " "}, /*strip_count=*/1));
  EXPECT_EQ(matcher.Stage(0).matched_index(), StopStrings::kNoMatch);
  EXPECT_EQ(matcher.Stage(0).released_of_token, "x");
  EXPECT_EQ(matcher.Stage(0).visible_bytes(), 2u) << "stripped bytes count, as in TextStream";
  matcher.Commit(matcher.Stage(1));
  EXPECT_EQ(matcher.Stage(0).matched_index(), 0);
}

TEST(StopMatcher, AStageThatIsDroppedLeavesNoTrace) {
  StopMatcher matcher = MakeMatcher({"abc"}, MakeTable({"a", "b", "c", "x"}));
  matcher.Commit(matcher.Stage(0));
  const StopStage kept = matcher.Stage(1);
  EXPECT_FALSE(matcher.Stage(3).matched());
  EXPECT_FALSE(matcher.Stage(2).matched());
  const StopStage drafted = matcher.StageAfter(matcher.StageAfter(matcher.state(), 1).next, 2);
  EXPECT_TRUE(drafted.matched());
  matcher.Commit(kept);
  EXPECT_TRUE(matcher.Stage(2).matched());
}

// A user's stop id: its token is not committed, and what was held back before it becomes visible.
TEST(StopMatcher, ShowsEverythingBeforeATokenThatEndsTheTurnWithoutText) {
  StopMatcher matcher = MakeMatcher({"abc"}, MakeTable({"xa", "b", "STOP"}));
  matcher.Commit(matcher.Stage(0));
  matcher.Commit(matcher.Stage(1));
  EXPECT_FALSE(matcher.Stage(2).matched());
  EXPECT_EQ(matcher.visible_bytes(), 1u);
  EXPECT_EQ(matcher.Finish(), "ab");
  EXPECT_EQ(matcher.visible_bytes(), 3u);
}

// What the rules say, byte by byte and without an automaton.
Turn Naive(const Strings& stops, const Strings& tokens) {
  Turn turn;
  std::string output;
  for (const std::string& token : tokens) {
    for (const char byte : token) {
      output += byte;
      for (size_t i = 0; i < stops.size(); ++i) {
        if (!output.ends_with(stops[i])) continue;
        const bool is_better = turn.matched_index == StopStrings::kNoMatch ||
                               stops[i].size() > stops[static_cast<size_t>(turn.matched_index)].size();
        if (is_better) turn.matched_index = static_cast<int32_t>(i);
      }
      if (turn.matched_index == StopStrings::kNoMatch) continue;
      output.resize(output.size() - stops[static_cast<size_t>(turn.matched_index)].size());
      turn.shown.push_back(output);
      return turn;
    }
    size_t held = 0;
    for (const std::string& stop : stops) {
      for (size_t length = 1; length < stop.size() && length <= output.size(); ++length) {
        if (output.ends_with(stop.substr(0, length))) held = std::max(held, length);
      }
    }
    turn.shown.push_back(output.substr(0, output.size() - held));
  }
  return turn;
}

TEST(StopMatcher, AgreesWithTheNaiveReference) {
  std::mt19937 random(7);
  const auto pick = [&](size_t below) { return random() % below; };
  const auto word = [&](size_t longest, size_t letters) {
    std::string text;
    for (size_t length = 1 + pick(longest); length > 0; --length) text += static_cast<char>('a' + pick(letters));
    return text;
  };
  size_t matches = 0;
  for (int round = 0; round < 20000; ++round) {
    const size_t letters = 1 + pick(3);
    Strings stops(1 + pick(5));
    Strings tokens(1 + pick(8));
    for (std::string& stop : stops) stop = word(7, letters);
    for (std::string& token : tokens) token = word(4, letters);
    const Turn turn = RunTurn(stops, tokens);
    const Turn naive = Naive(stops, tokens);
    ASSERT_EQ(turn.matched_index, naive.matched_index)
        << ::testing::PrintToString(stops) << ::testing::PrintToString(tokens);
    std::string shown;
    for (size_t i = 0; i < naive.shown.size(); ++i) {
      shown += turn.shown[i];
      ASSERT_EQ(shown, naive.shown[i]) << ::testing::PrintToString(stops) << ::testing::PrintToString(tokens);
    }
    matches += turn.matched_index != StopStrings::kNoMatch;
  }
  EXPECT_GT(matches, 5000u);
  EXPECT_LT(matches, 19000u);
}

// The matcher says how much may be shown, the stream shows it: together they give the text up to the match.
TEST(StopMatcher, TogetherWithAStreamShowsWholeCharactersUpToTheMatch) {
  const auto table = MakeTable({"caf", "\xc3", "\xa9 ", "EN", "D", "x"});
  StopMatcher matcher = MakeMatcher({"END"}, table);
  TextStream stream(table);
  std::string text;
  for (const TokenId token : {0, 1, 2, 3, 5, 3, 4}) {
    matcher.Commit(matcher.Stage(token));
    stream.Append(token, text, matcher.visible_bytes());
  }
  EXPECT_EQ(text, "café ENx");
  stream.Finish(text, matcher.visible_bytes());
  EXPECT_EQ(text, "café ENx");
}

TEST(StopMatcher, AllocatesNothingPerToken) {
  StopMatcher matcher = MakeMatcher({std::string(5000, 'a') + "b", "ab"}, MakeTable({std::string(400, 'a'), "b", "c"}));
  const int before = oga::testing::g_allocations.load();
  for (int i = 0; i < 100; ++i) {
    matcher.Commit(matcher.Stage(0));
    matcher.Commit(matcher.Stage(2));
  }
  EXPECT_TRUE(matcher.StageAfter(matcher.Stage(0).next, 1).matched());
  EXPECT_EQ(matcher.Finish(), "");
  EXPECT_EQ(oga::testing::g_allocations.load(), before);
}

}  // namespace
}  // namespace oga

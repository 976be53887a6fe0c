// What a reading tells besides errors: once for each kind, and only about the text just read.
#include "config/config_notes.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::InfoLog;
using testing::ParseJson;

TEST(ConfigNotes, WriteALineForEachKindThatNamesEverything) {
  InfoLog log;
  const JsonValue news = ParseJson("\n1");
  ConfigNotes notes(news.source);
  notes.AddUnknownKey(news, "a.x");
  notes.AddOff(news, "b", "not here");
  notes.AddUnknownKey(news, "a.y");
  EXPECT_TRUE(InfoLog::lines().empty()) << "nothing is told before the config is known to be good";
  notes.WriteToLog();
  ASSERT_EQ(InfoLog::lines().size(), 2u);
  EXPECT_CONTAINS(InfoLog::lines()[0], "a.x (line 2), a.y (line 2)");
  EXPECT_CONTAINS(InfoLog::lines()[1], "b (not here)");
}

TEST(ConfigNotes, TellOnlyOfTheTextJustRead) {
  InfoLog log;
  const JsonValue news = ParseJson("1");
  const JsonValue old = ParseJson("1");
  ConfigNotes notes(news.source);
  notes.AddUnknownKey(old, "a");
  notes.AddOff(old, "b", "not here");
  notes.WriteToLog();
  EXPECT_TRUE(InfoLog::lines().empty()) << "texts of one name are told apart";
  notes.AddOff(news, "c", "not here");
  notes.WriteToLog();
  EXPECT_EQ(InfoLog::lines().size(), 1u);
}

TEST(ConfigNotes, TellNothingWithoutNews) {
  InfoLog log;
  JsonValue made;
  ConfigNotes notes(nullptr);
  notes.AddUnknownKey(made, "a");
  notes.AddOff(made, "b", "not here");
  notes.WriteToLog();
  EXPECT_TRUE(InfoLog::lines().empty());
}

}  // namespace
}  // namespace oga

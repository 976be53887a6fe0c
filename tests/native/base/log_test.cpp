#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace oga::log {
namespace {

std::vector<std::string> g_lines;

// Leaves the sink as a process finds it.
class Log : public testing::Test {
 protected:
  void SetUp() override { g_lines.clear(); }
  void TearDown() override {
    SetCallback(nullptr);
    SetEnabled(Level::kInfo, false);
    SetEnabled(Level::kWarning, true);
  }

  static void Collect(const char* text, size_t length) { g_lines.emplace_back(text, length); }
};

TEST_F(Log, WritesWarningsAloneAtStart) {
  EXPECT_FALSE(IsEnabled(Level::kInfo));
  EXPECT_TRUE(IsEnabled(Level::kWarning));
  SetCallback(Collect);
  Info("an info");
  Warning("a warning");
  EXPECT_EQ(g_lines, std::vector<std::string>{"a warning"});
}

TEST_F(Log, TurnsEachLevelOnAndOffAlone) {
  SetCallback(Collect);
  SetEnabled(Level::kInfo, true);
  SetEnabled(Level::kWarning, false);
  Info("an info");
  Warning("a warning");
  EXPECT_EQ(g_lines, std::vector<std::string>{"an info"});
}

TEST_F(Log, GoesToStandardErrorWithoutACallback) {
  SetCallback(Collect);
  SetCallback(nullptr);
  testing::internal::CaptureStderr();
  Warning("a warning");
  Info("an info");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_NE(written.find("warning: a warning\n"), std::string::npos) << written;
  EXPECT_EQ(written.find("an info"), std::string::npos) << written;
  EXPECT_TRUE(g_lines.empty());
}

}  // namespace
}  // namespace oga::log
